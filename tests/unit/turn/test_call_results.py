from __future__ import annotations

from datetime import UTC, datetime

import pytest

from insika.policy.approvals import Asked, Standing, arguments_hash
from insika.ports import CallOutcome
from insika.storage.operations import CallResult
from insika.storage.rows import ApprovalDecision, CallRow, CallState
from insika.turn import sentences
from insika.turn.call_results import kept_back, not_run, ran, refused, settles

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ARGUMENTS = {"order": 7}


def row(state: CallState = CallState.ANNOUNCED, result: str | None = None) -> CallRow:
    return CallRow(1, 0, "c0", "refund", ARGUMENTS, True, state, result)


def asked(standing: Standing, decision: ApprovalDecision | None = None, reason: str = "", hash: str = "") -> Asked:
    return Asked("a0", standing, hash or arguments_hash("refund", ARGUMENTS), decision, reason)


def test_an_approved_call_and_one_that_waits_are_not_kept_back() -> None:
    assert kept_back(row(), asked(Standing.APPROVED, ApprovalDecision.APPROVED)) is None
    assert kept_back(row(), asked(Standing.PENDING)) is None


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (asked(Standing.REJECTED, ApprovalDecision.REJECTED, "Too much."), sentences.approval_rejected("Too much.")),
        (asked(Standing.EXPIRED), sentences.APPROVAL_NOT_GIVEN),
        (asked(Standing.EXPIRED, ApprovalDecision.EXPIRED), sentences.APPROVAL_NOT_GIVEN),
        (asked(Standing.EXPIRED, ApprovalDecision.APPROVED), sentences.APPROVED_TOO_EARLY),
        (asked(Standing.APPROVED, ApprovalDecision.APPROVED, hash="another"), sentences.APPROVED_OTHERWISE),
    ],
)
def test_a_call_that_no_approval_covers_is_not_run_and_the_model_is_told_why(question: Asked, text: str) -> None:
    result = kept_back(row(), question)
    assert result is not None
    assert (result.state, result.content, result.is_error) == (CallState.NOT_RUN, text, True)


@pytest.mark.parametrize(
    ("question", "becomes"),
    [
        (None, None),
        (asked(Standing.PENDING), ApprovalDecision.VOID),
        (asked(Standing.APPROVED, ApprovalDecision.APPROVED), ApprovalDecision.VOID),
        (asked(Standing.EXPIRED), ApprovalDecision.EXPIRED),
        (asked(Standing.EXPIRED, ApprovalDecision.APPROVED), ApprovalDecision.EXPIRED),
        (asked(Standing.EXPIRED, ApprovalDecision.EXPIRED), None),
        (asked(Standing.REJECTED, ApprovalDecision.REJECTED), None),
    ],
)
def test_a_call_that_never_runs_leaves_no_question_open_and_no_approval_to_use(question, becomes) -> None:
    assert settles(not_run(row(), "timeout"), question).approval is becomes


def test_an_approval_that_was_used_stays_as_it_was_given() -> None:
    given = asked(Standing.APPROVED, ApprovalDecision.APPROVED)
    for state in (CallState.DONE, CallState.UNKNOWN):
        assert settles(CallResult(0, "c0", state, "x"), given).approval is None


def test_what_has_started_is_never_said_to_have_had_no_effect() -> None:
    for result in (refused(row(CallState.STARTED), "no such tool"), not_run(row(CallState.STARTED), "timeout")):
        assert (result.state, result.content) == (CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME)


def test_a_result_is_kept_whatever_comes_after_it() -> None:
    assert not_run(row(CallState.DONE, "refunded"), "cancelled") == CallResult(0, "c0", CallState.DONE, "refunded")


def test_a_time_limit_leaves_only_a_call_with_effects_unknown() -> None:
    late = CallOutcome("late", is_error=True, cut=True)
    assert ran(row(), late, effects=True).state is CallState.UNKNOWN
    assert ran(row(), late, effects=False) == CallResult(0, "c0", CallState.DONE, "late", is_error=True)
