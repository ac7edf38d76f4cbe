"""Deliveries as an operator sees them, sending again by hand, recovering, and bringing the database up to date."""

from __future__ import annotations

import socket
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


def test_a_failed_delivery_is_pending_again_once_it_is_resent(command_line: Any) -> None:
    id_ = command_line.seed(failed)
    assert command_line.json("outbox", "resend", id_)["resent"] is True
    row = command_line.json("outbox", "show", id_)
    assert (row["state"], row["resends"], row["possible_duplicate"]) == ("pending", 1, True)
    refused = command_line.json("outbox", "resend", id_, code=1)
    assert (refused["resent"], refused["not_before"]) == (False, None)
    assert "is pending; only failed and uncertain ones" in refused["reason"]


def test_resending_one_that_is_not_there_fails(migrated: Any) -> None:
    result = migrated.run("outbox", "resend", "none")
    assert (result.exit_code, result.stderr) == (1, "Error: there is no delivery none\n")


def test_recovering_tells_what_became_uncertain_and_what_is_due(command_line: Any) -> None:
    id_ = command_line.seed(claimed)
    command_line.seed(lambda world: world.say(session="waits"))
    assert command_line.json("recover") == {"sent": 0, "uncertain": 1, "pending": 0, "woken": 1}
    assert command_line.json("outbox", "show", id_)["state"] == "uncertain"
    assert command_line.json("recover") == {"sent": 0, "uncertain": 0, "pending": 0, "woken": 1}
    told = command_line.run("recover").output
    assert "woken          1  sessions that are due" in told


def test_recovering_leaves_what_cannot_be_signed_failed(command_line: Any) -> None:
    """The settings have lost the channel since the answer was written."""
    id_ = command_line.seed(pending)
    assert command_line.json("recover") == {"sent": 0, "uncertain": 0, "pending": 0, "woken": 0}
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
