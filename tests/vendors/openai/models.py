"""What each of OpenAI's models allows on Chat Completions.

Sources, under developers.openai.com/api/docs unless another place is named:
- guides/reasoning: which models reason; API reference chat/create, `reasoning_effort` (gpt-5.1 and later know `none`
  and have it as their default until gpt-5.4, models before do not know it) and `max_tokens` ("not compatible with
  o-series models"; for gpt-5 and later as reported: decolua/9router 846).
- Function tools together with reasoning are refused from gpt-5.4 on (openai/openai-openapi 541, pipecat-ai/pipecat
  4043); from gpt-5.6 on also when the request sets no effort, because the model's own default is not `none`
  (BerriAI/litellm 34569, danny-avila/LibreChat 14355); gpt-5.5 is treated like gpt-5.6 here.
- models: the largest output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """`efforts`: empty for a model that does not reason. `default`: the effort in force when none is asked for.
    `tools_only_at_none`: function tools are taken only without reasoning."""

    efforts: frozenset[str] = frozenset()
    default: str = "none"
    tools_only_at_none: bool = False
    max_output: int = 128000

    @property
    def reasons(self) -> bool:
        return bool(self.efforts)


_LOW = frozenset({"low", "medium", "high"})

_MODELS: tuple[tuple[str, Model], ...] = (
    (r"gpt-(4o|4o-mini|4\.1|4\.1-mini|4\.1-nano)", Model(max_output=16384)),
    (r"o[134](-mini)?", Model(_LOW, "medium", max_output=100000)),
    (r"gpt-5(-mini|-nano)?", Model(_LOW | {"minimal"}, "medium")),
    (r"gpt-5\.1", Model(_LOW | {"none"})),
    (r"gpt-5\.[23]", Model(_LOW | {"none", "xhigh"})),
    (r"gpt-5\.4(-mini|-nano)?", Model(_LOW | {"none", "xhigh"}, tools_only_at_none=True)),
    (
        r"gpt-(5\.[5-9]|6)(-[a-z]+)*",
        Model(_LOW | {"none", "xhigh", "max"}, "medium", tools_only_at_none=True),
    ),
)


def find(name: object) -> Model | None:
    """None: OpenAI has no such model. Dated names (`gpt-4o-2024-11-20`) are taken too."""
    if not isinstance(name, str):
        return None
    return next((model for form, model in _MODELS if re.fullmatch(form + r"(-\d{4}-\d\d-\d\d)?", name)), None)
