"""Keeps the outbox moving in one process: claims while there are free slots, sleeps until there is reason to look.

It never polls a store that has nothing due, and it outlives a store that is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from tenacity.wait import wait_exponential_jitter

from insika.clock import Clock
from insika.events import EventSink
from insika.storage.port import StoreUnavailable
from outbox.delivery import Deliverer
from outbox.policy import strategy_wait_s
from outbox.recovery import sweep
from outbox.states import Decision
from outbox.store import AlertsOf, OutboxStore, no_alerts

IDLE_S = 2.0
"""How long to sleep at most: what another process writes rings no bell here."""
_BREATH_S = 0.05

_log = structlog.get_logger("insika.outbox")


class Wake(Protocol):
    def ring(self) -> None: ...

    async def wait(self, timeout_s: float) -> None: ...


class DeliveryLoop:
    """`slots` deliveries at once; each has its own connection, so a slow receiver holds up one slot. `alerts`: who is
    told of what a sender that died has left."""

    def __init__(
        self,
        store: OutboxStore,
        deliverer: Deliverer,
        wake: Wake,
        clock: Clock,
        events: EventSink,
        *,
        alerts: AlertsOf = no_alerts,
        slots: int = 16,
        idle_s: float = IDLE_S,
    ) -> None:
        self._store = store
        self._deliverer = deliverer
        self._wake = wake
        self._clock = clock
        self._events = events
        self._alerts = alerts
        self._slots = asyncio.Semaphore(slots)
        self._idle_s = idle_s
        self._overdue_s = _BREATH_S
        self._away = wait_exponential_jitter(multiplier=0.25, max=10, jitter=0.25)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then claims no more, and returns when what was claimed is settled. Cancelling it cuts
        short what is being sent, and says so in the rows."""
        failures = 0
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ring_on(stop))
            while not stop.is_set():
                try:
                    claimed = await self._claim(stop)
                    if claimed is not None:
                        group.create_task(self._in_slot(claimed))
                    else:
                        await self._idle(stop)
                    failures = 0
                except Exception as error:
                    failures += 1
                    await self._wake.wait(self._back_off(error, failures))

    def _back_off(self, error: Exception, failures: int) -> float:
        """How long to leave the store alone, in seconds. A loop that ended would leave every answer where it is."""
        wait_s = strategy_wait_s(self._away, failures)
        if isinstance(error, StoreUnavailable):
            _log.warning("store_away", doing="claim", attempt=failures, reason=error.message, wait_s=wait_s)
        else:
            _log.error("claiming_failed", attempt=failures, wait_s=wait_s, exc_info=error)
        return wait_s

    async def _claim(self, stop: asyncio.Event) -> Callable[[], Awaitable[Decision]] | None:
        """Takes a slot with what it claims, and none without."""
        await self._slots.acquire()
        claimed = None
        try:
            if not stop.is_set():
                claimed = await self._deliverer.claim()
        finally:
            if claimed is None:
                self._slots.release()
        return claimed

    async def _in_slot(self, deliver: Callable[[], Awaitable[Decision]]) -> None:
        try:
            await deliver()
        except Exception:
            # Unforeseen. The row keeps its claim until that runs out, and then says that nobody knows.
            _log.exception("delivering_failed")
        finally:
            self._slots.release()
            # What waited behind it in its lane may go now.
            self._wake.ring()

    async def _idle(self, stop: asyncio.Event) -> None:
        if stop.is_set():
            return
        due_in_s = (await self._store.next_due_at() - self._clock.now()).total_seconds()
        if due_in_s <= 0 and await sweep(self._store, self._events, self._clock, self._alerts):
            return
        await self._wake.wait(self._nap(due_in_s))

    def _nap(self, due_in_s: float) -> float:
        if due_in_s > 0:
            self._overdue_s = _BREATH_S
            return min(max(due_in_s, _BREATH_S), self._idle_s)
        # The store, which decides, has just found nothing: this machine's clock is ahead of its, by who knows how much.
        nap_s, self._overdue_s = self._overdue_s, min(self._idle_s, 2 * self._overdue_s)
        return nap_s

    async def _ring_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.ring()
