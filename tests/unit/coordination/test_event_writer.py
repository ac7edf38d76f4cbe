"""Events on their way out: in order, by the batch, never more than the bound, and the same batch until it arrived."""

from __future__ import annotations

import json

import pytest

from insika.coordination.redis.entries import LARGEST_EVENT
from insika.coordination.redis.writer import BATCH, EventWriter
from tests.coordination_world import event


class Stream:
    """Remembers what was appended; fails as long as it is told to."""

    def __init__(self) -> None:
        self.tried: list[tuple[int, list[str]]] = []
        self.away = False

    async def append(self, batch: int, events: list[bytes]) -> None:
        data = [json.loads(each)["data"] for each in events]
        self.tried.append((batch, [each.get("text", each) for each in data]))
        if self.away:
            raise ConnectionError

    def texts(self) -> list[str]:
        return [text for _, texts in self.tried for text in texts]


@pytest.fixture
def stream() -> Stream:
    return Stream()


def put(writer: EventWriter, numbers: range) -> None:
    for number in numbers:
        writer.put(event(str(number)))


async def send_all(writer: EventWriter) -> None:
    while await writer.send():
        pass


async def test_what_was_put_down_goes_out_in_order_by_the_batch(stream):
    writer = EventWriter(stream, 10_000)
    put(writer, range(2 * BATCH + 1))
    await send_all(writer)
    assert [len(texts) for _, texts in stream.tried] == [BATCH, BATCH, 1]
    assert stream.texts() == [str(number) for number in range(2 * BATCH + 1)]


async def test_each_batch_has_a_name_of_its_own_and_keeps_it_until_it_arrived(stream):
    writer = EventWriter(stream, 10_000)
    put(writer, range(3))
    stream.away = True
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await writer.send()
        put(writer, range(3, 5))
    stream.away = False
    await send_all(writer)
    (first, texts), second, third, (next_one, _) = stream.tried
    assert texts == ["0", "1", "2"]
    assert second == third == (first, texts)
    assert next_one != first


async def test_beyond_the_bound_the_oldest_are_dropped_and_that_is_said(stream):
    writer = EventWriter(stream, 10)
    put(writer, range(25))
    assert writer.dropped == 15
    await send_all(writer)
    put(writer, range(25, 27))
    await send_all(writer)
    assert stream.texts() == [{"count": 15}, *(str(number) for number in range(15, 27))]


async def test_what_cannot_be_written_holds_up_nothing(stream):
    writer = EventWriter(stream, 100)
    put(writer, range(1))
    writer.put(event("x" * LARGEST_EVENT))
    writer.put(event("1")._replace(data={"text": object()}))
    writer.put(event("1")._replace(data={"text": float("nan")}))
    put(writer, range(1, 2))
    await send_all(writer)
    assert stream.texts() == ["0", "1"]


async def test_a_batch_stays_small_in_bytes_too(stream):
    writer = EventWriter(stream, 100)
    for _ in range(8):
        writer.put(event("x" * 300_000))
    await send_all(writer)
    assert [len(texts) for _, texts in stream.tried] == [4, 4]


async def test_nothing_to_send_sends_nothing(stream):
    writer = EventWriter(stream, 100)
    assert not await writer.send()
    assert stream.texts() == []
