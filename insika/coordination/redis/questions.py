"""Questions to Redis that a turn waits for: for a quarter of a second each, and for none once one has failed, until
Redis does again what it is asked. Whoever asks has a twin to ask instead.

What is measured is how long Redis was silent while we were listening. A loop that was held up for a second would find
its time over together with the answer, so the wait is made of short ones: of each stop of the loop only one is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from redis.asyncio import Redis

from insika.coordination.redis.connection import ANSWER_S, described
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.line import Line
from insika.coordination.redis.sender import Sender

PATIENCE_S = 0.25
AT_ONCE = 32
"""Questions under way, each of which holds a connection. The others wait, within their patience."""
_LOOKS = 5
_LINE = "limits"
_NOTHING = "#!lua\nreturn 1"
"""Refused wherever the scripts that are asked would be."""

Answer = TypeVar("Answer")


class Questions:
    """`looking` has a `run`, which somebody must run for as long as questions are asked: it finds out when Redis is
    back. `patience_s`: how long a question may take."""

    def __init__(self, client: Redis, health: RedisHealth, patience_s: float = PATIENCE_S) -> None:
        self._health = health
        self._patience_s = patience_s
        self._nothing = client.register_script(_NOTHING)
        self._places = asyncio.Semaphore(AT_ONCE)
        self._away = False
        self.looking = Sender(Line(_LINE, health), self._look)

    async def ask(self, question: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """What `question` answers; None where Redis is away, which includes whatever else it may make of us."""
        if self._away:
            return None
        try:
            async with _listening(self._patience_s), self._places:
                return await question()
        except Exception as error:
            self._away = True
            self._health.failed(_LINE, described(error, self._patience_s))
            self.looking.ring()
            return None

    async def _look(self) -> bool:
        async with asyncio.timeout(ANSWER_S):
            await self._nothing()
        self._away = False
        return False


@asynccontextmanager
async def _listening(patience_s: float) -> AsyncIterator[None]:
    """Raises TimeoutError where what is done within takes longer than that."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as limit:

        def wait(times: int) -> asyncio.TimerHandle:
            return loop.call_later(patience_s / _LOOKS, look, times - 1)

        def look(left: int) -> None:
            nonlocal timer
            if left:
                timer = wait(left)
            else:
                limit.reschedule(loop.time())

        timer = wait(_LOOKS)
        try:
            yield
        finally:
            timer.cancel()
