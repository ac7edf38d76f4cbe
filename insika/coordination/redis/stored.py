"""The event stream as Redis keeps it, and what can be asked of it. Everything here waits for Redis, for a limited time,
and raises what Redis makes of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from importlib import resources
from typing import Any

from redis.asyncio import Redis

from insika.coordination.redis.connection import ANSWER_S
from insika.coordination.redis.entries import Entry, read

WAIT_S = 2.0
"""How long `wait` lets Redis wait for the next entry."""
AT_ONCE = 500
"""Entries in one answer."""

Found = list[tuple[bytes, dict[bytes, bytes]]]
"""The client's own types cover every protocol; ours is told to it in `connection`."""

_LAST_OF = 2**64 - 1
"""Behind every id of one number (Redis: an id is two 64-bit numbers), so that foreign entries do not hold readers."""


class StoredEvents:
    """One stream. `keep`: how many entries stay, about; Redis cuts by whole blocks of some hundred."""

    def __init__(self, client: Redis, key: str, keep: int) -> None:
        self._client = client
        self._key = key
        self._keep = keep
        self._sent = f"{key}:sent:{uuid.uuid4().hex}"
        script = resources.files("insika.coordination.redis").joinpath("append.lua").read_text(encoding="utf-8")
        self._append = client.register_script(script)
        self._known = 0

    async def last(self) -> int:
        """The number of the last entry that was ever written; 0: none since the stream was made, or lost."""
        return await self._run(0, ())

    async def append(self, batch: int, events: Sequence[bytes]) -> None:
        """One round trip, all or nothing. The same `batch` again, within a minute, is not written again."""
        if events:
            self._known = max(self._known, await self._run(batch, events))

    async def page(self, after: int, limit: int = AT_ONCE) -> list[Entry]:
        """The first of what is kept after number `after`; does not wait for more."""
        async with asyncio.timeout(ANSWER_S):
            found: Any = await self._client.xrange(self._key, min=f"({after}-{_LAST_OF}", count=limit)
        return self._entries(found)

    async def wait(self, after: int) -> list[Entry]:
        """The first of what is kept after number `after`, waiting a little where there is nothing yet."""
        cursor: Any = {self._key: f"{after}-{_LAST_OF}"}
        async with asyncio.timeout(WAIT_S + ANSWER_S):
            found: Any = await self._client.xread(cursor, count=AT_ONCE, block=int(WAIT_S * 1000))
        return self._entries(found[0][1]) if found else []

    async def _run(self, batch: int, events: Sequence[bytes]) -> int:
        async with asyncio.timeout(ANSWER_S):
            args: list[int | bytes] = [self._keep, batch, self._known, *events]
            return int(await self._append(keys=[self._key, self._sent], args=args))

    def _entries(self, found: Found) -> list[Entry]:
        entries = [read(entry_id, fields) for entry_id, fields in found]
        # Not of what others put there: a number out of all order would stay with us when it is gone from Redis.
        self._known = max([self._known, *(entry.seq for entry in entries if entry.event is not None)])
        return entries
