"""Somebody at another machine who sends messages and asks things of sessions: what commands use, opened in the test's
process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from actors.broker.hints import Hints
from actors.configuration import Configuration
from actors.control import Control
from actors.ingress import Ingress
from insika.clock import SystemClock
from insika.coordination.redis.coordination import RedisCoordination
from insika.crash_points import no_crash
from insika.storage.port import Store
from insika.storage.postgres.store import PostgresStore
from tests.faults.cluster.cluster import LEASE_S, Services


@dataclass(frozen=True, slots=True)
class Operator:
    door: Ingress
    control: Control
    store: Store


@asynccontextmanager
async def operator(services: Services) -> AsyncIterator[Operator]:
    store, clock = PostgresStore.open(services.database, lease_s=LEASE_S), SystemClock()
    try:
        async with RedisCoordination(services.redis, clock) as coordination:
            signals, events = coordination.signals, coordination.events
            with Hints(services.amqp) as hints:
                door = Ingress(
                    store,
                    Configuration(store),
                    events=events,
                    clock=clock,
                    wakes=hints,
                    signals=signals,
                    crash=no_crash,
                )
                yield Operator(door, Control(store, hints, signals, events, clock), store)
    finally:
        await store.close()
