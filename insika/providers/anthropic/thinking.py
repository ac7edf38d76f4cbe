"""How much a model is to think, and how much it may say: one plan for a request. Pure.

| family                          | off                     | on                | low, medium, high              |
|---------------------------------|-------------------------|-------------------|--------------------------------|
| 4.5 and before                  | nothing: it does not    | budget of 8,192   | budget 2,048, 8,192, 24,576    |
| 4.6, 4.7, 4.8                   | nothing: it does not    | adaptive          | adaptive, and the effort       |
| Opus 5, Sonnet 5, Haiku 5.5     | disabled                | adaptive          | adaptive, and the effort       |
| Sonnet 5.5                      | between_tools           | adaptive          | adaptive, and the effort       |
| Opus 5.5, Fable, Mythos         | effort low: the least   | adaptive          | adaptive, and the effort       |
| Claude 3                        | nothing                 | nothing: it never | nothing                        |
| another's, at a gateway         | nothing                 | as 4.5            | as 4.5                         |

None, where nobody has said anything, is nothing to say; from Opus 5 on models then think by themselves. Adaptive
thinking is always asked for with its summary: some models show none unless they are asked, and whether a client sees it
is decided elsewhere.

A budget leaves 8,192 tokens to the answer, or half of a smaller limit; where that makes it less than the vendor's
smallest budget there is none. Temperature and the like are never set: the vendor has removed them.

Sources, under platform.claude.com/docs/en: see `models`; build-with-claude/extended-thinking (a budget is at least
1,024 and below `max_tokens`); build-with-claude/effort; build-with-claude/thinking, "Controlling thinking display".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from insika.choices import Thinking
from insika.providers.anthropic.models import Depth, Family, Off

ANSWER_TOKENS = 8_192
"""What an answer may have when nobody has said: a long one. Only what is said is charged, and counted against limits
(api/rate-limits, "OTPM")."""
THINKING_ANSWER_TOKENS = 32_000
"""The same where the model also decides how much of it it thinks."""
SMALLEST_BUDGET = 1_024
BUDGETS = {Thinking.ON: 8_192, Thinking.LOW: 2_048, Thinking.MEDIUM: 8_192, Thinking.HIGH: 24_576}

_EFFORTS = frozenset({Thinking.LOW, Thinking.MEDIUM, Thinking.HIGH})


@dataclass(frozen=True, slots=True)
class Plan:
    """`parameters` are those of the request. `thinks`: the model may think, so that what it thought before goes back to
    it. `by_budget`: the vendor wants the running loop to begin with thinking. `droppable`: thinking that is bound to
    another prompt can be left to the vendor to drop."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    thinks: bool = False
    by_budget: bool = False
    droppable: bool = False


def plan(thinking: Thinking | None, max_tokens: int | None, family: Family) -> Plan:
    """`max_tokens` None: what is sensible here; more than the model's largest output is cut to that."""
    if thinking is None:
        return _by_itself(max_tokens, family) if family.thinks else without_thinking(max_tokens, family)
    if thinking is Thinking.OFF:
        return _off(max_tokens, family)
    match family.depth:
        case Depth.EFFORT:
            return _adaptive(thinking, max_tokens, family)
        case Depth.BUDGET:
            return _budgeted(thinking, max_tokens, family)
        case Depth.NEVER:
            return without_thinking(max_tokens, family)


def without_thinking(max_tokens: int | None, family: Family, **said: Mapping[str, Any]) -> Plan:
    """The model does not think; `said` is what tells it so, where it must be told."""
    return Plan({"max_tokens": _limit(max_tokens, ANSWER_TOKENS, family), **said})


def _by_itself(max_tokens: int | None, family: Family) -> Plan:
    limit = _limit(max_tokens, THINKING_ANSWER_TOKENS, family)
    return Plan({"max_tokens": limit}, thinks=True, droppable=True)


def _off(max_tokens: int | None, family: Family) -> Plan:
    match family.off:
        case Off.UNSAID:
            return without_thinking(max_tokens, family)
        case Off.DISABLED:
            return without_thinking(max_tokens, family, thinking={"type": "disabled"})
        case Off.BETWEEN_TOOLS:
            limit = _limit(max_tokens, ANSWER_TOKENS, family)
            return Plan({"max_tokens": limit, "thinking": {"type": "between_tools"}}, thinks=True)
        case Off.LEAST:
            least = _by_itself(max_tokens, family)
            return Plan({**least.parameters, "output_config": {"effort": "low"}}, thinks=True, droppable=True)


def _adaptive(thinking: Thinking, max_tokens: int | None, family: Family) -> Plan:
    parameters: dict[str, Any] = {
        "max_tokens": _limit(max_tokens, THINKING_ANSWER_TOKENS, family),
        "thinking": {"type": "adaptive", "display": "summarized"},
    }
    if thinking in _EFFORTS:
        parameters["output_config"] = {"effort": thinking.value}
    return Plan(parameters, thinks=True, droppable=True)


def _budgeted(thinking: Thinking, max_tokens: int | None, family: Family) -> Plan:
    wanted = BUDGETS[thinking]
    limit = _limit(max_tokens, wanted + ANSWER_TOKENS, family)
    budget = min(wanted, max(limit - ANSWER_TOKENS, limit // 2))
    if budget < SMALLEST_BUDGET:
        return without_thinking(max_tokens, family)
    asked = {"type": "enabled", "budget_tokens": budget}
    return Plan({"max_tokens": limit, "thinking": asked}, thinks=True, by_budget=True)


def _limit(max_tokens: int | None, otherwise: int, family: Family) -> int:
    return max(1, min(otherwise if max_tokens is None else max_tokens, family.max_output))
