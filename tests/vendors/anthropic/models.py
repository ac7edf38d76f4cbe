"""What each of Anthropic's models allows.

Sources, all under platform.claude.com/docs/en:
- build-with-claude/thinking-troubleshooting, "Thinking support, defaults, and rejected configurations by model": which
  `thinking.type` is taken: manual budgets on 4.5 and before and (deprecated) on 4.6, adaptive from 4.6 on.
- models/opus-5-5/whats-new-opus-5-5 and models/sonnet-5-5/migration-guide: thinking cannot be disabled on Opus 5.5,
  `between_tools` takes its place on Sonnet 5.5, forced tool use returns an error, thinking is bound to the model and
  the conversation, and is not shown unless `display` asks for it; text between calls comes as thinking.
- build-with-claude/preserved-thinking: Fable 5.1 and later bind thinking to what stands before it.
- build-with-claude/prompt-caching, "Cache limitations": the smallest prompt that is cached.
- build-with-claude/effort: models that know `output_config.effort`.
- about-claude/models/overview: the largest output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Model:
    """`thinking`: the types it takes. `thinks`: it does so when the request does not say. `binds`: its thinking is
    only taken back behind the prompt it came from. `shows`: it shows thinking unless told otherwise. `forces`: a
    request may force a tool. `narrates`: what it says between its calls is text, and not thinking. `sampling`:
    temperature and the like may be set."""

    thinking: frozenset[str]
    thinks: bool = False
    effort: frozenset[str] = frozenset()
    binds: bool = False
    shows: bool = True
    forces: bool = True
    narrates: bool = True
    sampling: bool = False
    cache_minimum: int = 1024
    max_output: int = 64000


_EFFORT = frozenset({"low", "medium", "high", "xhigh", "max"})
_THREE = frozenset({"low", "medium", "high"})
_ADAPTIVE = frozenset({"adaptive"})
_OPTIONAL = frozenset({"adaptive", "disabled"})
_BOUND = Model(
    _ADAPTIVE, thinks=True, effort=_EFFORT, binds=True, shows=False, forces=False, cache_minimum=512, max_output=128000
)

_MODELS: tuple[tuple[str, Model], ...] = (
    (r"claude-opus-5-5", replace(_BOUND, narrates=False)),
    (r"claude-(fable-5-[12]|mythos-5-[12])", _BOUND),
    (
        r"claude-sonnet-5-5",
        Model(
            frozenset({"adaptive", "between_tools"}),
            thinks=True,
            effort=_EFFORT,
            binds=True,
            shows=False,
            forces=False,
            narrates=False,
            cache_minimum=512,
            max_output=128000,
        ),
    ),
    (
        r"claude-haiku-5-5",
        Model(_OPTIONAL, thinks=True, effort=_EFFORT, binds=True, shows=False, cache_minimum=512, max_output=128000),
    ),
    (r"claude-(fable|mythos)-5", Model(_ADAPTIVE, thinks=True, effort=_EFFORT, cache_minimum=512, max_output=128000)),
    (r"claude-(opus|sonnet)-5", Model(_OPTIONAL, thinks=True, effort=_EFFORT, cache_minimum=512, max_output=128000)),
    (r"claude-opus-4-[78]", Model(_OPTIONAL, effort=_EFFORT, max_output=128000)),
    (
        r"claude-(opus|sonnet)-4-6",
        Model(
            frozenset({"adaptive", "enabled", "disabled"}), effort=_THREE | {"max"}, sampling=True, max_output=128000
        ),
    ),
    (
        r"claude-opus-4-5",
        Model(frozenset({"enabled", "disabled"}), effort=_THREE, sampling=True, cache_minimum=4096),
    ),
    (r"claude-haiku-4-5", Model(frozenset({"enabled", "disabled"}), sampling=True, cache_minimum=4096)),
    (r"claude-sonnet-4-5", Model(frozenset({"enabled", "disabled"}), sampling=True)),
)


def find(name: object) -> Model | None:
    """None: the vendor has no such model. Dated names (`claude-sonnet-4-5-20250929`) are taken too."""
    if not isinstance(name, str):
        return None
    return next((model for form, model in _MODELS if re.fullmatch(form + r"(-\d{8})?", name)), None)
