"""Handing in messages by the command line, and the jobs that were not taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.ingress import Ingress
from insika.errors import InvalidJob
from insika.storage.port import StoreUnavailable
from insika.storage.rows import Accepted, Verdict
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import World

SHOP = "id: shop\nmodel: offline/demo\nlimits: {mailbox_max: 2}\n"


@pytest.fixture
def shop(migrated: Any) -> Any:
    migrated.run("agents", "apply", migrated.write("shop.yaml", SHOP))
    return migrated


def send(shop: Any, *arguments: str, code: int = 0) -> Any:
    return shop.json("send", "--session", "ana", "--agent", "shop", *arguments, code=code)


def test_a_message_gets_a_verdict_a_turn_and_an_id(shop: Any) -> None:
    sent = send(shop, "hello")
    assert (sent["verdict"], sent["session"], sent["position"], sent["error"]) == ("accepted", "ana", 1, None)
    assert sent["id"].startswith("send-")
    assert send(shop, "hello")["id"] != sent["id"]
    told = shop.run("send", "--session", "bob", "--agent", "shop", "--id", "m1", "hello")
    assert told.output.splitlines()[0].endswith("  id m1")
    assert told.output.splitlines()[1] == "The message gets a turn of its own."


def test_the_same_id_is_a_duplicate_that_tells_the_state_of_the_first(shop: Any) -> None:
    first = send(shop, "--id", "m1", "hello")
    again = send(shop, "--id", "m1", "hello")
    assert (again["verdict"], again["turn_id"], again["turn_state"]) == ("duplicate", first["turn_id"], "queued")
    told = shop.run("send", "--session", "ana", "--agent", "shop", "--id", "m1", "hello")
    assert told.output.endswith("The message was handed in before; that turn is queued.\n")


def test_the_same_id_with_another_text_is_rejected_by_its_field(shop: Any) -> None:
    send(shop, "--id", "m1", "hello")
    other = send(shop, "--id", "m1", "good bye", code=1)
    assert (other["verdict"], other["error"]["type"], other["error"]["field"]) == ("rejected", "invalid_job", "id")
    told = shop.run("send", "--session", "ana", "--agent", "shop", "--id", "m1", "good bye")
    assert (told.exit_code, told.stdout) == (1, "")
    assert told.stderr.startswith("Error: the message was rejected: id: ")
    second, first = shop.json("rejected", "list")
    assert (first["number"], second["number"]) == (other["rejected_job"], other["rejected_job"] + 1)
    assert told.stderr.endswith(
        f" (kept as number {second['number']}; see `insika rejected show {second['number']}`)\n"
    )


def test_a_full_mailbox_says_so(shop: Any) -> None:
    for text in ("one", "two"):
        send(shop, text)
    refused = send(shop, "three", code=1)
    assert (refused["error"]["type"], refused["rejected_job"]) == ("mailbox_full", 1)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--agent", "nobody", "hello"], "agent"),
        (["--agent", "shop", "--channel", "nowhere", "hello"], "channel"),
        (["--agent", "shop", ""], "text"),
        (["--agent", "shop", "--id", "i" * 129, "hello"], "id"),
        (["--agent", "shop", "--tenant", "", "hello"], "tenant"),
    ],
)
def test_a_message_that_cannot_be_read_is_kept_and_its_field_named(shop: Any, arguments: list[str], field: str) -> None:
    sent = shop.json("send", "--session", "ana", *arguments, code=1)
    assert (sent["verdict"], sent["error"]["field"], sent["turn_id"]) == ("rejected", field, None)
    (kept,) = shop.json("rejected", "list")
    assert (kept["number"], kept["error"]["field"], kept["source"]) == (sent["rejected_job"], field, "send")


def test_everything_a_job_says_about_itself_goes_in(shop: Any) -> None:
    shop.run("settings", "apply", shop.write("settings.json", json.dumps(SETTINGS)))
    send(shop, "--tenant", "acme", "--channel", "web", "--recipient", "+49", "--mode", "collect", "hello")
    (row,) = shop.json("sessions", "show", "ana", "--tenant", "acme")["mail"]
    assert (row["channel"], row["recipient"], row["mode"], row["text"]) == ("web", "+49", "collect", "hello")


def test_a_text_can_be_read_from_standard_input(shop: Any) -> None:
    sent = shop.run("send", "--session", "ana", "--agent", "shop", "-", input="first line\nsecond\n")
    assert sent.exit_code == 0
    (row,) = shop.json("sessions", "show", "ana")["mail"]
    assert row["text"] == "first line\nsecond"


def test_sending_reads_the_configuration_that_the_environment_names(migrated: Any, monkeypatch: Any) -> None:
    (migrated.folder / "agents").mkdir()
    migrated.write("agents/shop.yaml", SHOP)
    monkeypatch.setenv("INSIKA_AGENTS_DIR", "agents")
    assert send(migrated, "hello")["verdict"] == "accepted"
    assert migrated.json("agents", "list")[0]["source"] == "file"


def test_when_the_store_does_not_answer_one_learns_how_to_send_again(shop: Any, monkeypatch: Any) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(SqliteStore, "accept", away)
    monkeypatch.setattr("actors.ingress.PATIENCE_S", 0.0)
    told = shop.run("send", "--session", "ana", "--agent", "shop", "--id", "m1", "hello")
    assert told.exit_code == 1
    assert told.stderr.startswith("Error: the disk is full")
    assert "--id m1" in told.stderr
    assert "Check INSIKA_DATABASE_URL" in told.stderr


def test_a_store_that_is_away_for_a_moment_is_asked_again(shop: Any, monkeypatch: Any) -> None:
    accept, tries = SqliteStore.accept, []

    async def away_at_first(store: SqliteStore, job: Any) -> Any:
        tries.append(job.turn_id)
        if len(tries) == 1:
            raise StoreUnavailable("the file is locked")
        return await accept(store, job)

    monkeypatch.setattr(SqliteStore, "accept", away_at_first)
    sent = send(shop, "hello")
    assert sent["verdict"] == "accepted"
    assert (len(set(tries)), tries[-1]) == (2, sent["turn_id"])


def test_a_rejected_job_is_shown_as_it_came(command_line: Any) -> None:
    error = InvalidJob("body: expected UTF-8, got byte 0 that is not", field="body").as_dict()

    async def fill(world: World) -> None:
        await world.store.reject(b"\xff\xfe", error, "amqp")
        await world.store.reject('{"text": "größer"}'.encode(), error, "amqp")

    command_line.seed(fill)
    second, first = command_line.json("rejected", "list")
    assert (first["raw"], first["raw_base64"]) == (None, "//4=")
    assert (second["raw"], second["raw_base64"]) == ('{"text": "größer"}', None)
    assert first["error"] == error
    assert command_line.json("rejected", "show", "1") == first
    assert "(base64) //4=" in command_line.run("rejected", "show", "1").output
    assert '{"text": "größer"}' in command_line.run("rejected", "show", "2").output
    assert command_line.run("rejected", "list").output.splitlines()[1].split()[:5] == [
        "2",
        "2020-01-01",
        "00:00:00Z",
        "amqp",
        "no",
    ]


def test_a_job_that_is_rejected_again_is_kept_anew_and_the_old_one_marked(shop: Any) -> None:
    shop.run("send", "--session", "ana", "--agent", "nobody", "hello")
    again = shop.json("rejected", "requeue", "1", code=1)
    assert (again["verdict"], again["rejected_job"]) == ("rejected", 2)
    newer, older = shop.json("rejected", "list")
    assert (newer["requeued_at"], newer["source"]) == (None, "requeue")
    assert older["requeued_at"].endswith("Z")


def test_a_job_that_meets_a_full_mailbox_again_names_its_new_number(shop: Any) -> None:
    for text in ("one", "two", "three"):
        shop.run("send", "--session", "ana", "--agent", "shop", text)
    again = shop.json("rejected", "requeue", "1", code=1)
    assert (again["error"]["type"], again["rejected_job"], again["session"]) == ("mailbox_full", 2, "ana")
    told = shop.run("rejected", "requeue", "2")
    assert (told.exit_code, "(kept as number 3; see" in told.stderr) == (1, True)
    assert [bool(row["requeued_at"]) for row in shop.json("rejected", "list")] == [False, True, True]


def test_a_job_that_nobody_kept_anew_is_not_marked(shop: Any, monkeypatch: Any) -> None:
    async def kept_nowhere(*_: Any, **__: Any) -> Accepted:
        return Accepted(Verdict.REJECTED, 1, reason="the mailbox is full")

    shop.run("send", "--session", "ana", "--agent", "nobody", "hello")
    monkeypatch.setattr(Ingress, "take", kept_nowhere)
    assert shop.json("rejected", "requeue", "1", code=1)["rejected_job"] is None
    assert shop.json("rejected", "list")[0]["requeued_at"] is None


def test_a_job_without_an_id_that_is_requeued_twice_runs_once(shop: Any, command_line: Any) -> None:
    job = json.dumps({"session": "ana", "agent": "shop", "text": "hello"}).encode()
    shop.seed(lambda world: world.store.reject(job, {"type": "invalid_job", "message": "x"}, "amqp"))
    first = shop.json("rejected", "requeue", "1")
    again = shop.json("rejected", "requeue", "1")
    assert (first["verdict"], again["verdict"], again["turn_id"]) == ("accepted", "duplicate", first["turn_id"])


def test_a_requeued_job_is_told_by_its_own_id(shop: Any) -> None:
    for id_ in ("m1", "m2", "m9"):
        shop.run("send", "--session", "ana", "--agent", "shop", "--id", id_, "hello")
    shop.run("agents", "apply", shop.write("shop.yaml", SHOP.replace("2", "3")))
    assert shop.json("rejected", "requeue", "1")["id"] == "m9"


def test_a_requeued_job_without_an_id_of_its_own_is_told_by_what_the_broker_called_it(shop: Any) -> None:
    job = json.dumps({"session": "ana", "agent": "shop", "text": "hello"}).encode()
    error = {"type": "unknown_agent", "message": "x", "message_id": "m-1"}
    shop.seed(lambda world: world.store.reject(job, error, "amqp"))
    assert shop.json("rejected", "requeue", "1")["id"] == "m-1"


@pytest.mark.parametrize("command", ["show", "requeue"])
@pytest.mark.parametrize("number", [2**63, 10**22])
def test_a_number_that_no_rejected_job_can_have_is_bad_usage(migrated: Any, command: str, number: int) -> None:
    assert migrated.run("rejected", command, str(2**63 - 1)).exit_code == 1
    assert migrated.run("rejected", command, str(number)).exit_code == 2


def test_a_rejected_job_that_is_not_there_is_an_error(migrated: Any) -> None:
    for command in ("show", "requeue"):
        missing = migrated.run("rejected", command, "7")
        assert (missing.exit_code, "there is no rejected job 7" in missing.stderr) == (1, True)


SETTINGS = {
    "channels": [{"id": "web", "url": "https://shop.example/hook", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}]
}
