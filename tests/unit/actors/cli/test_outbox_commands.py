"""Deliveries as an operator sees them, sending again by hand, recovering, and bringing the database up to date."""

from __future__ import annotations

import re
import socket
import sqlite3
from typing import Any

from outbox.delivery import GRACE_S
from outbox.sqlite_store import SqliteOutboxStore
from outbox.states import Failed
from tests.store_world import World


def deliveries(world: World) -> SqliteOutboxStore:
    return SqliteOutboxStore(world.store.database)  # type: ignore[attr-defined]


async def pending(world: World) -> str:
    """A turn whose answer waits to be delivered. The delivery's id."""
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.commit()
    await owner.look()
    await owner.release()
    return str((await deliveries(world).list())[0].id)


async def claimed(world: World) -> str:
    """As above, and a process that was sending it has died long ago."""
    id_ = await pending(world)
    assert await deliveries(world).claim(GRACE_S) is not None
    return id_


async def failed(world: World) -> str:
    id_ = await pending(world)
    claim = await deliveries(world).claim(GRACE_S)
    assert claim is not None
    await deliveries(world).settle(id_, claim.claim, Failed("the receiver answered 404"))
    return id_


def test_deliveries_are_listed_by_state(command_line: Any) -> None:
    id_ = command_line.seed(failed)
    (row,) = command_line.json("outbox", "list")
    assert (row["id"], row["state"], row["attempts"], row["reason"]) == (id_, "failed", 1, "the receiver answered 404")
    assert row["payload"]["content"] == "answer"
    assert command_line.json("outbox", "list", "--state", "failed") == [row]
    assert command_line.json("outbox", "list", "--state", "pending") == []
    told = command_line.run("outbox", "list").output
    assert id_ in told
    assert "the receiver answered 404" in told
    assert told.endswith("\n1 failed\n")
    assert command_line.run("outbox", "list", "--state", "pending").output == "No deliveries are pending.\n"
    assert command_line.run("outbox", "list", "--state", "lost").exit_code == 2


def test_one_delivery_is_shown_with_what_it_says(command_line: Any) -> None:
    id_ = command_line.seed(failed)
    assert command_line.json("outbox", "show", id_) == command_line.json("outbox", "list")[0]
    told = command_line.run("outbox", "show", id_).output
    for part in (id_, "failed", "https://shop.example/hook", "content: answer", "1/3"):
        assert part in told
    missing = command_line.run("outbox", "show", "none")
    assert (missing.exit_code, "there is no delivery 'none'" in missing.stderr) == (1, True)


def test_a_delivery_is_known_by_the_beginning_of_its_id(command_line: Any) -> None:
    async def fill(world: World) -> list[str]:
        return [await failed(world), await failed(world)]

    command_line.seed(fill)
    one, other = (row["id"] for row in command_line.json("outbox", "list"))
    assert command_line.json("outbox", "show", one[:-1])["id"] == one
    several = command_line.json("outbox", "resend", one[:4], code=1)["error"]
    assert (several["type"], one in several["message"], other in several["message"]) == ("ambiguous", True, True)
    assert command_line.json("outbox", "resend", other[:-1]) == {
        "id": other,
        "resent": True,
        "not_before": None,
        "error": None,
    }


