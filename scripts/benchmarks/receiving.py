"""A receiver that only counts: what it costs is not the product's."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aiohttp import web


class Counting:
    """`async with Counting() as receiver:`; listens on a free loopback port."""

    def __init__(self) -> None:
        self.count = 0
        self.port = 0
        self._came = asyncio.Event()
        self._runner: web.ServerRunner | None = None

    async def until(self, count: int, *, within_s: float = 300.0) -> None:
        async with asyncio.timeout(within_s):
            while self.count < count:
                self._came.clear()
                await self._came.wait()

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._take))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        self.count += 1
        self._came.set()
        return web.Response()
