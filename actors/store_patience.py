"""How an owner waits for a store that does not answer, and finds out afterwards whether the session is still its own.

An outage alone is no death: while nobody could renew a lease, nobody took what ran out.
"""

from __future__ import annotations

import asyncio

import structlog

from actors.lease import Lease
from actors.world import World
from insika.errors import LeaseLost
from insika.storage.port import StoreUnavailable

STORE_PAUSE_S = 0.2
"""Between two tries at a store that does not answer."""

OUTAGE_LEASES = 20
"""Leases for which an owner waits for a store that does not answer, before it lets its session go."""


class StorePatience:
    """`in_vain`, wherever it is given: how often in a row this owner has loaded and found nothing changed."""

    def __init__(self, lease: Lease, world: World) -> None:
        self._lease = lease
        self._world = world
        self._log = structlog.get_logger("insika.sessions").bind(session_id=lease.fence.session_id)

    async def ask_whose_it_is(self, in_vain: int) -> None:
        """After a pause of this process, or an outage that has just ended, nobody may have come for the session yet.
        Raises LeaseLost when somebody has."""
        try:
            await self._still_ours()
        except StoreUnavailable as error:
            await self.wait(error, in_vain)

    async def wait(self, error: StoreUnavailable, in_vain: int) -> None:
        """Until it takes writes again, and longer each time that it did so in vain: a store that can only be read would
        have this owner do again, and again, what it could not write. Raises LeaseLost."""
        gives_up_at = self._world.clock.monotonic() + OUTAGE_LEASES * self._lease.length_s
        while self._world.clock.monotonic() < gives_up_at:
            self._log.warning("store unavailable", reason=error.message)
            await asyncio.sleep(STORE_PAUSE_S * 2**in_vain)
            try:
                await self._still_ours()
                return
            except StoreUnavailable as again:
                error = again
        raise LeaseLost("the store has not answered for so long that this session is left to others")

    async def _still_ours(self) -> None:
        """Returns when the session is ours and the lease good: one that ran out is good again by its next renewal.
        Raises LeaseLost when another worker has the session, or when no renewal succeeds within a lease."""
        until = self._world.clock.monotonic() + self._lease.length_s
        while True:
            if not await self._world.store.confirm(self._lease.fence):
                raise LeaseLost("another worker has taken this session")
            if self._lease.good:
                return
            if self._world.clock.monotonic() >= until:
                raise LeaseLost("the lease was not renewed in time; another worker may have this session")
            await asyncio.sleep(STORE_PAUSE_S)
