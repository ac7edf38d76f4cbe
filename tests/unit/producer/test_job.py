from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest

from insika.choices import Origin, QueueMode
from insika.errors import InvalidJob
from insika.jobs import MAX_TEXT_BYTES, TurnJob, parse_job
from insika.producer.job import publishable_job

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


def job(*, session="ana", agent="shop", text="hello", **fields):
    return publishable_job(session=session, agent=agent, text=text, fields=fields)


def test_the_least_that_a_job_can_say():
    made = job()
    assert json.loads(made.body) == {"id": made.id, "session": "ana", "agent": "shop", "text": "hello"}


def test_every_field_of_a_job_can_be_said_and_is_read_as_it_was_meant():
    made = job(
        id="m1",
        tenant="acme",
        customer="c7",
        channel="web",
        recipient="+49",
        vars={"plan": "gold"},
        queue_mode=QueueMode.STEER,
        origin="engine",
        sent_at=NOON.astimezone(timezone(timedelta(hours=2))),
    )
    assert parse_job(made.body) == TurnJob(
        session="ana",
        agent="shop",
        text="hello",
        recipient="+49",
        id="m1",
        tenant="acme",
        customer="c7",
        channel="web",
        vars={"plan": "gold"},
        queue_mode=QueueMode.STEER,
        origin=Origin.ENGINE,
        sent_at=NOON,
    )


def test_the_message_is_persistent_and_carries_the_id():
    properties = job(id="m1").properties
    assert (properties.message_id, properties.delivery_mode, properties.content_type) == ("m1", 2, "application/json")


def test_an_id_is_made_where_there_is_none_and_begins_with_the_time():
    first, second = job(), job(id=None)
    assert first.id != second.id
    assert [uuid.UUID(it.id).version for it in (first, second)] == [7, 7]
    assert first.properties.message_id == first.id


def test_an_id_longer_than_amqp_takes_stands_in_the_job_alone():
    made = job(id="ü" * 128)
    assert (made.properties.message_id, json.loads(made.body)["id"]) == (None, "ü" * 128)
    assert job(id="ü" * 127).properties.message_id == "ü" * 127


def test_none_says_nothing():
    made = job(channel=None, vars=None, queue_mode=None, sent_at=None)
    assert set(json.loads(made.body)) == {"id", "session", "agent", "text"}


def test_the_body_is_utf_8_and_what_cannot_be_kept_is_replaced():
    made = job(text="grüße \ud83d\ude00 \0 \ud800")
    assert json.loads(made.body)["text"] == "grüße 😀 \ufffd \ufffd"
    assert "grüße 😀".encode() in made.body


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"session": ""}, "session"),
        ({"session": None}, "session"),
        ({"session": "s" * 257}, "session"),
        ({"agent": 7}, "agent"),
        ({"text": ""}, "text"),
        ({"text": "x" * (MAX_TEXT_BYTES + 1)}, "text"),
        ({"id": ""}, "id"),
        ({"id": "i" * 129}, "id"),
        ({"id": "a\0b"}, "id"),
        ({"tenant": ""}, "tenant"),
        ({"vars": ["plan"]}, "vars"),
        ({"vars": {"at": NOON}}, "vars.at"),
        ({"vars": {"big": "x" * 300_000}}, "body"),
        ({"vars": {"thinking": "sometimes"}}, "vars.thinking"),
        ({"queue_mode": "later"}, "queue_mode"),
        ({"origin": "robot"}, "origin"),
        ({"sent_at": datetime(2030, 1, 31, 12)}, "sent_at"),
        ({"sent_at": "2030-01-31T12:00:00Z"}, "sent_at"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_what_ingress_would_not_read_is_refused_with_its_field(fields, field):
    with pytest.raises(InvalidJob) as caught:
        job(**fields)
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field}: ")


def test_a_time_without_its_zone_is_told_so():
    with pytest.raises(InvalidJob, match="sent_at: expected a datetime with its time zone"):
        job(sent_at=datetime(2030, 1, 31, 12))


def test_a_mistyped_field_is_guessed():
    with pytest.raises(InvalidJob, match="did you mean channel"):
        job(chanel="web")
