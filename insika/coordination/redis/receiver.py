"""Hears what other processes publish on a channel. A connection that is lost is made again, by itself; one that is
silent is asked whether it is still there, so that this line also tells of an outage when nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from insika.coordination.redis.connection import ANSWER_S
from insika.coordination.redis.line import Line

SILENCE_S = 2.0
"""After so long without a message the connection is asked."""


class Receiver:
    """`heard` is given each message, as it was sent."""

    def __init__(self, client: Redis, channel: str, line: Line, heard: Callable[[bytes], None]) -> None:
        self._client = client
        self._channel = channel
        self._line = line
        self._heard = heard
        self._subscribed: PubSub | None = None

    async def run(self) -> None:
        try:
            while True:
                await self._line.insist(self._round)
        finally:
            await self._drop()

    async def _round(self) -> None:
        """Subscribe, or wait for the next message."""
        try:
            if self._subscribed is None:
                self._subscribed = self._client.pubsub()
                async with asyncio.timeout(ANSWER_S):
                    await self._subscribed.subscribe(self._channel)
                    await self._subscribed.get_message(timeout=None)
                return
            message = await self._subscribed.get_message(timeout=SILENCE_S)
            if message is None:
                async with asyncio.timeout(ANSWER_S):
                    await self._subscribed.ping()
                    message = await self._subscribed.get_message(timeout=None)
            if message["type"] == "message":
                self._heard(message["data"])
        except BaseException:
            await self._drop()
            raise

    async def _drop(self) -> None:
        subscribed, self._subscribed = self._subscribed, None
        if subscribed is not None:
            await subscribed.aclose()  # type: ignore[no-untyped-call]
