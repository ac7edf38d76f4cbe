"""Adds settled model calls to the sums of their days, so that reading what an agent has spent stays cheap.

A convenience: what is not added up yet is counted all the same, and no sum changes by it. Whoever does it too, or does
it late, harms nothing.
"""

from __future__ import annotations

from datetime import timedelta

from insika.clock import Clock
from insika.storage.port import SpendStore

EVERY_S = 10.0
SETTLED_FOR_S = 60.0
"""Calls that began later are left for the next time: most corrections of an estimate have come by then."""
AT_MOST = 5_000
"""Calls in one write, which others wait behind."""


class RollUp:
    def __init__(self, store: SpendStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next = clock.monotonic()

    async def run_once(self) -> int:
        """Where it is time. Answers how many calls were added; as long as there are more, the next time is at once.
        Raises StoreUnavailable."""
        if self._clock.monotonic() < self._next:
            return 0
        added = await self._store.roll_up_spend(self._clock.now() - timedelta(seconds=SETTLED_FOR_S), limit=AT_MOST)
        if added < AT_MOST:
            self._next = self._clock.monotonic() + EVERY_S
        return added
