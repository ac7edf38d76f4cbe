"""What must pass the suite: the twin within one process, and Redis with a client for each process."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from insika.clock import SystemClock
from insika.coordination.local import AlwaysWell, LocalEventStream, LocalSignals
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.local_windows import LocalWindows
from insika.coordination.port import Coordination
from insika.coordination.redis.coordination import RedisCoordination
from insika.coordination.redis.events import Bounds
from tests.coordination_world import Deployment
from tests.limits_world import Counting, over_redis, within_one_process

BOUND = 300
BOTH = ["within one process", "over Redis"]


def _within_one_process() -> Deployment:
    clock = SystemClock()
    only = Coordination(
        LocalSignals(), LocalEventStream(BOUND), AlwaysWell(), LocalWindows(clock), LocalCircuits(clock)
    )

    @asynccontextmanager
    async def process() -> AsyncIterator[Coordination]:
        yield only

    return Deployment(process, BOUND, slack=0)


def _over_redis(url: str) -> Deployment:
    namespace = f"insika-{uuid.uuid4().hex}"

    def process() -> RedisCoordination:
        return RedisCoordination(url, SystemClock(), namespace=namespace, bounds=Bounds(kept=BOUND, window=50))

    # Redis cuts a stream by whole blocks of at most 100 entries.
    return Deployment(process, BOUND, slack=100)


@pytest.fixture(params=BOTH)
def deployment(request: pytest.FixtureRequest) -> Deployment:
    if request.param == "over Redis":
        return _over_redis(request.getfixturevalue("redis_url"))
    return _within_one_process()


@pytest.fixture(params=BOTH)
async def counting(request: pytest.FixtureRequest) -> AsyncIterator[Counting]:
    """Two processes that count together."""
    url = request.getfixturevalue("redis_url") if request.param == "over Redis" else ""
    async with over_redis(url, 2) if url else within_one_process(2) as counted:
        yield counted
