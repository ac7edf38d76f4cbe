"""Tokens on their way to Redis: what is settled goes into a bounded queue, and leaves it by the batch.

A batch that may have arrived is sent again: each call is counted once. What has waited until its window ended, because
Redis was away, is left aside: it must not be held against the next one.
"""

from __future__ import annotations

import asyncio
from collections import deque

import structlog

from insika.clock import Clock
from insika.coordination.moments import in_ms, window_end_ms
from insika.coordination.redis.connection import ANSWER_S
from insika.coordination.redis.keys import spent_keys
from insika.coordination.redis.line import Line
from insika.coordination.redis.scripts import Scripts
from insika.coordination.redis.sender import Sender
from insika.limits.windows import SettledTokens

BATCH = 200
"""Calls in one round trip."""
WAITING = 10_000


class Spending:
    """`sender` has a `run`, which somebody must run for as long as tokens are spent. `clock` is this process's.
    `bound`: how many calls may wait; beyond that the oldest are not counted."""

    def __init__(self, scripts: Scripts, line: Line, clock: Clock, bound: int = WAITING) -> None:
        self._script = scripts.load("spend.lua")
        self._namespace = scripts.namespace
        self._clock = clock
        self._bound = bound
        self._waiting: deque[tuple[int, SettledTokens]] = deque()
        self._batch: list[tuple[int, SettledTokens]] = []
        self._uncounted = 0
        self._log = structlog.get_logger("insika.coordination")
        self.sender = Sender(line, self.send)

    def put(self, settled: SettledTokens) -> None:
        """Never blocks and never raises."""
        if len(self._waiting) >= self._bound:
            self._waiting.popleft()
            self._uncounted += 1
        self._waiting.append((window_end_ms(in_ms(self._clock.now()), settled.window_s), settled))
        self.sender.ring()

    async def send(self) -> bool:
        """Send one batch, the same one as before if that did not arrive; answers whether more is waiting."""
        if not self._batch:
            self._batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        now_ms = in_ms(self._clock.now())
        await self._count([settled for end_ms, settled in self._batch if now_ms < end_ms])
        self._batch = []
        if self._uncounted:
            self._log.warning("tokens_uncounted", calls=self._uncounted)
            self._uncounted = 0
        return bool(self._waiting)

    async def _count(self, batch: list[SettledTokens]) -> None:
        if not batch:
            return
        keys = [key for settled in batch for key in spent_keys(self._namespace, settled)]
        args = [arg for settled in batch for arg in (settled.window_s * 1000, settled.call, settled.counted)]
        async with asyncio.timeout(ANSWER_S):
            await self._script(keys, args)
