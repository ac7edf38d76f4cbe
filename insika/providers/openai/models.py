"""What OpenAI's models take, by their names: which reason, how little they can be told to, and what comes with tools.

A name that nobody knows is taken for a model that does not reason, so that nothing is said to it which it could refuse;
a later number than the ones below is taken for the latest of them.

Sources:
- developers.openai.com/api/docs, guides/reasoning and API reference chat/create, `reasoning_effort`: models before
  gpt-5.1 default to medium and know no `none`; gpt-5.1 defaults to `none`; `minimal` is for gpt-5 alone.
- Function tools and reasoning on chat completions: gpt-5.4 refuses both together, and wants nothing said
  (openai/openai-openapi 541, livekit/agents 5084); from gpt-5.5 on, which reason unless told otherwise, `none` must be
  said (BerriAI/litellm 34569, danny-avila/LibreChat 14231).
- The chat variants take no effort of ours (egoist/chatwise-releases 1257).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass


class WithTools(enum.Enum):
    """What may be said of reasoning in a request that has function tools."""

    ANYTHING = enum.auto()
    NOTHING = enum.auto()
    ONLY_NONE = enum.auto()


@dataclass(frozen=True, slots=True)
class Family:
    """`reasons`: it can. `least`: the effort that comes closest to not reasoning. `rests`: it does not reason unless it
    is told to."""

    reasons: bool = True
    least: str = "none"
    rests: bool = False
    with_tools: WithTools = WithTools.ANYTHING


_PLAIN = Family(reasons=False)
_O_SERIES = Family(least="low")
_GPT_5 = Family(least="minimal")
_GPT_5_1 = Family(rests=True)
_GPT_5_4 = Family(rests=True, with_tools=WithTools.NOTHING)
_LATEST = Family(with_tools=WithTools.ONLY_NONE)

_GPT = re.compile(r"gpt-(\d)(?:\.(\d+))?(?!\d)")
_O = re.compile(r"o\d+(-|$)")


def family(model: str) -> Family:
    """Of a model by the name that the request will have; a fine-tuned one (`ft:gpt-4.1:...`) is of its base's."""
    name = model.removeprefix("ft:").partition(":")[0]
    if _O.match(name):
        return _O_SERIES
    version = _GPT.match(name)
    if version is None or "-chat" in name:
        return _PLAIN
    return _gpt(int(version[1]), int(version[2] or 0))


def _gpt(major: int, minor: int) -> Family:
    if major < 5:
        return _PLAIN
    if (major, minor) == (5, 0):
        return _GPT_5
    if (major, minor) < (5, 4):
        return _GPT_5_1
    return _GPT_5_4 if (major, minor) == (5, 4) else _LATEST
