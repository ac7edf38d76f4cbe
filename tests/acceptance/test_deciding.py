"""A person's word reaches a turn that another process runs: approvals, messages taken back, an operator's hold."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Folder, folder, wait_for

AGENT = """
id: shop
model: offline/demo
approvals_required: [refund]
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path, INSIKA_LEASE_S="1.5") as made:
        made.must("migrate")
        made.must("agents", "apply", str(made.write("shop.yaml", AGENT)))
        made.start("dev", stdin=subprocess.DEVNULL).until("Working on")
        yield made


def refund(shop: Folder) -> str:
    """Ask for one, until a person is asked about it. The turn."""
    sent = shop.must("send", "--session", "ana", "--agent", "shop", "--id", "m1", "refund order 1234", "--json").json
    wait_for(lambda: shop.must("approvals", "list", "--json").json, "the question")
    return str(sent["turn_id"])


def session(shop: Folder) -> Any:
    return shop.must("sessions", "show", "ana", "--json").json


def ended(shop: Folder, turn_id: str) -> Any:
    def look() -> Any:
        turn = shop.must("turns", "show", turn_id, "--json").json
        return turn if turn["ended_at"] is not None else None

    return wait_for(look, "the end of the turn")


def test_an_approved_call_runs_and_the_turn_goes_on(shop: Folder) -> None:
    turn_id = refund(shop)
    (question,) = shop.must("approvals", "list", "--json").json
    assert (question["tool"], question["arguments"], question["open"]) == ("refund", {"order_id": "1234"}, True)
    wait_for(lambda: session(shop)["state"] == "waiting", "the turn to let go")
    assert session(shop)["owned"] is False
    done = shop.must("approvals", "approve", question["approval_id"][:8], "--by", "ann")
    assert done.out.startswith(f"approved  {question['approval_id']}  by ann\n")
    assert ended(shop, turn_id)["state"] == "completed"
    late = shop.insika("approvals", "reject", question["approval_id"])
    assert (late.code, "ann approved the call at" in late.err) == (1, True)
    assert "I have refunded" in session(shop)["messages"][-1]["content"]


def test_a_rejected_call_does_not_run_and_the_agent_goes_on(shop: Folder) -> None:
    turn_id = refund(shop)
    (question,) = shop.must("approvals", "list", "--json").json
    shop.must("approvals", "reject", question["approval_id"], "--reason", "only within 30 days")
    turn = ended(shop, turn_id)
    assert [(call["tool"], call["state"]) for call in turn["calls"]] == [
        ("order_lookup", "done"),
        ("refund", "not_run"),
    ]
    assert "only within 30 days" in turn["calls"][1]["result"]


def test_a_message_is_taken_back_while_a_turn_waits_and_not_once_it_is_read(shop: Folder) -> None:
    refund(shop)
    shop.must("send", "--session", "ana", "--agent", "shop", "--id", "m2", "where is order 1234?")
    taken = shop.must("sessions", "withdraw", "ana", "m2")
    assert taken.out == "withdrawn  m2\nNo turn has read it, and none will.\n"
    late = shop.insika("sessions", "withdraw", "ana", "m1", "--json")
    assert (late.code, late.json["withdrawn"], late.json["ended"]) == (1, False, "turn")
    assert session(shop)["state"] == "waiting"


def test_a_turn_that_waits_for_a_person_is_cancelled_and_its_call_never_runs(shop: Folder) -> None:
    turn_id = refund(shop)
    assert shop.must("turns", "cancel", turn_id).out == f"turn {turn_id} was cancelled\n"
    assert shop.must("approvals", "list", "--json").json == []
    (question,) = shop.must("approvals", "list", "--all", "--json").json
    assert question["decision"] == "void"
    late = shop.insika("approvals", "approve", question["approval_id"])
    assert (late.code, "nobody need decide any more" in late.err) == (1, True)


def test_a_held_session_takes_back_messages_and_runs_nothing(shop: Folder) -> None:
    shop.must("send", "--session", "ana", "--agent", "shop", "--id", "m0", "what are you?")
    wait_for(lambda: session(shop)["state"] == "idle", "the first answer")
    shop.must("sessions", "pause", "ana")
    shop.must("send", "--session", "ana", "--agent", "shop", "--id", "m1", "where is order 1234?")
    shop.must("send", "--session", "ana", "--agent", "shop", "--id", "m2", "where is order 1235?")
    shop.must("sessions", "withdraw", "ana", "m1")
    assert session(shop)["state"] == "held"
    shop.must("sessions", "resume", "ana")
    wait_for(lambda: session(shop)["state"] == "idle", "the second answer")
    assert [turn["state"] for turn in session(shop)["turns"]] == ["completed", "cancelled", "completed"]
