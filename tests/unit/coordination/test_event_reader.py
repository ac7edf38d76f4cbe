"""Those who subscribe, over a stream that is a list: what Redis does to it, the list does at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from insika.clock import ManualClock
from insika.coordination.redis.entries import Entry
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.line import Line, Untold
from insika.coordination.redis.reader import CATCHING_UP, EventReader
from tests.coordination_world import PATIENCE_S, event, read_one, read_until, texts


class Listed:
    """Entries with numbers that leave holes; `wait` answers with nothing when nothing is left."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.number = 0
        self.waits: list[int] = []
        self.paging = 0
        self.most_paging = 0
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()

    def append(self, *said: str) -> None:
        for text in said:
            before, self.number = self.number, self.number + 10
            self.entries.append(Entry(self.number, before, event(text).numbered(self.number)))
        self._changed.set()

    def lose(self) -> None:
        self.entries, self.number = [], 0
        self._changed.set()

    async def is_waited_for(self, after: int) -> None:
        """Returns when somebody waits for what comes after that number."""
        async with asyncio.timeout(PATIENCE_S):
            while self._changed.is_set() or not self.waits or self.waits[-1] != after:
                self._idle.clear()
                await self._idle.wait()

    async def last(self) -> int:
        return self.number

    async def page(self, after: int, limit: int) -> list[Entry]:
        self.paging += 1
        self.most_paging = max(self.paging, self.most_paging)
        await asyncio.sleep(0)
        self.paging -= 1
        return [entry for entry in self.entries if entry.seq > after][:limit]

    async def wait(self, after: int) -> list[Entry]:
        self.waits.append(after)
        if not (found := await self.page(after, 7)):
            self._changed.clear()
            self._idle.set()
            await self._changed.wait()
            found = await self.page(after, 7)
        return found


@pytest.fixture
def stream() -> Listed:
    return Listed()


@pytest.fixture
async def reader(stream: Listed) -> AsyncIterator[EventReader]:
    reader = EventReader(stream, Line("in", RedisHealth(ManualClock())), Line("again", Untold()), window=20)
    running = asyncio.create_task(reader.run())
    yield reader
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_nothing_is_read_while_nobody_subscribes(stream, reader):
    stream.append("a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert stream.waits == []


async def test_all_subscribers_share_one_reading(stream, reader):
    subscriptions = [reader.join(None) for _ in range(50)]
    assert reader.has_unplaced
    reader.place(await stream.last())
    assert not reader.has_unplaced
    stream.append(*(str(number) for number in range(100)))
    everything = [await read_until(subscription, 99) for subscription in subscriptions]
    assert all(texts(each) == [str(number) for number in range(100)] for each in everything)
    assert len(stream.waits) == len(set(stream.waits))


async def test_few_read_on_their_own_at_once(stream, reader):
    stream.append(*(str(number) for number in range(100)))
    subscriptions = [reader.join(0) for _ in range(10)]
    reader.place(await stream.last())
    stream.most_paging = 0
    everything = await asyncio.gather(*(read_until(subscription, 99) for subscription in subscriptions))
    assert all(len(each) == 100 for each in everything)
    assert stream.most_paging <= CATCHING_UP + 1  # and the one reading for all


async def test_a_stream_that_lost_its_numbers_is_read_again_and_that_is_said(stream, reader):
    stream.append("a", "b", "c")
    subscription = reader.join(None)
    reader.place(await stream.last())
    stream.append("d")
    assert texts([await read_one(subscription)]) == ["d"]
    reading = asyncio.create_task(read_until(subscription, "f"))
    await stream.is_waited_for(40)
    stream.lose()
    await stream.is_waited_for(0)
    stream.append("e", "f")
    assert texts(await reading) == ["events_missed", "e", "f"]


async def test_when_the_last_has_left_reading_ends_and_begins_anew_for_the_next(stream, reader):
    first = reader.join(None)
    reader.place(await stream.last())
    stream.append("a")
    await read_until(first, "a")
    reader.leave(first)
    stream.append("b", "c")
    second = reader.join(None)
    reader.place(await stream.last())
    stream.append("d")
    assert texts(await read_until(second, "d")) == ["d"]


async def test_iterations_end_with_the_reader(stream, reader):
    placed, unplaced = reader.join(0), reader.join(None)
    placed.place(0)
    reading = [asyncio.create_task(read_one(subscription)) for subscription in (placed, unplaced)]
    await asyncio.sleep(0)
    reader.close()
    for each in reading:
        with pytest.raises(AssertionError, match="the stream ended"):
            await each
