"""Somebody at another machine who asks things of sessions: the door that commands use, opened in the test's process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from actors.broker.hints import Hints
from actors.control import Control
from insika.clock import SystemClock
from insika.coordination.redis.coordination import RedisCoordination
from insika.storage.port import Store
from insika.storage.postgres.store import PostgresStore
from tests.faults.cluster.cluster import LEASE_S, Services


@dataclass(frozen=True, slots=True)
class Operator:
    control: Control
    store: Store


@asynccontextmanager
async def operator(services: Services) -> AsyncIterator[Operator]:
    store, clock = PostgresStore.open(services.database, lease_s=LEASE_S), SystemClock()
    try:
        async with RedisCoordination(services.redis, clock) as coordination:
            with Hints(services.amqp) as hints:
                yield Operator(Control(store, hints, coordination.signals, coordination.events, clock), store)
    finally:
        await store.close()
