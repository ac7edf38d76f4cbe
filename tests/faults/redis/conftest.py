"""A Redis of the test's own, to be stopped, paused, emptied and spoilt, and processes that use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import redis.asyncio

from insika.clock import SystemClock
from insika.coordination.redis.coordination import RedisCoordination
from insika.coordination.redis.events import Bounds
from insika.coordination.redis.questions import PATIENCE_S
from scripts.private_services.server import PrivateServer
from scripts.private_services.together import PrivateServices


class OwnRedis:
    """What may happen to a server, without holding up the loop."""

    def __init__(self, server: PrivateServer) -> None:
        self._server = server

    @property
    def url(self) -> str:
        return self._server.url

    async def start(self) -> None:
        await asyncio.to_thread(self._server.start)

    async def kill(self) -> None:
        await asyncio.to_thread(self._server.kill)

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.restart)

    def pause(self) -> None:
        self._server.pause()

    def resume(self) -> None:
        self._server.resume()

    async def do(self, *command: object, user: str = "") -> object:
        """One command on a connection of its own. `user`: `name:password@` to give one."""
        async with redis.asyncio.Redis.from_url(self.url.replace("//", f"//{user}")) as client:
            return await client.execute_command(*command)


@pytest.fixture
def server() -> Iterator[OwnRedis]:
    with PrivateServices.start(which=["redis"]) as services:
        yield OwnRedis(services.redis)


@pytest.fixture
async def process(server: OwnRedis) -> AsyncIterator[Callable[..., RedisCoordination]]:
    """Each call is one more process of one deployment."""
    started: list[RedisCoordination] = []

    def start(
        url: str | None = None, bounds: Bounds | None = None, patience_s: float = PATIENCE_S
    ) -> RedisCoordination:
        coordination = RedisCoordination(url or server.url, SystemClock(), bounds=bounds, patience_s=patience_s)
        coordination.start()
        started.append(coordination)
        return coordination

    yield start
    for coordination in started:
        await coordination.aclose()
