"""The events by which the outbox tells what became of a delivery: ids, counts and reasons, never what was said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from insika.events import Event, EventType
from outbox.message import Subject
from outbox.states import Decision, Delivered, Failed, RetryIn, Uncertain


def settled_event(delivery: Subject, decision: Decision, at: datetime) -> Event | None:
    """What to tell of a delivery that has been settled; None when it will be tried again."""
    facts: dict[str, Any] = {"delivery_id": delivery.id, "channel": delivery.channel, "attempts": delivery.attempts}
    match decision:
        case Delivered(status):
            return _event(EventType.DELIVERY_DELIVERED, delivery, at, {**facts, "status": status})
        case Failed(reason):
            return _event(EventType.DELIVERY_FAILED, delivery, at, {**facts, "outcome": "failed", "reason": reason})
        case Uncertain(reason):
            return _event(EventType.DELIVERY_FAILED, delivery, at, {**facts, "outcome": "uncertain", "reason": reason})
        case RetryIn():
            return None


def overtook_event(delivery: Subject, at: datetime) -> Event:
    """An earlier delivery of the same lane is still open; this one has waited for it long enough and goes first."""
    return _event(EventType.DELIVERY_OVERTOOK, delivery, at, {"delivery_id": delivery.id, "channel": delivery.channel})


def _event(kind: EventType, delivery: Subject, at: datetime, data: Mapping[str, Any]) -> Event:
    # An answer names its turn at its top, an alert in its `meta`.
    told: Mapping[str, Any] = {**delivery.payload.get("meta", {}), **delivery.payload}
    return Event(
        type=kind,
        at=at,
        turn_id=told.get("turn_id"),
        session=told.get("session"),
        agent=told.get("agent"),
        tenant=told.get("tenant"),
        data=data,
    )
