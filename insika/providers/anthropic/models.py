"""What each family of Anthropic's models allows, by the names that requests have. Data, and how a name is looked up.

A Claude that is not in the table is taken for one of the newest; a name of anybody else's, at a gateway that speaks
this API, for a model that nothing is known of, which is told as little as possible.

Sources, under platform.claude.com/docs/en:
- build-with-claude/thinking-troubleshooting, "Thinking support, defaults, and rejected configurations by model".
- models/opus-5-5/whats-new-opus-5-5 (thinking cannot be disabled) and models/sonnet-5-5/whats-new-sonnet-5-5
  (`between_tools` is the least that it takes).
- build-with-claude/preserved-thinking/prefix-checks: which models bind their thinking to what stands before it.
- about-claude/models/overview: the largest output.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, replace


class Off(enum.Enum):
    """How little a family can be told to think. `unsaid`: it does not think unless it is told to. `least`: it always
    does, and a low effort is the least of it."""

    UNSAID = enum.auto()
    DISABLED = enum.auto()
    BETWEEN_TOOLS = enum.auto()
    LEAST = enum.auto()


class Depth(enum.Enum):
    """How it is told how much to think."""

    NEVER = enum.auto()
    BUDGET = enum.auto()
    EFFORT = enum.auto()


@dataclass(frozen=True, slots=True)
class Family:
    """`binds`: its thinking is taken back only behind the very prompt that it came from. `max_output`: tokens, thinking
    included."""

    depth: Depth
    off: Off
    binds: bool = False
    max_output: int = 128_000

    @property
    def thinks(self) -> bool:
        """It does so when a request says nothing of it."""
        return self.off is not Off.UNSAID


_BUDGETED = Family(Depth.BUDGET, Off.UNSAID, max_output=64_000)
_ASKED = Family(Depth.EFFORT, Off.UNSAID)
_OPTIONAL = Family(Depth.EFFORT, Off.DISABLED)
_ALWAYS = Family(Depth.EFFORT, Off.LEAST)
_NEWEST = replace(_ALWAYS, binds=True)

UNKNOWN_CLAUDE = replace(_NEWEST, max_output=64_000)
UNKNOWN = _BUDGETED

_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"3-.*", Family(Depth.NEVER, Off.UNSAID, max_output=4_096)),
    (r"(opus|sonnet)-4(-[01])?", replace(_BUDGETED, max_output=32_000)),
    (r"(opus|sonnet|haiku)-4-5", _BUDGETED),
    (r"(opus|sonnet)-4-[678]", _ASKED),
    (r"(opus|sonnet)-5", _OPTIONAL),
    (r"(fable|mythos)-5|mythos-preview", _ALWAYS),
    (r"(fable|mythos)-5-[12]|opus-5-5", _NEWEST),
    (r"sonnet-5-5", replace(_NEWEST, off=Off.BETWEEN_TOOLS)),
    (r"haiku-5-5", replace(_NEWEST, off=Off.DISABLED)),
)
_CLAUDE = "claude-"
_ENDING = r"(-latest|[-@]\d{8}.*|-v\d.*)?"
"""What names of one model end with: a date, or a cloud's version."""


def family(model: str) -> Family:
    """Of the model with this name; dates and the prefixes of clouds and gateways (`anthropic.claude-...`) are seen
    through."""
    _, claude, name = model.partition(_CLAUDE)
    if not claude:
        return UNKNOWN
    return next((one for form, one in _FAMILIES if re.fullmatch(f"({form}){_ENDING}", name)), UNKNOWN_CLAUDE)
