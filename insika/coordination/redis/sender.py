"""Sends in the background what others have put down, a batch at a time: whoever puts something down never waits.

Between two batches it may rest, so that a busy process does not make a round trip of every few events: the first one
goes out at once all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from insika.coordination.redis.line import Line


class Sender:
    """`send` sends one batch and answers whether more is waiting. Where it raises, it is called again, and must offer
    the same batch. `rest_s`: seconds between two batches, at the least; 0 for none."""

    def __init__(
        self,
        line: Line,
        send: Callable[[], Awaitable[bool]],
        rest_s: float = 0.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._line = line
        self._send = send
        self._rest_s = rest_s
        self._sleep = sleep
        self._rung = asyncio.Event()
        self._ending = False

    def ring(self) -> None:
        """There is something to send."""
        self._rung.set()

    def end(self) -> None:
        """Send what is waiting, then stop."""
        self._ending = True
        self._rung.set()

    async def run(self) -> None:
        ended = False
        while not ended:
            await self._rung.wait()
            self._rung.clear()
            ended = self._ending
            while await self._line.insist(self._send):
                pass
            if self._rest_s and not ended:
                await self._sleep(self._rest_s)
