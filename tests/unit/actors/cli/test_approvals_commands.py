"""The calls that wait for a person, and a person's word on them, by the command line."""

from __future__ import annotations

import getpass
import json
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from insika.policy.approvals import arguments_hash
from insika.storage.operations import AskApproval, CallResult
from insika.storage.rows import ApprovalDecision, CallState
from tests.store_world import World

YEARS_S = 86_400.0 * 365 * 100
ID = "5c1f0000aaaabbbbccccddddeeeeffff"
OTHER_ID = "77aa0000aaaabbbbccccddddeeeeffff"


def asked(*ids: str, valid_s: float = YEARS_S, **values: Any) -> Callable[[World], Awaitable[str]]:
    """A turn that waits for a person about one call for each of the ids. Its id."""

    async def fill(world: World) -> str:
        accepted = await world.say("refund order 1234", **values)
        owner = await world.own(accepted.session_id)
        await owner.start()
        calls = [f"call-{place}" for place, _ in enumerate(ids)]
        await owner.append(*calls)
        hash_ = arguments_hash("look_up", {"n": 1})
        questions = [AskApproval(id_, call, "look_up", hash_, valid_s) for id_, call in zip(ids, calls, strict=True)]
        assert await owner.store.ask_approvals(owner.fence, owner.seen, owner.turn_id, questions)
        turn_id = owner.turn_id
        assert await owner.suspend()
        return turn_id

    return fill


def test_what_waits_for_a_person_is_listed_with_what_one_must_see_to_decide(command_line: Any) -> None:
    turn_id = command_line.seed(asked(ID))
    (row,) = command_line.json("approvals", "list")
    assert row == {
        "approval_id": ID,
        "session": "s",
        "tenant": None,
        "agent": "shop",
        "turn_id": turn_id,
        "call_id": "call-0",
        "tool": "look_up",
        "arguments": {"n": 1},
        "open": True,
        "decision": None,
        "decided_by": None,
        "reason": None,
        "asked_at": "2020-01-01T00:00:00Z",
        "expires_at": (datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=YEARS_S)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "decided_at": None,
    }
    shown = command_line.run("approvals", "list").output.splitlines()
    assert shown[0].split() == ["APPROVAL", "SESSION", "AGENT", "TOOL", "ARGUMENTS", "ASKED", "EXPIRES", "IN"]
    assert shown[1].startswith(f'{ID}  s        shop   look_up  {{"n": 1}}   2020-01-01 00:00:00Z  3')


def test_nothing_to_decide_is_said(migrated: Any) -> None:
    assert migrated.run("approvals", "list").output == "Nothing waits for a person.\n"
    assert migrated.run("approvals", "list", "--all").output == "No approvals yet.\n"
    assert migrated.json("approvals", "list") == []


def test_an_approval_is_decided_by_the_beginning_of_its_id_and_leaves_the_list(command_line: Any) -> None:
    command_line.seed(asked(ID, OTHER_ID))
    done = command_line.run("approvals", "approve", "5c1f", "--by", "ann")
    assert done.output.splitlines() == [
        f"approved  {ID}  by ann",
        'look_up {"n": 1} may run: once, with exactly these arguments, unless its turn ends first.',
    ]
    assert [row["approval_id"] for row in command_line.json("approvals", "list")] == [OTHER_ID]
    both = command_line.json("approvals", "list", "--all")
    assert [(row["decision"], row["decided_by"]) for row in both] == [(None, None), ("approved", "ann")]
    told = command_line.run("approvals", "list", "--all").output
    assert "approved by ann" in told
    assert "waits, " in told


def test_a_rejection_tells_why_and_who(command_line: Any) -> None:
    command_line.seed(asked(ID))
    done = command_line.run("approvals", "reject", ID, "--reason", "only within\n30 days")
    who = getpass.getuser()
    assert done.output.splitlines() == [
        f"rejected  {ID}  by {who}",
        'look_up {"n": 1} does not run. The agent is told so, and why: only within␊30 days',
    ]
    row = command_line.json("approvals", "show", "5c")
    assert (row["decision"], row["decided_by"], row["reason"]) == ("rejected", who, "only within\n30 days")


def test_whoever_decides_second_is_told_who_decided_what_and_when(command_line: Any) -> None:
    command_line.seed(asked(ID))
    first = command_line.json("approvals", "reject", ID, "--by", "ann", "--reason", "too late")
    assert (first["counted"], first["decision"], first["error"]) == (True, "rejected", None)
    second = command_line.run("approvals", "approve", ID, "--by", "ben")
    at = first["decided_at"][:19].replace("T", " ") + "Z"
    assert (second.exit_code, second.stdout) == (1, "")
    assert second.stderr == f"Error: this did not count: ann rejected the call at {at}: too late\n"
    told = command_line.json("approvals", "approve", ID, "--by", "ben", code=1)
    assert (told["counted"], told["decision"], told["decided_by"]) == (False, "rejected", "ann")
    assert told["error"]["type"] == "refused"


def test_what_comes_too_late_does_not_count_and_is_expired_from_then_on(command_line: Any) -> None:
    command_line.seed(asked(ID, valid_s=60))
    assert command_line.json("approvals", "list") == []
    assert "expired" in command_line.run("approvals", "list", "--all").output
    late = command_line.run("approvals", "approve", ID)
    assert late.exit_code == 1
    assert late.stderr == (
        "Error: this did not count: its time was over at 2020-01-01 00:01:00Z, so the call does not run\n"
    )
    assert command_line.json("approvals", "show", ID)["decision"] == "expired"


