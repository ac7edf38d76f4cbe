"""What is made of raw messages: the queue decides, and nothing in them does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import BasicProperties
from pika.spec import Basic

from actors.broker.link import HEADERS_UNREADABLE
from actors.broker.messages import (
    Delivery,
    Unreadable,
    built,
    job_body,
    job_id,
    read_delivery,
    read_session_id,
)
from insika.jobs import MAX_BODY_BYTES

JOB = {"session": "s", "agent": "a", "text": "hello"}
WORDS = "my card number is 4111"
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.binary(), inner, max_size=3),
    max_leaves=8,
)


def envelope(**fields: Any) -> bytes:
    message = {
        "queue_name": "insika.turns",
        "actor_name": "accept_turn",
        "args": [JOB],
        "kwargs": {},
        "options": {},
        "message_id": "of-the-envelope",
        "message_timestamp": 1,
    }
    return json.dumps({**message, **fields}).encode()


def delivered(
    headers: Any = None, *, redelivered: bool = False, body: bytes = b"{}", message_id: Any = None
) -> Delivery:
    properties = BasicProperties(headers=headers, message_id=message_id)
    return read_delivery(Basic.Deliver(redelivered=redelivered), properties, body, lambda: True)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"queue_name": "other"},
        {"options": {"eta": 1, "pipe_target": {}, "time_limit": 1, "on_failure": "x"}},
        {"kwargs": {"text": "other"}},
        {"extra": [1, 2]},
        {"options": None, "message_id": 7},
    ],
)
def test_of_an_envelope_for_accept_turn_only_its_argument_counts(fields: dict[str, Any]) -> None:
    assert json.loads(job_body(envelope(**fields))) == JOB


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(JOB).encode(),
        json.dumps({**JOB, "text": 'say "accept_turn"'}).encode(),
        envelope(actor_name="wake_session"),
        envelope(args=[JOB, JOB]),
        envelope(args=[]),
        envelope(args=["text"]),
        envelope(args={"0": JOB}),
        b'["accept_turn"]',
        b'"accept_turn"',
        b'{"accept_turn"',
        b'\xff"accept_turn"',
        b'{"actor_name": "accept_turn", "args": [{"n": NaN}]}',
        b'{"actor_name": "accept_turn", "args": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
        b'{"actor_name": "accept_turn", "args": [{"n": ' + b"9" * 10_000 + b"}]}",
        b"",
    ],
)
def test_anything_else_stays_as_it_came(body: bytes) -> None:
    assert job_body(body) == body


def test_an_envelope_of_more_than_a_job_may_be_is_not_looked_into() -> None:
    body = envelope(padding="x" * MAX_BODY_BYTES)
    assert job_body(body) == body


def test_a_lone_surrogate_in_an_envelope_comes_through_for_the_job_s_own_reader() -> None:
    body = b'{"actor_name": "accept_turn", "args": [{"text": "\\ud800"}]}'
    assert json.loads(job_body(body)) == {"text": "\ud800"}


@given(st.binary(max_size=300))
def test_no_body_raises(body: bytes) -> None:
    job_body(b'"accept_turn"' + body)
    job_body(b'{"actor_name": "accept_turn", "args": [' + body + b"]}")


@given(anything, anything, st.booleans())
def test_no_header_and_no_message_id_raises(headers: Any, message_id: Any, redelivered: bool) -> None:
    delivery = delivered(headers, message_id=message_id, redelivered=redelivered)
    assert delivery.message_id is None or 0 < len(delivery.message_id) <= 128
    assert delivery.deliveries >= 1


@pytest.mark.parametrize(
    ("redelivered", "headers", "deliveries"),
    [
        (False, None, 1),
        (False, {"x-delivery-count": 0}, 1),
        (False, {"x-delivery-count": 99}, 1),  # a producer's invention: the broker calls it the first time
        (True, {"x-delivery-count": 1}, 2),
        (True, {"x-delivery-count": 2}, 3),
        (True, None, 2),  # a classic queue does not count
        (True, {"x-delivery-count": "many"}, 2),
        (True, {"x-delivery-count": True}, 2),
        (True, {"x-delivery-count": -5}, 2),
        (False, {HEADERS_UNREADABLE: True}, 1),
        (True, {HEADERS_UNREADABLE: True}, 3),  # the count is among what cannot be read
    ],
)
def test_deliveries_are_counted_as_the_broker_counts(redelivered: bool, headers: Any, deliveries: int) -> None:
    delivery = delivered(headers, redelivered=redelivered)
    assert delivery.deliveries == deliveries
    assert delivery.is_suspect == (deliveries >= 3)


@pytest.mark.parametrize("message_id", ["a", "x" * 128, "день"])
def test_a_message_id_that_can_be_a_job_s_is_the_job_s(message_id: str) -> None:
    assert job_id(message_id) == message_id


@pytest.mark.parametrize("message_id", ["x" * 129, "a\0b", b"\xff\xfe"])
def test_one_that_cannot_is_stood_for_by_the_same_id_each_time(message_id: str | bytes) -> None:
    first, again = job_id(message_id), job_id(message_id)
    assert first == again
    assert first is not None
    assert first.startswith("sha256-")
    assert len(first) <= 128


@pytest.mark.parametrize("message_id", [None, "", b"", 7, {}])
def test_what_is_no_message_id_is_none(message_id: object) -> None:
    assert job_id(message_id) is None


@pytest.mark.parametrize(
    ("headers", "died_of"),
    [
        (
            {"x-death": [{"reason": "delivery_limit"}, {"reason": "expired"}]},
            "it was delivered as often as the queue allows",
        ),
        ({"x-first-death-reason": "expired"}, "its time to live ran out before it was read"),
        ({"x-death": "nonsense"}, None),
        ({"x-death": [{"reason": ["expired"]}]}, None),
        ({"x-death": [{"reason": WORDS}]}, None),
        ({}, None),
    ],
)
def test_a_dead_letter_says_of_what(headers: Any, died_of: str | None) -> None:
    assert delivered(headers).died_of == died_of


@pytest.mark.parametrize(("body", "session_id"), [(b"1", 1), (b"9223372036854775807", 2**63 - 1), (b"0042", 42)])
def test_a_hint_names_a_session(body: bytes, session_id: int) -> None:
    assert read_session_id(body) == session_id


@pytest.mark.parametrize(
    "body",
    [b"", b"0", b"-1", b" 1", b"1.0", b"9223372036854775808", b"9" * 5000, "٤".encode(), b"\xff", b"null", b"{}"],
)
def test_a_hint_that_names_none_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_session_id(body)


def test_what_a_person_said_does_not_show_where_dramatiq_writes_a_message_down() -> None:
    message = built("insika.turns", "accept_turn", delivered(body=WORDS.encode()))
    assert f"{message} {message!r} {message.args}".count(WORDS) == 0
    assert message.options == {}
