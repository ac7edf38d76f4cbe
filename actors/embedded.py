"""Everything in one process: the composition root of `insika dev`, the demo, and whoever embeds Insika.

Nothing is decided here; this only makes the parts and lets them know each other. The in-process bus is a pair of
hints, so a process that ends may forget it: the store carries the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Self

from actors.configuration import Configuration
from actors.environment import Environment
from actors.ingress import Ingress
from actors.lease import LeaseKeeper
from actors.references import log_what_is_missing
from actors.runtime import Runtime
from actors.samples.demo_agent import demo_profile
from actors.stage import Stage
from actors.sweeper import Sweeper
from actors.world import World
from insika.agents.profile import Profile
from insika.clock import Clock, SystemClock
from insika.coordination.local import LocalEventStream
from insika.crash_points import Crash, no_crash
from insika.providers.catalog import ModelCatalog
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from insika.tools.egress import EgressGuard
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from outbox.delivery import Deliverer
from outbox.loop import DeliveryLoop
from outbox.message import ClaimedDelivery
from outbox.recovery import RecoveredDeliveries, recover_deliveries, sweep
from outbox.sqlite_store import SqliteOutboxStore
from outbox.wake import WakeSignal
from outbox.webhook import Webhook


@dataclass(frozen=True, slots=True)
class Parts:
    """What differs between those who compose: models, tools, and what tests put in time's and death's place."""

    models: ModelCatalog
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    clock: Clock = field(default_factory=SystemClock)
    crash: Crash = no_crash


class LocalBus:
    """Hints within one process. Until `connect`ed it forgets them."""

    def __init__(self, deliveries: WakeSignal) -> None:
        self._deliveries = deliveries
        self._runtime: Runtime | None = None

    def connect(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def session(self, session_id: int) -> None:
        if self._runtime is not None:
            self._runtime.wake(session_id)

    def delivery(self) -> None:
        self._deliveries.ring()


class Embedded:
    """Use as `async with await Embedded.open(environment, parts) as insika:`. Its parts are public for reading."""

    def __init__(self, environment: Environment, parts: Parts, store: SqliteStore) -> None:
        self._environment = environment
        self._clock = parts.clock
        self.store = store
        self.events = LocalEventStream()
        self.configuration = Configuration(store)
        self.outbox = SqliteOutboxStore(store.database)
        self._ring = WakeSignal()
        self.bus = LocalBus(self._ring)
        stage = Stage(self.configuration, parts.models, parts.tools, ToolThreads(environment.slots))
        world = World(store, stage, self.events, parts.clock, self.bus, parts.crash)
        keeper = LeaseKeeper(store.renewal(), environment.lease_s, parts.clock)
        self.runtime = Runtime(world, keeper, environment.slots)
        self.ingress = Ingress(
            store,
            self.configuration,
            events=self.events,
            clock=parts.clock,
            wakes=self.bus,
            crash=parts.crash,
        )
        self._webhook = Webhook(egress_guard(environment), parts.clock)
        self.deliverer = Deliverer(
            self.outbox,
            self._webhook,
            self._secrets,
            parts.clock,
            self.events,
            crash=parts.crash,
        )
        self._delivery_loop = DeliveryLoop(
            self.outbox, self.deliverer, self._ring, parts.clock, self.events, slots=environment.slots
        )
        self.sweeper = Sweeper(
            store, self.bus, parts.clock, self._expire_claims, self.configuration.refresh, outage=keeper.outage
        )
        self._stop = asyncio.Event()
        self._resources = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(cls, environment: Environment, parts: Parts) -> Self:
        """Open the store (migrating it where that is needed) and read the configuration; nothing runs yet.

        An agent that names a model or a tool which is not here is warned of and stays: other processes may have them.
        Raises InvalidConfiguration, or what opening the store raises."""
        await asyncio.to_thread(migrate, environment.database_file, parts.clock.now)
        store = SqliteStore.open(environment.database_file, parts.clock.now)
        embedded = cls(environment, parts, store)
        try:
            await embedded.configuration.apply_files(environment.settings, environment.agents_dir)
            await embedded.configuration.refresh()
            log_what_is_missing(_written_by_users(embedded.configuration), parts.models, parts.tools)
        except BaseException:
            await store.close()
            raise
        return embedded

    async def __aenter__(self) -> Self:
        """Start: from here on sessions run and deliveries leave. What an earlier process left is picked up first."""
        await self._resources.enter_async_context(self._webhook)
        self.bus.connect(self.runtime)
        self.runtime.start()
        await self.sweeper.run_once()
        self._tasks = [
            asyncio.create_task(self._delivery_loop.run(self._stop)),
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
        self._ring.ring()
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        leave = self.runtime.abandon() if cancelled else self.runtime.drain(self._environment.drain_s)
        await asyncio.gather(leave, self._end_tasks())
        await self._resources.aclose()
        await self.store.close()

    async def _end_tasks(self) -> None:
        _, late = await asyncio.wait(self._tasks, timeout=self._environment.drain_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def recover_deliveries(self) -> RecoveredDeliveries:
        """Send what is due and settle what a dead process left, once."""
        return await recover_deliveries(self.outbox, self.deliverer, self.events, self._clock)

    def _secrets(self, delivery: ClaimedDelivery) -> Sequence[str]:
        # What was committed for a channel goes there, also when the channel leaves the settings meanwhile.
        channel = self.configuration.last_known_channel(delivery.channel)
        return channel.secrets if channel is not None else ()

    async def _expire_claims(self) -> int:
        return len(await sweep(self.outbox, self.events, self._clock))


def _written_by_users(configuration: Configuration) -> list[Profile]:
    """The sample agent stays in the store when its tools have made way for others; nobody needs to be told."""
    sample = demo_profile().revision()
    return [agent.profile for agent in configuration.agents.all_current() if agent.revision != sample]


def egress_guard(environment: Environment) -> EgressGuard:
    return EgressGuard(
        allow_http=environment.egress_allow_http,
        allow_private=environment.egress_allow_private,
        hosts=environment.egress_hosts,
    )