def test_a_list_of_deliveries_fits_a_terminal(command_line: Any, monkeypatch: Any) -> None:
    id_ = command_line.seed(failed)
    with sqlite3.connect(command_line.database) as connection:
        connection.execute("UPDATE outbox SET last_error = ?", ("no connection could be made " * 10,))
    monkeypatch.setattr("actors.cli.output.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    header, row, *_ = command_line.run("outbox", "list").output.splitlines()
    assert (header.split()[0], row.split()[0]) == ("DELIVERY", id_[: len(row.split()[0])])
    assert len(row.split()[0]) < len(id_)
    assert len(row) <= 80
    assert row.endswith("…")
    assert command_line.json("outbox", "show", row.split()[0])["id"] == id_


def test_a_failed_delivery_is_pending_again_once_it_is_resent(command_line: Any) -> None:
    id_ = command_line.seed(failed)
    assert command_line.json("outbox", "resend", id_)["resent"] is True
    row = command_line.json("outbox", "show", id_)
    assert (row["state"], row["resends"], row["possible_duplicate"]) == ("pending", 1, True)
    refused = command_line.json("outbox", "resend", id_, code=1)
    assert (refused["resent"], refused["not_before"]) == (False, None)
    assert refused["error"]["type"] == "refused"
    assert "is pending; only failed and uncertain ones" in refused["error"]["message"]


def test_what_is_being_sent_is_told_with_the_end_of_its_claim(command_line: Any) -> None:
    id_ = command_line.seed(claimed)
    with sqlite3.connect(command_line.database) as connection:
        connection.execute("UPDATE outbox SET claim_until = 4102444800000000")  # 2100-01-01
    assert command_line.json("recover")["sending"] == 1
    assert "sending        1  deliveries that a process is sending" in command_line.run("recover").output
    told = command_line.run("outbox", "show", id_).output
    assert re.search(r"^claim ends +2100-01-01 00:00:00Z$", told, re.MULTILINE)
    assert command_line.json("outbox", "show", id_)["claim_until"] == "2100-01-01T00:00:00Z"


def test_a_resend_that_is_refused_says_until_when_and_what_overrides_it(command_line: Any) -> None:
    id_ = command_line.seed(failed)
    with sqlite3.connect(command_line.database) as connection:
        connection.execute("UPDATE outbox SET claimed_at = 4102444800000000")
    told = command_line.run("outbox", "resend", id_)
    assert told.exit_code == 1
    assert told.stderr == (
        f"Error: delivery {id_} was last tried less than 5 minutes ago; "
        "it can be resent from 2100-01-01 00:05:00Z on, or now with --force\n"
    )


def test_resending_one_that_is_not_there_fails(migrated: Any) -> None:
    result = migrated.run("outbox", "resend", "none")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: there is no delivery 'none'; `insika outbox list` shows those there are\n",
    )


def test_recovering_tells_what_became_uncertain_and_what_is_due(command_line: Any) -> None:
    id_ = command_line.seed(claimed)
    command_line.seed(lambda world: world.say(session="waits"))
    assert command_line.json("recover") == {"sent": 0, "uncertain": 1, "pending": 0, "sending": 0, "woken": 1}
    assert command_line.json("outbox", "show", id_)["state"] == "uncertain"
    assert command_line.json("recover") == {"sent": 0, "uncertain": 0, "pending": 0, "sending": 0, "woken": 1}
    told = command_line.run("recover").output
    assert "woken          1  sessions that are due" in told


def test_recovering_leaves_what_cannot_be_signed_failed(command_line: Any) -> None:
    """The settings have lost the channel since the answer was written."""
    id_ = command_line.seed(pending)
    assert command_line.json("recover") == {"sent": 0, "uncertain": 0, "pending": 0, "sending": 0, "woken": 0}
    row = command_line.json("outbox", "show", id_)
    assert (row["state"], "cannot sign" in row["reason"]) == ("failed", True)


def test_migrating_tells_what_it_did_and_is_done_once(command_line: Any) -> None:
    checked = command_line.run("migrate", "--check")
    assert (checked.exit_code, command_line.database.exists()) == (1, False)
    assert checked.output.startswith("pending  0001_initial\n")
    first = command_line.run("migrate")
    assert (first.exit_code, first.output.splitlines()[0]) == (0, "applied  0001_initial")
    again = command_line.json("migrate")
    assert (again["applied"], again["pending"], again["database"]) == ([], [], "insika.db")
    assert command_line.run("migrate", "--check").exit_code == 0


def test_a_receiver_takes_only_secrets_that_are_some(command_line: Any) -> None:
    result = command_line.run("receive", "--port", "0", "--secret", "hush-hush")
    assert result.exit_code == 2
    assert "whsec_" in result.stderr
    assert "hush-hush" not in result.stderr


def test_a_port_that_is_taken_is_one_sentence(command_line: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = command_line.run("receive", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot receive: ")
