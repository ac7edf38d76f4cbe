"""The event stream as Redis keeps it: what can be asked of it, and what each question costs. Everything here waits
for Redis and raises what Redis makes of it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from importlib import resources
from typing import Any

from redis.asyncio import Redis

from insika.coordination.redis.entries import Entry, read

WAIT_MS = 500
"""How long `wait` waits for the next entry: less than Redis may take to answer (`connection.ANSWER_S`)."""
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
            await self._run(batch, events)

    async def page(self, after: int, limit: int = AT_ONCE) -> list[Entry]:
        """The first of what is kept after number `after`; does not wait for more."""
        found: Any = await self._client.xrange(self._key, min=f"({after}-{_LAST_OF}", count=limit)
        return self._entries(found)

    async def wait(self, after: int) -> list[Entry]:
        """The first of what is kept after number `after`, waiting a little where there is nothing yet."""
        cursor: Any = {self._key: f"{after}-{_LAST_OF}"}
        found: Any = await self._client.xread(cursor, count=AT_ONCE, block=WAIT_MS)
        return self._entries(found[0][1]) if found else []

    async def _run(self, batch: int, events: Sequence[bytes]) -> int:
        answer = await self._append(keys=[self._key, self._sent], args=[self._keep, batch, self._known, *events])
        self._known = max(self._known, int(answer))
        return int(answer)

    def _entries(self, found: Found) -> list[Entry]:
        entries = [read(entry_id, fields) for entry_id, fields in found]
        # Not of what others put there: a number out of all order would stay with us when it is gone from Redis.
        self._known = max([self._known, *(entry.seq for entry in entries if entry.event is not None)])
        return entries
