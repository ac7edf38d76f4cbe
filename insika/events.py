"""What happened, for those who watch. Events are hints: a store query tells the truth.

An event carries counts, ids and times, never what a person or a model said; the content events (`content`,
`thinking`, `intermediate`) are the exception, and exist for clients that stream.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol


class EventType(enum.StrEnum):
    TURN_ACCEPTED = "turn_accepted"
    TURN_COALESCED = "turn_coalesced"
    TURN_STARTED = "turn_started"
    TURN_RESUMED = "turn_resumed"
    TURN_STEERED = "turn_steered"
    TURN_STEER_RELEASED = "turn_steer_released"
    TURN_SUSPENDED = "turn_suspended"
    TURN_HELD = "turn_held"
    """An operator's hold took effect in the middle of this turn."""
    MESSAGE_WITHDRAWN = "message_withdrawn"
    TURN_INTERRUPTED = "turn_interrupted"
    TURN_COMPLETED = "turn_completed"
    TURN_FAILED = "turn_failed"
    TURN_CANCELLED = "turn_cancelled"
    TOOL_CALLED = "tool_called"
    TOOL_RETURNED = "tool_returned"
    TOOL_BUDGET_WARNED = "tool_budget_warned"
    TOOL_REPETITION_WARNED = "tool_repetition_warned"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    GUARDRAIL_BLOCKED = "guardrail_blocked"
    GUARDRAIL_FLAGGED = "guardrail_flagged"
    LIMIT_BREACHED = "limit_breached"
    BUDGET_WARNING = "budget_warning"
    PROVIDER_FAILURE = "provider_failure"
    PROVIDER_FALLBACK = "provider_fallback"
    BREAKER_OPEN = "breaker_open"
    ROUTE_CLASSIFIED = "route_classified"
    TURN_STUCK = "turn_stuck"
    DELIVERY_DELIVERED = "delivery_delivered"
    DELIVERY_FAILED = "delivery_failed"
    DELIVERY_OVERTOOK = "delivery_overtook"
    CONTENT = "content"
    """A piece of what a model says, as it comes: until its message is whole nobody knows whether it is the answer or
    narration, nor whether the attempt will be worth anything. Drop it when the attempt fails, a newer one begins, or
    `intermediate` names its step."""
    THINKING = "thinking"
    """A piece of a model's reasoning, as it comes: as provisional as `content`."""
    INTERMEDIATE = "intermediate"
    """A step has called tools, and what its attempt has shown is kept: `text` is what it said beside its calls, which
    is narration and never the answer. Empty where it only reasoned."""
    TTFT = "ttft"
    """The first piece of a turn's first model request has come: `ttft_ms` after the request was sent. When the request
    has to be made again, so is this."""
    EVENTS_MISSED = "events_missed"
    """Not of a turn: here the stream lacks events that somebody published."""


class Event(NamedTuple):
    """One thing that happened. A named tuple, because a streamed answer makes one for every word.

    `seq` is given by the stream that publishes it (0 until then). `epoch`, `step` and `attempt` (at the step's model
    request) order what the owners of a turn said of its steps: a reader drops what is older than what it has seen. An
    event of no step has step 0, and is never old."""

    type: str
    at: datetime
    turn_id: str | None = None
    session: str | None = None
    agent: str | None = None
    tenant: str | None = None
    epoch: int = 0
    step: int = 0
    attempt: int = 1
    data: Mapping[str, Any] = MappingProxyType({})
    seq: int = 0

    def numbered(self, seq: int) -> Event:
        """The same event, with its place in a stream."""
        return Event(*self[:-1], seq)

    def as_dict(self) -> dict[str, Any]:
        """One flat object, as it goes over the wire; the event's own fields stand beside the common ones."""
        return {
            **self.data,
            "type": str(self.type),
            "seq": self.seq,
            "at": self.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "turn_id": self.turn_id,
            "session": self.session,
            "agent": self.agent,
            "tenant": self.tenant,
            "epoch": self.epoch,
            "step": self.step,
            "attempt": self.attempt,
        }


class EventSink(Protocol):
    """Where events go. Publishing never blocks and never raises: losing an event loses no work."""

    def publish(self, event: Event) -> None: ...


class NoEvents:
    def publish(self, event: Event) -> None:
        return None
