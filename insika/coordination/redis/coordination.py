"""All of it together: one client, one health, six lines, and how they begin and end."""

from __future__ import annotations

import asyncio

from insika.clock import Clock
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.local_windows import LocalWindows
from insika.coordination.port import Coordination
from insika.coordination.redis.circuits import RedisCircuits
from insika.coordination.redis.connection import CLOSE_S, connect, signals_channel
from insika.coordination.redis.events import Bounds, RedisEventStream
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.line import Line
from insika.coordination.redis.questions import PATIENCE_S, Questions
from insika.coordination.redis.scripts import Scripts, Time, own_time
from insika.coordination.redis.signals import RedisSignals
from insika.coordination.redis.spending import Spending
from insika.coordination.redis.windows import RedisWindows


class RedisCoordination:
    """`async with RedisCoordination(url, clock) as coordination:`; nothing is connected before that, and entering does
    not wait for Redis. `namespace` begins the name of everything in Redis; deployments that share a database number
    need different ones. `time`: what windows and circuits go by. `patience_s`: how long a turn waits for an answer.
    Raises InvalidConfiguration for a URL that cannot be read."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        namespace: str = "insika",
        bounds: Bounds | None = None,
        time: Time = own_time,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._client = connect(url)
        self.health = RedisHealth(clock)
        self.signals = RedisSignals(self._client, signals_channel(self._client, namespace), self.health)
        self.events = RedisEventStream(self._client, f"{namespace}:events", self.health, bounds or Bounds())
        scripts = Scripts(self._client, namespace, time)
        self._questions = Questions(self._client, self.health, patience_s)
        self.spending = Spending(scripts, Line("tokens out", self.health), clock)
        self.windows = RedisWindows(scripts, self._questions, self.spending, LocalWindows(clock))
        self.circuits = RedisCircuits(scripts, self._questions, LocalCircuits(clock))
        self._sending: list[asyncio.Task[None]] = []
        self._receiving: list[asyncio.Task[None]] = []
        self._senders = (self.events.sender, self.signals.sender, self.spending.sender)

    def start(self) -> None:
        """On the loop that it is used on."""
        self._sending = [asyncio.create_task(sender.run()) for sender in self._senders]
        self._receiving = [
            asyncio.create_task(self.events.reader.run()),
            asyncio.create_task(self.signals.receiver.run()),
            asyncio.create_task(self._questions.looking.run()),
        ]

    async def aclose(self) -> None:
        """Send what is waiting, as far as Redis takes it within `CLOSE_S` seconds, and end all subscriptions. It takes
        at most about three times that, whatever Redis does."""
        self.events.reader.close()
        for sender in self._senders:
            sender.end()
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
        return Coordination(self.signals, self.events, self.health, self.windows, self.circuits)

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