def test_a_turn_that_has_ended_needs_no_decision(command_line: Any) -> None:
    async def fill(world: World) -> None:
        await asked(ID)(world)
        await world.say("stop", mode="interrupt")
        owner = await world.own((await world.session()).id)
        not_run = CallResult(0, "call-0", CallState.NOT_RUN, "not run", approval=ApprovalDecision.VOID)
        assert await owner.fail(not_run)

    command_line.seed(fill)
    late = command_line.run("approvals", "approve", ID)
    assert (late.exit_code, "nobody need decide any more" in late.stderr) == (1, True)
    assert command_line.json("approvals", "show", ID)["decision"] == ApprovalDecision.VOID
    assert "state     void\n" in command_line.run("approvals", "show", ID).output


def test_all_of_the_arguments_are_shown_and_steer_no_terminal(command_line: Any) -> None:
    turn_id = command_line.seed(asked(ID))
    shown = command_line.run("approvals", "show", ID).output
    for line in (f"turn      {turn_id}", "tool      look_up", "expires   ", "Arguments", '  "n": 1'):
        assert line in shown


def test_an_approval_that_is_not_there_is_an_error(migrated: Any) -> None:
    for command in ("show", "approve", "reject"):
        missing = migrated.run("approvals", command, "none")
        assert (missing.exit_code, "there is no approval 'none'" in missing.stderr) == (1, True)
        assert migrated.json("approvals", command, "none", code=1)["error"]["type"] == "not_found"


def test_an_id_that_may_be_several_is_refused(command_line: Any) -> None:
    command_line.seed(asked("5c1f1", "5c1f2"))
    assert command_line.json("approvals", "approve", "5c1f", code=1)["error"]["type"] == "ambiguous"
    assert len(command_line.json("approvals", "list")) == 2


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_nothing_is_decided_by_a_few_characters(command_line: Any, command: str) -> None:
    command_line.seed(asked(ID))
    refused = command_line.run("approvals", command, "5c1")
    assert (refused.exit_code, "at least 4 characters" in refused.stderr) == (1, True)
    assert len(command_line.json("approvals", "list")) == 1
    assert command_line.json("approvals", "show", "5c1")["approval_id"] == ID


def test_a_wrong_id_is_cut_in_its_error(migrated: Any) -> None:
    for group in ("approvals", "turns", "outbox"):
        missing = migrated.run(group, "show", "x" * 5_000)
        assert (missing.exit_code, "x…'; " in missing.stderr, len(missing.stderr) < 200) == (1, True, True)


def test_a_decision_repeats_the_whole_arguments_and_says_when_it_cannot(command_line: Any) -> None:
    command_line.seed(asked(ID, OTHER_ID))
    long = {"note": "a  b " * 100}
    rewrite(command_line, long)
    assert json.dumps(long) in command_line.run("approvals", "approve", ID).output
    rewrite(command_line, {"note": "x" * 5_000})
    cut = command_line.run("approvals", "reject", OTHER_ID).output
    assert cut.endswith(f"The arguments are cut here; `insika approvals show {OTHER_ID}` shows all of them.\n")
    assert len(cut) < 4_500


def rewrite(command_line: Any, arguments: dict[str, str]) -> None:
    with sqlite3.connect(command_line.database) as connection:
        connection.execute("UPDATE tool_calls SET arguments = ?", (json.dumps(arguments),))


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("all_", [[], ["--all"]])
def test_the_arguments_are_readable_on_a_terminal(
    command_line: Any, monkeypatch: pytest.MonkeyPatch, width: int, all_: list[str]
) -> None:
    command_line.seed(asked(ID, session="a-session-with-a-rather-long-name", tenant="acme"))
    rewrite(command_line, {"order_id": "1234", "amount": "24.90 EUR"})
    monkeypatch.setattr("actors.cli.output.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = command_line.run("approvals", "list", *all_).output.splitlines()
    assert lines[:2] == [ID[:13], '  look_up {"order_id": "1234", "amount": "24.90 EUR"}']
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= 6
    shown = " ".join(" ".join(lines).split())
    assert "session a-session-with-a-rather-long-name, tenant acme, agent shop, asked 2020-01-01 00:00:00Z" in shown


def test_the_help_of_the_list_tells_its_order(migrated: Any) -> None:
    told = " ".join(migrated.run("approvals", "list", "--help").output.split())
    assert "the oldest first; with --all then the others, the newest first." in told
    assert (
        "How many to list, the oldest of those that wait first; with --all then the others, the newest first." in told
    )


@pytest.mark.parametrize("option", [["--by", " "], ["--by", "x" * 129], ["--reason", "x" * 1001]])
def test_what_is_too_long_or_nobody_is_used_wrongly(command_line: Any, option: list[str]) -> None:
    command_line.seed(asked(ID))
    assert command_line.run("approvals", "reject", ID, *option).exit_code == 2
    assert len(command_line.json("approvals", "list")) == 1


def test_a_tenant_is_named_where_there_is_one(command_line: Any) -> None:
    command_line.seed(asked(ID, tenant="acme"))
    assert command_line.json("approvals", "list")[0]["tenant"] == "acme"
    assert command_line.run("approvals", "list").output.splitlines()[0].split()[2] == "TENANT"
