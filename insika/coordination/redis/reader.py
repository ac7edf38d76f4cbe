"""Those who subscribe in one process, and the one connection that reads for all of them, while there are any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from insika.coordination.port import missed
from insika.coordination.redis.entries import Entry
from insika.coordination.redis.line import Line
from insika.coordination.redis.window import Window
from insika.events import Event

AT_ONCE = 500
"""Entries handed to a subscriber before it is looked again what there is."""
CATCHING_UP = 2
"""Subscribers that read from Redis by themselves at once; the others wait for their turn."""


class Reads(Protocol):
    """Where entries come from."""

    async def page(self, after: int, limit: int, /) -> list[Entry]: ...

    async def wait(self, after: int, /) -> list[Entry]: ...

    async def last(self) -> int: ...


class RedisSubscription:
    """Its place is not known until Redis has told where the stream ends (`place`)."""

    def __init__(self, reader: EventReader, after: int | None) -> None:
        self._reader = reader
        self._after = after
        self._missed_some = False
        self.seq: int | None = None
        self.news = asyncio.Event()

    def place(self, last: int) -> None:
        """`last`: the number of the stream's last entry."""
        self.seq = last if self._after is None else min(self._after, last)
        self._missed_some = self._after is not None and self._after > last
        self.news.set()

    def rewind(self, last: int) -> None:
        """The stream ends with number `last`, again."""
        if self.seq is not None and self.seq > last:
            self.seq = last
            self._missed_some = True

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for entries in self._reader.pages(self):
            for entry in entries:
                for event in self._step(self.seq or 0, entry):
                    self.seq = event.seq
                    yield event
                self.seq = entry.seq

    def _step(self, seq: int, entry: Entry) -> Sequence[Event]:
        if entry.event is None:
            return ()
        if self._missed_some or entry.follows_gap(seq):
            self._missed_some = False
            return (missed(seq, entry.event), entry.event)
        return (entry.event,)


class EventReader:
    """`run` reads while somebody subscribes. `catching_up`: the line of those who read by themselves."""

    def __init__(self, stream: Reads, line: Line, catching_up: Line, window: int) -> None:
        self._stream = stream
        self._line = line
        self._catching_up = catching_up
        self._window = Window(window)
        self._subscriptions: list[RedisSubscription] = []
        self._wanted = asyncio.Event()
        self._turns = asyncio.Semaphore(CATCHING_UP)
        self._closed = False

    @property
    def has_unplaced(self) -> bool:
        return any(subscription.seq is None for subscription in self._subscriptions)

    def place(self, last: int) -> None:
        """Tell all who do not know it that the stream ends with number `last` now."""
        for subscription in self._subscriptions:
            if subscription.seq is None:
                subscription.place(last)
        if self._subscriptions and not self._wanted.is_set():
            self._window.begin(last)
            self._wanted.set()

    def join(self, after: int | None) -> RedisSubscription:
        subscription = RedisSubscription(self, after)
        self._subscriptions.append(subscription)
        return subscription

    def leave(self, subscription: RedisSubscription) -> None:
        self._subscriptions.remove(subscription)
        if not self._subscriptions:
            self._wanted.clear()

    def close(self) -> None:
        """Ends all iterations."""
        self._closed = True
        self._wake()

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            self._window.add(await self._line.insist(self._read))
            self._wake()

    async def pages(self, subscription: RedisSubscription) -> AsyncIterator[Sequence[Entry]]:
        """What lies after the subscription's place, again and again; it moves its place itself."""
        while not self._closed:
            subscription.news.clear()
            entries = await self._after(subscription.seq) if subscription.seq is not None else ()
            if entries:
                yield entries
            else:
                await subscription.news.wait()

    async def _after(self, seq: int) -> Sequence[Entry]:
        entries = self._window.after(seq, AT_ONCE)
        if entries is not None:
            return entries

        async def page() -> list[Entry]:
            if self._closed:
                return []
            async with self._turns:
                return await self._stream.page(seq, AT_ONCE)

        return await self._catching_up.insist(page)

    async def _read(self) -> list[Entry]:
        ends = self._window.ends
        entries = await self._stream.wait(ends)
        if not entries:
            await self._look_back(ends)
        return entries

    async def _look_back(self, ends: int) -> None:
        """A stream that lost its numbers, and could not know of higher ones, would never reach ours again."""
        last = await self._stream.last()
        if last < ends == self._window.ends:
            self._window.begin(last)
            for subscription in self._subscriptions:
                subscription.rewind(last)

    def _wake(self) -> None:
        for subscription in self._subscriptions:
            subscription.news.set()
