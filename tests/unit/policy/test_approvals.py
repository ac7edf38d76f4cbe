from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from insika.policy.approvals import Asked, Standing, approval_id, arguments_hash, standing
from insika.storage.rows import ApprovalDecision, ApprovalRow

ASKED_AT = datetime(2030, 1, 1, tzinfo=UTC)
EXPIRES_AT = ASKED_AT + timedelta(hours=1)
BEFORE = EXPIRES_AT - timedelta(microseconds=1)
ARGUMENTS = {"order": 7, "why": {"damaged": True, "late": None}}
ROW = ApprovalRow("a1", "turn", 1, "c1", "refund", arguments_hash("refund", ARGUMENTS), ASKED_AT, EXPIRES_AT, None)


@pytest.mark.parametrize(
    ("decision", "in_time", "late"),
    [
        (None, Standing.PENDING, Standing.EXPIRED),
        (ApprovalDecision.APPROVED, Standing.APPROVED, Standing.EXPIRED),
        (ApprovalDecision.REJECTED, Standing.REJECTED, Standing.REJECTED),
        (ApprovalDecision.EXPIRED, Standing.EXPIRED, Standing.EXPIRED),
        (ApprovalDecision.VOID, Standing.EXPIRED, Standing.EXPIRED),
    ],
)
def test_how_an_approval_stands_depends_on_its_decision_and_the_time(decision, in_time, late) -> None:
    row = replace(ROW, decision=decision)
    assert standing(row, BEFORE) is in_time
    assert standing(row, EXPIRES_AT) is late


def test_equal_calls_have_one_hash_however_their_keys_are_ordered() -> None:
    turned = {"why": {"late": None, "damaged": True}, "order": 7}
    assert arguments_hash("refund", turned) == ROW.arguments_hash


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("refunds", ARGUMENTS),
        ("refund", {**ARGUMENTS, "order": 8}),
        ("refund", {**ARGUMENTS, "order": "7"}),
        ("refund", {**ARGUMENTS, "order": 7.0}),
        ("refund", {**ARGUMENTS, "more": None}),
        ("refund", {}),
    ],
)
def test_an_approval_is_for_one_tool_and_exactly_its_arguments(tool, arguments) -> None:
    asked = Asked.as_of(replace(ROW, decision=ApprovalDecision.APPROVED), BEFORE)
    assert asked.lets_run("refund", ARGUMENTS)
    assert not asked.lets_run(tool, arguments)


@pytest.mark.parametrize(
    "decision", [None, *(each for each in ApprovalDecision if each is not ApprovalDecision.APPROVED)]
)
def test_nothing_but_an_approval_lets_a_call_run(decision) -> None:
    assert not Asked.as_of(replace(ROW, decision=decision), BEFORE).lets_run("refund", ARGUMENTS)
    assert not Asked.as_of(replace(ROW, decision=ApprovalDecision.APPROVED), EXPIRES_AT).lets_run("refund", ARGUMENTS)


def test_a_question_has_one_id_however_often_it_is_asked() -> None:
    ids = [approval_id(turn, call) for turn in ("t1", "t1c", "t") for call in ("c1", "1", "1c1")]
    assert len(set(ids)) == len(ids)
    assert approval_id("t1", "c1") == ids[0]
    assert all(len(id) == 32 and set(id) <= set("0123456789abcdef") for id in ids)


def test_a_tool_that_was_described_anew_is_another_one() -> None:
    asked = Asked("id", Standing.APPROVED, arguments_hash("refund", {"n": 1}, "as it was"))
    assert asked.lets_run("refund", {"n": 1}, "as it was")
    assert not asked.lets_run("refund", {"n": 1}, "as it is now")
    assert not asked.lets_run("refund", {"n": 1})
    assert arguments_hash("refund", {"n": 1}, "") == arguments_hash("refund", {"n": 1})
