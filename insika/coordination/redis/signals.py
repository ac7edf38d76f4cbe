"""Signals to all processes of a deployment, on one Redis channel.

Those who listen in this process are told at once and without Redis, so that an outage takes away only what it must.
What is heard from others may have been written by another version, or by anybody who can reach Redis.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from contextlib import AbstractContextManager

import structlog
from redis.asyncio import Redis

from insika.coordination.local import LocalSignals
from insika.coordination.port import SignalListener
from insika.coordination.redis.connection import ANSWER_S
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.line import Line
from insika.coordination.redis.receiver import Receiver
from insika.coordination.redis.sender import Sender

BATCH = 1_000
"""Sessions in one message."""
WAITING = 10_000
"""Sessions that may wait to be told of; beyond that the oldest are forgotten."""


class RedisSignals:
    """`sender` and `receiver` have a `run` each, which somebody must run for as long as signals are wanted."""

    def __init__(self, client: Redis, channel: str, health: RedisHealth) -> None:
        self._client = client
        self._channel = channel
        self._here = LocalSignals()
        self._name = uuid.uuid4().hex
        self._waiting: dict[int, None] = {}
        self._batch: list[int] = []
        self._log = structlog.get_logger("insika.coordination")
        self.sender = Sender(Line("signals out", health), self._send)
        self.receiver = Receiver(client, channel, Line("signals in", health), self._heard)

    def publish(self, session_id: int) -> None:
        self._here.publish(session_id)
        self._waiting[session_id] = None
        if len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
        self.sender.ring()

    def listen(self, listener: SignalListener) -> AbstractContextManager[None]:
        return self._here.listen(listener)

    async def _send(self) -> bool:
        if not self._batch:
            self._batch = list(itertools.islice(self._waiting, BATCH))
            for session_id in self._batch:
                del self._waiting[session_id]
        if self._batch:
            async with asyncio.timeout(ANSWER_S):
                await self._client.publish(self._channel, json.dumps([self._name, *self._batch]))
            self._batch = []
        return bool(self._waiting)

    def _heard(self, message: bytes) -> None:
        try:
            sender, *sessions = json.loads(message)
            if not all(type(session_id) is int for session_id in sessions):
                raise ValueError("not the ids of sessions")
        except (ValueError, TypeError, RecursionError) as error:
            self._log.warning("signal_unreadable", because=type(error).__name__)
            return
        if sender != self._name:
            for session_id in sessions:
                self._here.publish(session_id)
