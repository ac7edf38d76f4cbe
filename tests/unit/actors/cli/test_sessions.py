"""Sessions and turns as an operator sees them, and what he may do to them."""

from __future__ import annotations

import re
from typing import Any

from actors.cli.turns import as_asked
from insika.messages import Usage
from insika.storage.operations import FailQueued, SettleMail
from insika.storage.rows import Ended, ModelCallRow, TurnState
from tests.store_world import World, done


async def steered_conversation(world: World) -> str:
    """A turn with one call, which a second message joins; a third waits. The turn's id."""
    first = await world.say("where is order 1234?", job_id="m1", mode="steer")
    owner = await world.own(first.session_id)
    await owner.start()
    await owner.append("c1")
    await world.say("I meant 1235", job_id="m2", mode="steer")
    await owner.look()
    await owner.start_call()
    await owner.finish_call(done(0, "c1"))
    await owner.cross(done(0, "c1"), notices=("[insika] two calls left",), absorbed=owner.absorbing(2))
    await world.say("and\nanother", job_id="m3", mode="followup")
    await owner.look()
    await owner.commit(2)
    return owner.loaded.turn.id if owner.loaded.turn else first.turn_id or ""


async def failed_turn(world: World, *texts: str, **values: Any) -> str:
    """A turn of these messages that failed before it began. Its id."""
    said = [await world.say(text, mode="collect", **values) for text in texts]
    owner = await world.own(said[0].session_id)
    first = owner.loaded.mail[0]
    assert first.turn_id is not None
    error = {"type": "provider_fatal", "message": "the account is closed"}
    positions = tuple(row.position for row in owner.loaded.mail)
    await world.store.fail_queued(
        owner.fence,
        owner.seen,
        FailQueued(
            first.turn_id, positions, first.agent, first.channel, first.recipient, first.origin, error, merging=True
        ),
    )
    await owner.look()
    await owner.release()
    return first.turn_id


def test_a_list_of_sessions_tells_what_each_is_doing(command_line: Any) -> None:
    async def fill(world: World) -> None:
        await world.say(session="ana")
        await world.say(session="bob", tenant="acme")
        await world.store.set_paused("bob", True, tenant="acme")

    command_line.seed(fill)
    bob, ana = command_line.json("sessions", "list")
    assert ana == {
        "session": "ana",
        "tenant": None,
        "message_count": 0,
        "waiting": 1,
        "turn_id": None,
        "turn_state": None,
        "owned": False,
        "paused": False,
        "due_now": True,
        "due_at": None,
    }
    shown_as_one = command_line.json("sessions", "show", "ana")
    assert {key: shown_as_one[key] for key in ana} == ana
    assert (bob["session"], bob["tenant"], bob["paused"]) == ("bob", "acme", True)
    assert [row["session"] for row in command_line.json("sessions", "list", "--tenant", "acme")] == ["bob"]
    assert [row["session"] for row in command_line.json("sessions", "list", "--limit", "1")] == ["bob"]
    shown = command_line.run("sessions", "list").output.splitlines()
    assert shown[0].split() == ["SESSION", "TENANT", "MESSAGES", "WAITING", "TURN", "DUE"]
    assert shown[1].split() == ["bob", "acme", "0", "1", "waiting,", "paused", "held"]
    assert shown[2].split() == ["ana", "-", "0", "1", "waiting", "now"]


def test_a_conversation_tells_who_said_what_and_where_each_message_went(command_line: Any) -> None:
    turn_id = command_line.seed(steered_conversation)
    shown = command_line.json("sessions", "show", "s")
    assert [(row["by"], row["role"], row["step"]) for row in shown["messages"]] == [
        ("person", "user", 0),
        ("agent", "assistant", 1),
        ("tool", "tool", 1),
        ("engine", "user", 1),
        ("person", "user", 1),
        ("agent", "assistant", 2),
    ]
    assert shown["messages"][1]["tool_calls"] == [{"id": "c1", "name": "look_up", "arguments": {"n": 1}}]
    assert [(row["id"], row["verdict"], row["consumed_by"], row["ended"]) for row in shown["mail"]] == [
        ("m1", "accepted", turn_id, "turn"),
        ("m2", "steered", turn_id, "turn"),
        ("m3", "accepted", None, None),
    ]
    assert [turn["state"] for turn in shown["turns"]] == ["completed", "queued"]
    told = command_line.run("sessions", "show", "s").output
    assert f"turn {turn_id}  completed" in told
    for line in ("0  person  where is order 1234?", "1  engine  [insika] two calls left", "2  agent   the answer"):
        assert line in told
    assert "and another" in told
    assert went(command_line) == [
        f"got its own turn {turn_id}",
        f"joined turn {turn_id} at its boundary after step 1",
        f"waits for its own turn {shown['mail'][2]['turn_id']}",
    ]


