"""Events on their way into the stream: what is published goes into a bounded queue, and leaves it by the batch."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Protocol

from insika.coordination.redis.entries import written
from insika.events import Event, EventType

BATCH = 500
"""Events in one round trip. Redis does nothing else while it writes them, which takes about a millisecond."""
BATCH_BYTES = 1024 * 1024


class Appends(Protocol):
    """Where batches go."""

    async def append(self, batch: int, events: list[bytes], /) -> None: ...


class EventWriter:
    """`bound`: how many events may wait. Then the oldest are dropped, and an `events_missed` with their `count` stands
    in the stream in their place. `dropped` counts all that were dropped since the start."""

    def __init__(self, stream: Appends, bound: int) -> None:
        self._stream = stream
        self._bound = bound
        self._waiting: deque[Event] = deque()
        self._untold = 0
        self._numbers = itertools.count(1)
        self._batch: tuple[int, list[bytes]] | None = None
        self.dropped = 0

    def put(self, event: Event) -> None:
        """Never blocks and never raises."""
        if len(self._waiting) >= self._bound:
            self._waiting.popleft()
            self._untold += 1
            self.dropped += 1
        self._waiting.append(event)

    async def send(self) -> bool:
        """Send one batch, the same one as before if that did not arrive; answers whether more is waiting."""
        if self._batch is None:
            self._batch = (next(self._numbers), self._take())
        await self._stream.append(*self._batch)
        self._batch = None
        return bool(self._waiting)

    def _take(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 0
        if self._untold and self._waiting:
            self._add(batch, Event(EventType.EVENTS_MISSED, self._waiting[0].at, data={"count": self._untold}))
            self._untold = 0
        while self._waiting and len(batch) < BATCH and size < BATCH_BYTES:
            size += self._add(batch, self._waiting.popleft())
        return batch

    @staticmethod
    def _add(batch: list[bytes], event: Event) -> int:
        encoded = written(event)
        if encoded is None:
            return 0
        batch.append(encoded)
        return len(encoded)
