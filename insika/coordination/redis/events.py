"""The event stream of a deployment, over Redis. The numbers come from Redis, so one order holds for all processes.

Publishing is for the turn, so it waits for nothing: it appends to a queue. Reading is for those who watch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redis.asyncio import Redis

from insika.coordination.port import PAGE, EventsUnavailable, missed
from insika.coordination.redis.connection import described
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.line import Line, Untold
from insika.coordination.redis.reader import EventReader, RedisSubscription
from insika.coordination.redis.sender import Sender
from insika.coordination.redis.stored import AT_ONCE, StoredEvents
from insika.coordination.redis.writer import EventWriter
from insika.events import Event

REST_S = 0.01
"""Between two batches of events: a busy process sends a hundred a second, and whoever watches cannot tell."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many events are kept: in Redis (about; some 30 MB for the default), in this process until they are sent, and
    in this process for those who subscribe (up to twice as many)."""

    kept: int = 100_000
    waiting: int = 10_000
    window: int = 1_000


class RedisEventStream:
    """`sender` and `reader` have a `run` each, which somebody must run for as long as the stream is used."""

    def __init__(self, client: Redis, key: str, health: RedisHealth, bounds: Bounds) -> None:
        self._stored = StoredEvents(client, key, bounds.kept)
        self._writer = EventWriter(self._stored, bounds.waiting)
        self.sender = Sender(Line("events out", health), self._send, REST_S)
        self.reader = EventReader(
            self._stored, Line("events in", health), Line("events again", Untold()), bounds.window
        )

    @property
    def dropped(self) -> int:
        """How many events this process could not send, because Redis was away for too long."""
        return self._writer.dropped

    def publish(self, event: Event) -> None:
        self._writer.put(event)
        self.sender.ring()

    async def since(self, seq: int, limit: int = PAGE) -> list[Event]:
        events: list[Event] = []
        found = 0
        while found < limit:
            asked = min(limit - found, AT_ONCE)
            try:
                entries = await self._stored.page(seq, asked)
            except Exception as error:
                raise EventsUnavailable(f"the event stream cannot be read: {described(error)}") from None
            for entry in entries:
                if entry.event is not None:
                    events.extend([missed(seq, entry.event)] if entry.follows_gap(seq) else [])
                    events.append(entry.event)
                    found += 1
                seq = entry.seq
            if len(entries) < asked:
                break
        return events

    @contextmanager
    def subscribe(self, after: int | None = None) -> Iterator[RedisSubscription]:
        subscription = self.reader.join(after)
        self.sender.ring()
        try:
            yield subscription
        finally:
            self.reader.leave(subscription)

    async def _send(self) -> bool:
        # In one sequence with what is published, so that no subscriber begins behind what this process publishes later.
        if self.reader.has_unplaced:
            self.reader.place(await self._stored.last())
        return await self._writer.send()
