"""Finds what is due: sessions without an owner, claims that ran out, deliveries that wait.

Due times are rows, so that nothing has to be kept in a process to be remembered. Two sweepers at once are as good as
one, and a worker may sweep for itself: what it does is only to look and to wake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from actors.lease import Outage
from actors.wakes import Wakes
from insika.clock import DUE_NOW, Clock
from insika.storage.port import OwnerStore, StoreUnavailable

POLL_S = 0.5
"""The longest a sweeper sleeps: another process may have written to the store without telling this one."""
BREATH_S = 0.01
WOKEN_AT_MOST = 500
"""Sessions in one sweep."""
OUTAGE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Swept:
    """How many sessions were woken, and how many deliveries became uncertain because their claim ran out."""

    woken: int
    uncertain: int


async def _somebody_else_does() -> int:
    return 0


class Sweeper:
    """`expire_claims` settles what an outbox worker left behind; `refresh` learns what was configured meanwhile;
    `roll_up` sums up what models have cost.

    `room`: how many sessions may be woken now. What is found counts as woken, so nobody else looks at it for seconds:
    who runs sessions must not find more than it can take."""

    def __init__(
        self,
        store: OwnerStore,
        wakes: Wakes,
        clock: Clock,
        expire_claims: Callable[[], Awaitable[int]],
        refresh: Callable[[], Awaitable[None]],
        *,
        outage: Outage,
        roll_up: Callable[[], Awaitable[int]] = _somebody_else_does,
        room: Callable[[], int] = lambda: WOKEN_AT_MOST,
        poll_s: float = POLL_S,
    ) -> None:
        self._room = room
        self._poll_s = poll_s
        self._store = store
        self._wakes = wakes
        self._clock = clock
        self._expire_claims = expire_claims
        self._refresh = refresh
        self._outage = outage
        self._roll_up = roll_up
        self._overdue_s = BREATH_S
        self._log = structlog.get_logger("insika.sweeper")

    async def run_once(self) -> Swept:
        """Raises StoreUnavailable."""
        await self._refresh()
        room = min(self._room(), WOKEN_AT_MOST)
        due = await self._store.due_sessions(room) if room > 0 else ()
        for session_id in due:
            self._wakes.session(session_id)
        uncertain = await self._expire_claims()
        self._wakes.delivery()
        await self._roll_up()
        return Swept(len(due), uncertain)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.run_once()
                pause = await self._until_next_due()
            except StoreUnavailable as error:
                self._outage.noticed(error)
                self._log.warning("store unavailable", reason=error.message)
                pause = OUTAGE_PAUSE_S
            except Exception:
                # Unforeseen, but a sweeper that ended would leave what is due asleep for good.
                self._log.exception("sweep failed")
                pause = OUTAGE_PAUSE_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stop.wait()

    async def _until_next_due(self) -> float:
        due_at = await self._store.next_due_at()
        if due_at == DUE_NOW:
            return self._poll_s  # woken just now; asking again at once would only spin
        left_s = (due_at - self._clock.now()).total_seconds()
        if left_s > 0:
            self._overdue_s = BREATH_S
            return min(self._poll_s, max(BREATH_S, left_s))
        # The store, which decides, has just found nothing: this machine's clock is ahead of its, by who knows how much.
        pause_s, self._overdue_s = self._overdue_s, min(self._poll_s, 2 * self._overdue_s)
        return pause_s