def went(command_line: Any) -> list[str]:
    """Where each message of the session went, as it is printed."""
    table = command_line.run("sessions", "show", "s").output.partition("Messages and where they went\n")[2]
    return [re.split(" {2,}", row)[-1] for row in table.splitlines()[1:]]


def test_a_session_that_is_not_there_is_an_error_that_names_its_tenant(migrated: Any) -> None:
    for command in (["show"], ["pause"], ["resume"], ["retry"], ["withdraw", "m1"]):
        result = migrated.run("sessions", command[0], "ana", *command[1:], "--tenant", "acme")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: there is no session 'ana' of tenant 'acme'")


def test_a_session_is_held_and_let_go(command_line: Any) -> None:
    command_line.seed(lambda world: world.say())
    assert command_line.run("sessions", "pause", "s").output == "paused  s\n"
    assert command_line.json("sessions", "pause", "s") == {"session": "s", "tenant": None, "paused": True}
    assert command_line.json("sessions", "show", "s")["paused"] is True
    assert command_line.json("sessions", "resume", "s")["paused"] is False
    assert command_line.json("sessions", "show", "s")["paused"] is False


def test_a_failed_turn_is_retried_with_all_that_was_said_and_whose_it_was(command_line: Any) -> None:
    turn_id = command_line.seed(lambda world: failed_turn(world, "first", "second", customer="c-1", tenant="acme"))
    command_line.run("agents", "apply", command_line.write("shop.yaml", COLLECTS))
    command_line.run("settings", "apply", command_line.write("settings.json", WEB))
    retried = command_line.json("sessions", "retry", "s", "--tenant", "acme")
    assert (retried["verdict"], retried["retried_turn"], retried["id"]) == ("accepted", turn_id, f"retry-{turn_id}")
    again = command_line.json("sessions", "retry", "s", "--tenant", "acme", "--turn", turn_id)
    assert (again["verdict"], again["turn_id"]) == ("duplicate", retried["turn_id"])
    row = command_line.json("sessions", "show", "s", "--tenant", "acme")["mail"][-1]
    assert (row["text"], row["mode"]) == ("first\n\nsecond", "followup")
    assert (row["customer"], row["channel"], row["recipient"], row["agent"]) == ("c-1", "web", "bob", "shop")


def test_a_retry_that_is_rejected_fails(command_line: Any) -> None:
    command_line.seed(lambda world: failed_turn(world, "first"))
    result = command_line.run("sessions", "retry", "s")
    assert result.exit_code == 1
    assert "agent: there is no agent 'shop'" in result.stderr


def test_only_failed_turns_are_retried(command_line: Any) -> None:
    turn_id = command_line.seed(steered_conversation)
    for arguments, why in (
        ((), "no turn of session 's' has failed"),
        (("--turn", turn_id), "only a failed one is run again"),
        (("--turn", "none"), "has no turn 'none'"),
    ):
        result = command_line.run("sessions", "retry", "s", *arguments)
        assert result.exit_code == 1
        assert why in result.stderr


def test_a_turn_is_shown_with_its_calls_and_what_they_cost(command_line: Any) -> None:
    turn_id = command_line.seed(steered_conversation)
    shown = command_line.json("turns", "show", turn_id)
    assert (shown["state"], shown["outcome"], shown["session"], shown["tenant"]) == (
        "completed",
        "completed",
        "s",
        None,
    )
    assert shown["created_at"] == "2020-01-01T00:00:00Z"
    assert [(call["tool"], call["state"]) for call in shown["calls"]] == [("look_up", "done")]
    assert shown["usage"] == {"input": 20, "output": 10, "cache_read": 4, "cache_write": 2, "total": 36}
    told = command_line.run("turns", "show", turn_id).output
    assert re.search(r"^state +completed$", told, re.MULTILINE)
    assert "look_up" in told
    assert "36 (20 in, 10 out)" in told


def test_a_turn_that_a_guard_refused_says_so(command_line: Any) -> None:
    async def fill(world: World) -> str:
        said = await world.say("show me your orders")
        owner = await world.own(said.session_id)
        mail = SettleMail((1,), Ended.REFUSED, said.turn_id, TurnState.REFUSED)
        assert await world.store.settle_mail(owner.fence, owner.seen, mail)
        return said.turn_id or ""

    turn_id = command_line.seed(fill)
    told = command_line.run("turns", "show", turn_id).output
    assert re.search(r"^refused +by a guard: nothing of it is in the conversation", told, re.MULTILINE)


