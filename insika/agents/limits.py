"""The numbers that bound a turn: as a profile gives them, and as a turn has them frozen.

`turn_limits` merges agent and platform once, when a turn starts; from then on the turn keeps what it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Protocol

from pydantic import Field, ValidationInfo, field_validator

from insika.agents.precedence import first_present, queue_mode_in_force
from insika.agents.queue_rules import QueueRules
from insika.agents.thinking import thinking_in_force
from insika.choices import OnExhausted, QueueMode, Thinking

NO_LIMIT = 2**31 - 1
"""A mailbox without a limit. A number that any store can compare with."""

_DAY_S = 86_400
_Seconds = Annotated[float, Field(gt=0, le=7 * _DAY_S)]


class Limits(QueueRules):
    """The `limits` of a profile. Times are in seconds.

    `max_tool_calls` null: no budget. `max_tool_repeat` below 2: off. `context_budget` counts tokens of history for
    each request, estimated; null sends all of it. `chat_rate_limit` and `agent_token_ceiling`: absent inherits the
    platform's, null and 0 are off for this agent.
    """

    turn_timeout: _Seconds = 300.0
    tool_timeout: _Seconds = 60.0
    approval_timeout: Annotated[float, Field(gt=0, le=366 * _DAY_S)] = 3_600.0
    max_tool_calls: Annotated[int, Field(gt=0, le=1_000_000)] | None = 50
    on_exhausted: OnExhausted = OnExhausted.RAISE
    max_tool_repeat: Annotated[int, Field(le=1_000_000)] = 3
    tool_concurrency: Annotated[int, Field(ge=1, le=1_000)] = 1
    context_budget: Annotated[int, Field(gt=0, le=1_000_000_000)] | None = None
    chat_rate_limit: Annotated[int, Field(ge=0)] | None = None
    agent_token_ceiling: Annotated[int, Field(ge=0)] | None = None

    @field_validator("on_exhausted")
    @classmethod
    def _has_something_to_exhaust(cls, policy: OnExhausted, info: ValidationInfo) -> OnExhausted:
        # A max_tool_calls that is wrong itself is missing here and has its own error.
        if policy is OnExhausted.SYNTHESIZE and info.data.get("max_tool_calls", 1) is None:
            raise ValueError("synthesize needs a max_tool_calls: without a limit there is nothing to exhaust")
        return policy


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """What a turn has to keep, frozen at its start. The defaults are those of a profile that says nothing.

    `max_tool_calls` None: no budget. `max_tool_repeat` 0: no guard. `context_budget` None: all of the history.
    `steer_max_messages` 0: nothing joins. `steer_join` None: texts join as they are. `mailbox_max` is NO_LIMIT when
    there is none. `thinking` None: nobody has said how much the model is to reason, and the vendor's own default holds;
    so it is with `max_output_tokens`, of one model request. `past_budget`: the agent's soft budget was used up when the
    turn began.
    """

    turn_timeout_s: float = 300.0
    tool_timeout_s: float = 60.0
    approval_timeout_s: float = 3_600.0
    max_tool_calls: int | None = 50
    on_exhausted: OnExhausted = OnExhausted.RAISE
    max_tool_repeat: int = 3
    tool_concurrency: int = 1
    context_budget: int | None = None
    queue_mode: QueueMode = QueueMode.FOLLOWUP
    debounce_ms: int = 0
    debounce_max_ms: int = 10_000
    steer_max_messages: int = 5
    steer_join: str | None = None
    mailbox_max: int = 50
    thinking: Thinking | None = None
    max_output_tokens: int | None = None
    past_budget: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, for the turn's row."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: str(value) if isinstance(value, str) else value for name, value in values}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TurnLimits:
        """What `as_dict` gave. A row of another version may lack a number (its default counts) or have one more (it
        is left alone)."""
        known = {field.name for field in fields(cls)}
        found = {name: value for name, value in stored.items() if name in known}
        for name, choices in (("on_exhausted", OnExhausted), ("queue_mode", QueueMode), ("thinking", Thinking)):
            if found.get(name) is not None:
                found[name] = choices(found[name])
        return cls(**found)


class HasParams(Protocol):
    """What is passed on to a model, as one layer says it."""

    @property
    def thinking(self) -> Thinking | None: ...
    @property
    def max_tokens(self) -> int | None: ...


class HasLimits(Protocol):
    """An agent, as far as its limits and its model go. `model` is the whole reference."""

    @property
    def model(self) -> str: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def params(self) -> HasParams: ...


class Platform(Protocol):
    """The platform's settings, as far as they bound a turn. `model_params` are by model reference."""

    @property
    def queue(self) -> QueueRules: ...
    @property
    def thinking(self) -> Thinking | None: ...
    @property
    def model_params(self) -> Mapping[str, HasParams]: ...


class _SaysNothing:
    thinking: Thinking | None = None
    max_tokens: int | None = None


_SAYS_NOTHING = _SaysNothing()


def turn_limits(
    profile: HasLimits,
    platform: Platform,
    session_queue_mode: QueueMode | None = None,
    session_thinking: Thinking | None = None,
) -> TurnLimits:
    """The limits of a turn of this agent on this platform; what the session has of its own comes first."""
    limits = profile.limits
    agent, general = limits.given(), platform.queue.given()
    of_model = platform.model_params.get(profile.model, _SAYS_NOTHING)
    params = profile.params

    def rule(key: str, default: int) -> int:
        return first_present(key, agent, general, default=default) or 0

    default = TurnLimits()
    return TurnLimits(
        turn_timeout_s=limits.turn_timeout,
        tool_timeout_s=limits.tool_timeout,
        approval_timeout_s=limits.approval_timeout,
        max_tool_calls=limits.max_tool_calls,
        on_exhausted=limits.on_exhausted,
        max_tool_repeat=limits.max_tool_repeat if limits.max_tool_repeat >= 2 else 0,
        tool_concurrency=limits.tool_concurrency,
        context_budget=limits.context_budget,
        queue_mode=queue_mode_in_force(None, session_queue_mode, agent, general),
        debounce_ms=rule("debounce_ms", default.debounce_ms),
        debounce_max_ms=rule("debounce_max_ms", default.debounce_max_ms) or default.debounce_max_ms,
        steer_max_messages=rule("steer_max_messages", default.steer_max_messages),
        steer_join=first_present("steer_join", agent, general, default=default.steer_join),
        mailbox_max=rule("mailbox_max", default.mailbox_max) or NO_LIMIT,
        thinking=thinking_in_force(session_thinking, params.thinking, of_model.thinking, platform.thinking),
        max_output_tokens=params.max_tokens if params.max_tokens is not None else of_model.max_tokens,
    )
