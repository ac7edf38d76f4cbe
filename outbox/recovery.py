"""Picks up what a process that died left in the outbox. Safe to run twice at once, and at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from insika.clock import Clock
from insika.events import EventSink
from outbox.delivery import Deliverer
from outbox.event import settled_event
from outbox.message import DeliveryRow, DeliveryState
from outbox.states import Delivered, Uncertain
from outbox.store import AlertsOf, OutboxStore, no_alerts

_log = structlog.get_logger("insika.outbox")


@dataclass(frozen=True, slots=True)
class RecoveredDeliveries:
    """`sent` were delivered by this recovery, `uncertain` became so by it, `pending` are left for later tries,
    `sending` are claimed by a process whose claim has not run out: it is sending them, or has died just now."""

    sent: int
    uncertain: int
    pending: int
    sending: int


async def sweep(store: OutboxStore, events: EventSink, clock: Clock, alerts: AlertsOf) -> Sequence[DeliveryRow]:
    """End the claims that ran out, and tell of those that are uncertain now. Answers those alone."""
    uncertain = [row for row in await store.sweep_expired(alerts) if row.state is DeliveryState.UNCERTAIN]
    for row in uncertain:
        _log.warning("delivery_uncertain", delivery_id=row.id, channel=row.channel, reason=row.reason)
        event = settled_event(row, Uncertain(row.reason or ""), clock.now())
        if event is not None:
            events.publish(event)
    return uncertain


async def recover_deliveries(
    store: OutboxStore,
    deliverer: Deliverer,
    events: EventSink,
    clock: Clock,
    alerts: AlertsOf = no_alerts,
    *,
    at_once: int = 8,
) -> RecoveredDeliveries:
    """Sweep, then send all that is due, `at_once` at a time. Raises StoreUnavailable."""
    swept = await sweep(store, events, clock, alerts)
    sent = uncertain = 0

    async def drain() -> None:
        nonlocal sent, uncertain
        while (decision := await deliverer.deliver_next()) is not None:
            sent += isinstance(decision, Delivered)
            uncertain += isinstance(decision, Uncertain)

    # What is being sent when the store goes away is seen to its end, before anybody is told that it went.
    for ended in await asyncio.gather(*(drain() for _ in range(at_once)), return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
    counts = await store.counts()
    return RecoveredDeliveries(
        sent, len(swept) + uncertain, counts[DeliveryState.PENDING], counts[DeliveryState.DELIVERING]
    )
