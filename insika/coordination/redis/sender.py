"""Sends in the background what others have put down, a batch at a time: whoever puts something down never waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from insika.coordination.redis.line import Line


class Sender:
    """`send` sends one batch and answers whether more is waiting. Where it raises, it is called again, and must offer
    the same batch."""

    def __init__(self, line: Line, send: Callable[[], Awaitable[bool]]) -> None:
        self._line = line
        self._send = send
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
