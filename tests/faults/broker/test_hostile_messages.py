"""Messages that no reader of Insika ever wrote. None may harm the process or the line behind it, and none is lost."""

from __future__ import annotations

import json
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import dramatiq
import pika
import pytest
from pika import data

from actors.broker.topology import EXCHANGE, TURNS, TURNS_KEY
from tests.amqp_wire import channel
from tests.broker_world import Door, ListActors, Vhost, job, turns_of

ENVELOPE = {
    "queue_name": TURNS,
    "actor_name": "accept_turn",
    "args": [json.loads(job("in an envelope", id="enveloped"))],
    "kwargs": {},
    "options": {"eta": 10**15, "pipe_target": {"actor_name": "x"}, "time_limit": 1, "max_age": 0, "on_failure": "x"},
    "message_id": "e",
    "message_timestamp": 0,
}
UNREADABLE = {
    "no JSON": b"not json",
    "not UTF-8": b"\xff\xfe\x00",
    "empty": b"",
    "300 KiB": b"x" * (300 * 1024),
    "20 MiB": b"x" * (20 * 1024 * 1024),
    "deep": b"[" * 200_000,
    "another actor": json.dumps({**ENVELOPE, "actor_name": "wake_session"}).encode(),
    "another queue": json.dumps({**ENVELOPE, "queue_name": "insika.sessions", "args": [1, 2]}).encode(),
    "no arguments": json.dumps({**ENVELOPE, "args": []}).encode(),
    "strange keys": json.dumps({**ENVELOPE, "args": "x", "more": {"a": [1]}}).encode(),
    "compressed": b"\x1f\x8b\x08\x00",
}
PROPERTIES: dict[str, dict[str, Any]] = {
    "a wrong encoding": {"content_encoding": "gzip", "content_type": "image/png"},
    "a message id that can be no job's": {"message_id": "x" * 250},
    "a message id with NUL": {"message_id": "a\0b"},
    "reply and correlation": {"reply_to": TURNS, "correlation_id": "\U0001f600", "priority": 255, "type": "x"},
    "many headers": {"headers": {f"h{n}": "x" * 100 for n in range(900)}},
    "headers of every type": {
        "headers": {
            "x-delivery-count": "many",
            "x-death": [1, {"reason": None}],
            "none": None,
            "time": datetime.now(UTC),
            "number": Decimal("1.5"),
            "nested": {"a": [{"b": {}}]},
            "bytes": b"\xff",
            "big": 2**62,
        }
    },
    "a count of its own": {"headers": {"x-delivery-count": 99}},
    "a time long after all times": {"headers": {"raw": b"\x01t" + b"T" + struct.pack(">Q", 2**60)}},
    "tables in tables": {"headers": {"raw": b""}},
}


def nested(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = b"\x01tF" + struct.pack(">I", len(inner)) + inner
    return inner


PROPERTIES["tables in tables"]["headers"]["raw"] = nested(5_000)


@contextmanager
def raw_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """pika writes `{"raw": bytes}` as it stands, which it would not read."""
    as_ever = data.encode_table

    def encode(pieces: list[bytes], table: Any) -> int:
        if not (isinstance(table, dict) and "raw" in table):
            return as_ever(pieces, table)
        written = struct.pack(">I", len(table["raw"])) + table["raw"]
        pieces.append(written)
        return len(written)

    with monkeypatch.context() as patched:
        patched.setattr(data, "encode_table", encode)
        yield


@pytest.fixture
async def at_the_door(
    vhost: Vhost, door: Callable[..., Awaitable[Door]], log: list[dict[str, Any]]
) -> Callable[..., Awaitable[Door]]:
    """Reads until `good` jobs are accepted and `bad` ones kept, and sees that no connection was lost over it."""

    async def read(good: int, bad: int) -> Door:
        made = await door(vhost)
        async with made.open():

            async def all_there() -> bool:
                return len(await made.accepted()) >= good and len(await made.kept()) >= bad

            await made.until(all_there)
        assert [line for line in log if line["event"] == "connection to RabbitMQ lost"] == []
        assert made.closings == 0
        assert vhost.waiting() == 0
        return made

    return read


async def test_what_cannot_be_read_is_kept_as_it_came_and_the_next_is_accepted(
    vhost: Vhost, at_the_door: Callable[..., Awaitable[Door]]
) -> None:
    bodies: list[bytes] = []
    for number, body in enumerate(UNREADABLE.values()):
        bodies += [body, job(f"after {number}")]
    vhost.publish(bodies)
    door = await at_the_door(len(UNREADABLE), len(UNREADABLE))

    assert await door.accepted() == [f"after {number}" for number in range(len(UNREADABLE))]
    kept = await door.kept()
    assert sorted(row.raw for row in kept) == sorted(UNREADABLE.values())
    assert {row.source for row in kept} == {"amqp"}
    assert all(row.error["message"] for row in kept)


async def test_no_property_and_no_header_is_obeyed_or_does_harm(
    vhost: Vhost, at_the_door: Callable[..., Awaitable[Door]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw_tables(monkeypatch), channel(vhost.url) as publishing:
        publishing.confirm_delivery()
        for name, properties in PROPERTIES.items():
            # Twice: what the broker knows by its id is the same message.
            for _ in range(2 if "message_id" in properties else 1):
                publishing.basic_publish("", TURNS, job(name), pika.BasicProperties(**properties), mandatory=True)
    door = await at_the_door(len(PROPERTIES), 0)

    assert await door.accepted() == list(PROPERTIES)
    assert await door.kept() == []


async def test_of_an_envelope_nothing_but_the_job_counts(
    vhost: Vhost, at_the_door: Callable[..., Awaitable[Door]]
) -> None:
    own = dramatiq.Message(TURNS, "accept_turn", (json.loads(job("by dramatiq")),), {}, {}).encode()
    vhost.publish([json.dumps(ENVELOPE).encode(), own])
    sender = turns_of(vhost, ListActors())._broker.get_actor("accept_turn")
    sender.send(json.loads(job("by our own broker")))
    door = await at_the_door(3, 0)
    assert await door.accepted() == ["in an envelope", "by dramatiq", "by our own broker"]


async def test_either_way_in_leads_to_the_same_queue(vhost: Vhost, at_the_door: Callable[..., Awaitable[Door]]) -> None:
    with channel(vhost.url) as publishing:
        publishing.confirm_delivery()
        publishing.basic_publish("", TURNS, job("by the queue's name"), mandatory=True)
        publishing.basic_publish(EXCHANGE, TURNS_KEY, job("by the exchange"), mandatory=True)
    door = await at_the_door(2, 0)
    assert await door.accepted() == ["by the queue's name", "by the exchange"]