def test_the_requests_of_a_turn_are_told_in_the_order_of_what_hung_on_what() -> None:
    asked = [(1, 1, "answer"), (1, 2, "answer"), (1, 1, "classify"), (1, 1, "moderate"), (2, 1, "synthesis")]
    rows = [ModelCallRow("t", step, attempt, purpose, "m", "measured", Usage()) for step, attempt, purpose in asked]
    assert [(row.step, row.attempt, row.purpose) for row in sorted(rows, key=as_asked)] == [
        (1, 1, "moderate"),
        (1, 1, "classify"),
        (1, 1, "answer"),
        (1, 2, "answer"),
        (2, 1, "synthesis"),
    ]


def test_the_error_of_a_turn_is_told(command_line: Any) -> None:
    turn_id = command_line.seed(lambda world: failed_turn(world, "first"))
    assert "failed: provider_fatal: the account is closed" in command_line.run("turns", "show", turn_id).output
    assert "failed: provider_fatal: the account is closed" in command_line.run("sessions", "show", "s").output


def test_a_waiting_turn_is_cancelled_once(command_line: Any) -> None:
    turn_id = command_line.seed(lambda world: world.say()).turn_id
    first = command_line.json("turns", "cancel", turn_id, "--no-wait")
    assert first == {"turn_id": turn_id, "turn_state": "queued", "asked_before": False, "ended": None}
    assert command_line.json("turns", "cancel", turn_id, "--no-wait")["asked_before"] is True


def test_what_asked_for_a_turns_end_is_called_a_cancel(command_line: Any) -> None:
    turn_id = command_line.seed(lambda world: world.say()).turn_id
    command_line.run("turns", "cancel", turn_id, "--no-wait")
    row = command_line.run("sessions", "show", "s").output.splitlines()[-1]
    assert re.split(" {2,}", row) == ["2", f"cancel-{turn_id}", "(cancel)", "control", f"asks turn {turn_id} to end"]


def test_turns_are_listed_the_newest_first(command_line: Any) -> None:
    async def fill(world: World) -> list[str]:
        said = [await world.say(session=name) for name in ("ana", "bob", "ana")]
        return [str(accepted.turn_id) for accepted in said]

    first, second, third = command_line.seed(fill)
    listed = command_line.json("turns", "list")
    assert [(row["turn_id"], row["session"], row["tenant"]) for row in listed] == [
        (third, "ana", None),
        (second, "bob", None),
        (first, "ana", None),
    ]
    assert [row["turn_id"] for row in command_line.json("turns", "list", "--session", "ana")] == [third, first]
    assert [row["turn_id"] for row in command_line.json("turns", "list", "--limit", "1")] == [third]
    assert command_line.run("turns", "list").output.splitlines()[1].split()[:2] == [third, "ana"]
    missing = command_line.run("turns", "list", "--session", "nobody")
    assert (missing.exit_code, "there is no session 'nobody'" in missing.stderr) == (1, True)


def test_a_turn_is_known_by_the_beginning_of_its_id(command_line: Any) -> None:
    async def fill(world: World) -> list[str]:
        ids = ["d9ff8771-1", "d9ff8772-1", "%9ff8771-1"]
        for turn_id in ids:
            await world.say(turn_id=turn_id)
        return ids

    first, second, odd = command_line.seed(fill)
    assert command_line.json("turns", "show", "d9ff8771")["turn_id"] == first
    assert command_line.json("turns", "show", "%")["turn_id"] == odd
    several = command_line.run("turns", "show", "d9ff877")
    assert (several.exit_code, several.stderr) == (1, f"Error: 'd9ff877' may be any of: {first}, {second}\n")
    assert command_line.json("turns", "show", "d9", code=1)["error"]["type"] == "ambiguous"
    assert command_line.json("turns", "cancel", "d9ff8772", "--no-wait")["turn_id"] == second
    assert command_line.json("turns", "show", "", code=1)["error"]["type"] == "not_found"


def test_the_failed_turn_may_be_named_by_its_beginning(command_line: Any) -> None:
    turn_id = command_line.seed(lambda world: failed_turn(world, "first"))
    command_line.run("agents", "apply", command_line.write("shop.yaml", COLLECTS))
    assert command_line.json("sessions", "retry", "s", "--turn", turn_id[:8], code=1)["retried_turn"] == turn_id


def test_a_turn_that_has_ended_or_never_was_cannot_be_cancelled(command_line: Any) -> None:
    turn_id = command_line.seed(steered_conversation)
    ended = command_line.run("turns", "cancel", turn_id)
    assert (ended.exit_code, "has ended already (completed)" in ended.stderr) == (1, True)
    for command in ("cancel", "show"):
        missing = command_line.run("turns", command, "none")
        assert (missing.exit_code, "there is no turn 'none'" in missing.stderr) == (1, True)


COLLECTS = "id: shop\nmodel: offline/demo\nlimits: {queue_mode: collect}\n"
WEB = """
{"channels": [{"id": "web", "url": "https://shop.example/hook", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}]}
"""
