"""Everything in one process: the composition root of `insika dev`, the demo, and whoever embeds Insika.

Nothing is decided here; this only makes the parts and lets them know each other. The in-process bus is a pair of
hints, so a process that ends may forget it: the store carries the truth.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from actors.configuration import Configuration
from actors.deliveries import Deliveries
from actors.environment import Environment
from actors.ingress import Ingress
from actors.lease import LeaseKeeper
from actors.parts import Parts
from actors.references import log_what_is_missing
from actors.roll_up import RollUp
from actors.runtime import Runtime
from actors.stores import Stores, migrate_database, open_stores
from actors.sweeper import Sweeper
from actors.tool_set import tool_set
from actors.turn_world import turn_world
from insika.coordination.local import LocalEventStream, local_coordination
from outbox.recovery import RecoveredDeliveries

__all__ = ["Embedded", "LocalBus", "Parts"]


class LocalBus:
    """Hints and signals within one process. Until `connect`ed it forgets them."""

    def __init__(self) -> None:
        self._deliveries: Deliveries | None = None
        self._runtime: Runtime | None = None

    def connect(self, runtime: Runtime, deliveries: Deliveries) -> None:
        self._runtime, self._deliveries = runtime, deliveries

    def session(self, session_id: int) -> None:
        if self._runtime is not None:
            self._runtime.wake(session_id)

    def delivery(self) -> None:
        if self._deliveries is not None:
            self._deliveries.ring()

    def publish(self, session_id: int) -> None:
        """Something urgent lies in this session's mailbox."""
        if self._runtime is not None:
            self._runtime.signal(session_id)


class Embedded:
    """Use as `async with await Embedded.open(environment, parts) as insika:`. Its parts are public for reading."""

    def __init__(self, environment: Environment, parts: Parts, stores: Stores) -> None:
        self._environment = environment
        self._parts = parts
        self._stores = stores
        self.store = stores.store
        self.outbox = stores.outbox
        self.events = LocalEventStream()
        coordination = replace(local_coordination(parts.clock), events=self.events)
        self.tools = tool_set(environment, parts)
        self.configuration = Configuration(self.store, self.tools.problems)
        self.bus = LocalBus()
        world = turn_world(environment, parts, self.store, self.configuration, self.tools, coordination, self.bus)
        keeper = LeaseKeeper(self.store.renewal(), environment.lease_s, parts.clock, self._urgent)
        self.runtime = Runtime(world, keeper, environment.slots)
        self.deliveries = Deliveries(environment, parts, self.outbox, self.configuration, self.events)
        self.ingress = Ingress(
            self.store,
            self.configuration,
            events=self.events,
            clock=parts.clock,
            wakes=self.bus,
            signals=self.bus,
            crash=parts.crash,
        )
        self.sweeper = Sweeper(
            self.store,
            self.bus,
            parts.clock,
            self.deliveries.expire_claims,
            self.configuration.refresh,
            outage=keeper.outage,
            roll_up=RollUp(self.store, parts.clock).run_once,
        )
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._resources = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(cls, environment: Environment, parts: Parts) -> Self:
        """Open the store (migrating it where that is needed) and read the configuration; nothing runs yet.

        An agent that names a model or a tool which is not here is warned of and stays: other processes may have them.
        Raises InvalidConfiguration, or what opening the store raises."""
        await migrate_database(environment, parts.clock)
        stores = await open_stores(environment, parts.clock)
        try:
            embedded = cls(environment, parts, stores)
            await embedded.configuration.apply_files(environment.settings, environment.agents_dir)
            await embedded.configuration.refresh()
            log_what_is_missing(embedded.configuration, parts, embedded.tools, runs_turns=True)
        except BaseException:
            await stores.close()
            raise
        return embedded

    async def __aenter__(self) -> Self:
        """Start: from here on sessions run and deliveries leave. What an earlier process left is picked up first."""
        self._resources.push_async_callback(self._parts.models.aclose)
        await self._resources.enter_async_context(self.deliveries)
        self.bus.connect(self.runtime, self.deliveries)
        self.runtime.start()
        await self.sweeper.run_once()
        self._tasks = [
            asyncio.create_task(self.deliveries.run(self._stop)),
            asyncio.create_task(self.sweeper.run(self._stop)),
        ]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Drain: within the drain time turns come to their next boundary or answer, and deliveries under way to their
        end. What takes longer is handed over, or cut and told as uncertain.

        Cancelled, which is how a loop ends that something broke, it hands over nothing: whatever runs has lost its
        owner, and that must be counted, or a turn that breaks its process would break one after the other.
        """
        self._stop.set()
        self.deliveries.ring()
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        leave = self.runtime.abandon() if cancelled else self.runtime.drain(self._environment.drain_s)
        await asyncio.gather(leave, self._end_tasks())
        await self._resources.aclose()
        await self._stores.close()

    async def close(self) -> None:
        """For whoever has opened it and does not start it."""
        await self._stores.close()

    async def _end_tasks(self) -> None:
        _, late = await asyncio.wait(self._tasks, timeout=self._environment.drain_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def recover_deliveries(self) -> RecoveredDeliveries:
        """Send what is due and settle what a dead process left, once."""
        return await self.deliveries.recover()

    def _urgent(self, session_id: int) -> None:
        self._loop.call_soon_threadsafe(self.runtime.signal, session_id)
