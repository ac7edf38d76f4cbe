"""All of it together: one client, one health, four lines, and how they begin and end."""

from __future__ import annotations

import asyncio

from insika.clock import Clock
from insika.coordination.port import Coordination
from insika.coordination.redis.connection import CLOSE_S, connect, signals_channel
from insika.coordination.redis.events import Bounds, RedisEventStream
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.signals import RedisSignals


class RedisCoordination:
    """`async with RedisCoordination(url, clock) as coordination:`; nothing is connected before that, and entering does
    not wait for Redis. `namespace` begins the name of everything in Redis; deployments that share a database number
    need different ones. Raises InvalidConfiguration for a URL that cannot be read."""

    def __init__(self, url: str, clock: Clock, *, namespace: str = "insika", bounds: Bounds | None = None) -> None:
        self._client = connect(url)
        self.health = RedisHealth(clock)
        self.signals = RedisSignals(self._client, signals_channel(self._client, namespace), self.health)
        self.events = RedisEventStream(self._client, f"{namespace}:events", self.health, bounds or Bounds())
        self._sending: list[asyncio.Task[None]] = []
        self._receiving: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """On the loop that it is used on."""
        self._sending = [asyncio.create_task(sender.run()) for sender in (self.events.sender, self.signals.sender)]
        self._receiving = [
            asyncio.create_task(self.events.reader.run()),
            asyncio.create_task(self.signals.receiver.run()),
        ]

    async def aclose(self) -> None:
        """Send what is waiting, as far as Redis takes it within `CLOSE_S` seconds, and end all subscriptions. It takes
        at most about three times that, whatever Redis does."""
        self.events.reader.close()
        self.events.sender.end()
        self.signals.sender.end()
        if self._sending:
            await asyncio.wait(self._sending, timeout=CLOSE_S)
            for task in (*self._sending, *self._receiving):
                task.cancel()
            await asyncio.wait([*self._sending, *self._receiving], timeout=CLOSE_S)
        self.health.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._client.aclose()
        except Exception:  # noqa: S110 - what is left of the connections goes with the process
            pass

    async def __aenter__(self) -> Coordination:
        self.start()
        return Coordination(self.signals, self.events, self.health)

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
