"""How much a model is to reason, in the words of each dialect.

| dialect    | off                             | on                          | low, medium, high         | source  |
|------------|---------------------------------|-----------------------------|---------------------------|---------|
| OpenAI     | effort `none`; gpt-5 `minimal`; | nothing: its own default;   | the effort                | [1]     |
|            | o series `low`, their least     | `medium` where that is none |                           |         |
| - tools    | gpt-5.4: nothing; gpt-5.5 and later: `none`, whatever is asked for: they refuse the rest  | [2]     |
| - others   | nothing: models that do not reason refuse the parameter                                   | [1]     |
| DeepSeek   | `thinking: disabled`            | `thinking: enabled`         | enabled, and the effort   | [3]     |
| OpenRouter | `reasoning.effort: none`        | `reasoning.enabled`         | `reasoning.effort`        | [4]     |
| compatible | effort `none`                   | nothing: the server's own   | the effort                | [5] [6] |

None, where nobody has said anything, is nothing to say in each of them, but for the models of [2] that would refuse it.

1. developers.openai.com/api/docs/guides/reasoning; API reference chat/create, `reasoning_effort`
2. see `models`
3. api-docs.deepseek.com/guides/thinking_mode (on unless disabled; it maps medium to high)
4. openrouter.ai/docs/use-cases/reasoning-tokens
5. docs.vllm.ai, "Reasoning Outputs" and the request of its chat completions (`reasoning_effort`, none among them)
6. docs.ollama.com/api/openai-compatibility (`reasoning_effort`)
"""

from __future__ import annotations

from typing import Any

from insika.choices import Thinking
from insika.ports import ModelRequest
from insika.providers.endpoint import Dialect
from insika.providers.openai.models import WithTools, family

EFFORT = "reasoning_effort"
_EFFORTS = frozenset({Thinking.LOW, Thinking.MEDIUM, Thinking.HIGH})
_SOME = "medium"
"""What reasoning is by default at OpenAI, where it is at all."""


def thinking_parameters(request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
    """What the request says of reasoning; empty where nothing is to be said."""
    thinking = request.thinking
    match dialect:
        case Dialect.OPENAI:
            return _openai(request)
        case Dialect.DEEPSEEK:
            return _deepseek(thinking)
        case Dialect.OPENROUTER:
            return _openrouter(thinking)
        case Dialect.COMPATIBLE:
            return _compatible(thinking)


def may_reason(request: ModelRequest) -> bool:
    """Whether a model of DeepSeek's may be in its thinking mode: unless it was told not to, or is the name that stands
    for the mode without (api-docs.deepseek.com/guides/thinking_mode; deepseek-ai/DeepSeek-V3 1376)."""
    if request.thinking is None:
        return request.model != "deepseek-chat"
    return request.thinking is not Thinking.OFF


def _openai(request: ModelRequest) -> dict[str, Any]:
    thinking, its = request.thinking, family(request.model)
    if not its.reasons:
        return {}
    if request.tools and its.with_tools is WithTools.NOTHING:
        return {}
    if request.tools and its.with_tools is WithTools.ONLY_NONE:
        return {EFFORT: "none"}
    if thinking is Thinking.OFF:
        return {EFFORT: its.least}
    if thinking is Thinking.ON:
        return {EFFORT: _SOME} if its.rests else {}
    return {} if thinking is None else {EFFORT: thinking.value}


def _deepseek(thinking: Thinking | None) -> dict[str, Any]:
    if thinking is None:
        return {}
    switch = {"thinking": {"type": "disabled" if thinking is Thinking.OFF else "enabled"}}
    return {**switch, EFFORT: thinking.value} if thinking in _EFFORTS else switch


def _openrouter(thinking: Thinking | None) -> dict[str, Any]:
    if thinking is None:
        return {}
    if thinking is Thinking.ON:
        return {"reasoning": {"enabled": True}}
    return {"reasoning": {"effort": "none" if thinking is Thinking.OFF else thinking.value}}


def _compatible(thinking: Thinking | None) -> dict[str, Any]:
    if thinking is Thinking.OFF:
        return {EFFORT: "none"}
    return {EFFORT: thinking.value} if thinking in _EFFORTS and thinking is not None else {}
