"""`insika send --amqp`: what it hands to the broker, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.amqp_wire import declare, drain
from tests.command_line import Folder, folder

TURNS = "insika.turns"
SEND = ("send", "--amqp", "--session", "ana", "--agent", "shop")


@pytest.fixture
def command(tmp_path: Path, clean_amqp_url: str):
    with folder(tmp_path, INSIKA_AMQP_URL=clean_amqp_url) as made:
        yield made


def test_the_message_is_on_the_queue_and_no_store_was_opened(command: Folder, clean_amqp_url: str):
    declare(clean_amqp_url, TURNS)
    more = ("--id", "m1", "--channel", "web", "--recipient", "+49", "--tenant", "acme", "--mode", "steer")
    told = command.must(*SEND, *more, "grüße")
    ((properties, body),) = drain(clean_amqp_url, TURNS)
    assert json.loads(body) == {
        "id": "m1",
        "session": "ana",
        "agent": "shop",
        "text": "grüße",
        "channel": "web",
        "recipient": "+49",
        "tenant": "acme",
        "queue_mode": "steer",
    }
    assert (properties.message_id, properties.delivery_mode) == ("m1", 2)
    assert told.out.splitlines()[0] == "published  id m1"
    assert "its verdict is not known yet" in told.out
    assert told.err == ""
    assert not (command.path / "insika.db").exists()


def test_an_id_is_made_up_and_told(command: Folder, clean_amqp_url: str):
    declare(clean_amqp_url, TURNS)
    told = command.insika(*SEND, "--json", "-", input="hello\n")
    ((properties, body),) = drain(clean_amqp_url, TURNS)
    assert told.json == {
        "verdict": None,
        "id": properties.message_id,
        "session": "ana",
        "broker": clean_amqp_url.partition("@")[2],
        "queue": TURNS,
    }
    assert json.loads(body)["text"] == "hello"


def test_a_message_that_nobody_could_read_is_not_published(command: Folder, clean_amqp_url: str):
    declare(clean_amqp_url, TURNS)
    refused = command.insika(*SEND, "--id", "i" * 129, "hello")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("Error: id: expected a string of 1 to 128 characters")
    assert drain(clean_amqp_url, TURNS) == []


def test_a_queue_that_is_not_there_is_one_sentence(command: Folder):
    refused = command.insika(*SEND, "hello")
    assert (refused.code, refused.out) == (1, "")
    assert "has no queue 'insika.turns'" in refused.err
    assert "`insika ingress`" in refused.err
    assert refused.err.count("\n") == 1
    assert command.insika(*SEND, "--json", "hello").json["error"]["type"] == "not_routed"


@pytest.mark.parametrize(
    ("url", "told", "type_"),
    [
        ("", "INSIKA_AMQP_URL is not set", "refused"),
        ("amqp://guest:hidden@{host}/", "does not let us in: ACCESS_REFUSED", "broker_unreachable"),
        ("https://guest:hidden@host/", "INSIKA_AMQP_URL: must be a URL like amqp://", "invalid_configuration"),
        ("amqp://hidden@host/", "must be a URL like amqp://", "invalid_configuration"),
    ],
    ids=["absent", "password", "scheme", "no password"],
)
def test_a_broker_that_cannot_be_used_is_told_without_its_password(command: Folder, url: str, told: str, type_: str):
    host = command.environment["INSIKA_AMQP_URL"].partition("@")[2].partition("/")[0]
    command.environment["INSIKA_AMQP_URL"] = url.format(host=host)
    refused = command.insika(*SEND, "hello")
    assert (refused.code, refused.out) == (1, "")
    assert told in refused.err
    assert "hidden" not in refused.err
    assert "Traceback" not in refused.err
    assert command.insika(*SEND, "--json", "hello").json["error"]["type"] == type_
