"""The worker: runs the turns of sessions, each by an actor on this process's loop.

A wake is taken only while a slot is free, and forgotten as soon as it is decided who has the session: no message of
the broker and no thread waits for a turn. What no wake tells of (a lost hint, a session whose owner died) is found by
the worker's own sweep, as far as it has room.
"""

from __future__ import annotations

import asyncio

from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.environment import Environment
from actors.lease import LeaseKeeper
from actors.parts import Parts
from actors.processes.ground import Ground, prepared
from actors.processes.running import CONSUMER_STOP_S, on_loop, until_stopped
from actors.runtime import Runtime
from actors.sweeper import Sweeper
from actors.turn_world import turn_world

WAKE_THREADS = 8
"""Claims under way at once: each holds a thread for as long as its statement takes."""
SWEEP_S = 1.0


async def run_worker(environment: Environment, parts: Parts, stop: asyncio.Event) -> None:
    """Until `stop` is set; then takes nothing more and drains. Raises as `prepared` does."""
    async with prepared(environment, parts, "worker", stop) as ground:
        try:
            await Worker(ground, asyncio.get_running_loop()).run(stop)
        finally:
            await parts.models.aclose()


class Worker:
    def __init__(self, ground: Ground, loop: asyncio.AbstractEventLoop) -> None:
        environment, parts, store = ground.environment, ground.parts, ground.stores.store
        self._ground = ground
        self._loop = loop
        world = turn_world(
            environment, parts, store, ground.configuration, ground.tools, ground.coordination, ground.hints
        )
        keeper = LeaseKeeper(store.renewal(), environment.lease_s, parts.clock, self._urgent)
        gate = Gate()
        self._runtime = Runtime(world, keeper, environment.slots, gate.set)
        self._sweeper = Sweeper(
            store,
            _OwnWakes(self._runtime),
            parts.clock,
            _no_claims_here,
            ground.configuration.refresh,
            outage=keeper.outage,
            room=lambda: self._runtime.free,
            poll_s=SWEEP_S,
        )
        self._consuming = Consuming.of_wakes(
            ground.amqp_url, environment.queue_type, self._wake, gate, threads=WAKE_THREADS
        )

    async def run(self, stop: asyncio.Event) -> None:
        """In the end wakes stop first, then turns come to a boundary or are handed over: while they do, leases are
        renewed and hints go out."""
        with self._ground.coordination.signals.listen(self._runtime.signal):
            self._runtime.start()
            self._consuming.start()
            sweeping = asyncio.create_task(self._sweeper.run(stop))
            try:
                await until_stopped("worker", stop, sweeping)
            except asyncio.CancelledError:
                # Something broke the loop: nobody owns what runs here, and that must be counted.
                await self._runtime.abandon()
                raise
            finally:
                stop.set()
                await asyncio.to_thread(self._consuming.stop, CONSUMER_STOP_S)
            await self._runtime.drain(self._ground.environment.drain_s)
            await sweeping

    def _wake(self, session_id: int) -> None:
        """On one of the consumer's threads, until it is decided who has the session."""
        if not on_loop(self._loop, self._runtime.take(session_id)):
            self._ground.hints.session(session_id)  # somebody else may have room

    def _urgent(self, session_id: int) -> None:
        """On the lease keeper's thread."""
        self._loop.call_soon_threadsafe(self._runtime.signal, session_id)


class _OwnWakes:
    """What the worker's sweep finds, it runs itself."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def session(self, session_id: int) -> None:
        self._runtime.wake(session_id)

    def delivery(self) -> None:
        return None


async def _no_claims_here() -> int:
    """Deliveries are the outbox process's."""
    return 0
