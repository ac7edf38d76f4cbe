from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.storage.rows import (
    ApprovalDecision,
    ApprovalRow,
    CallRow,
    CallState,
    Loaded,
    Mail,
    SessionRow,
    TurnRow,
    TurnState,
    Verdict,
)
from insika.turn.queue_policy import (
    Begin,
    CutRunning,
    GiveUpQueued,
    GiveUpRunning,
    Hold,
    LetGo,
    Resume,
    ResumeWaiting,
    SuspendAgain,
    TakeBack,
    WithdrawQueued,
    cuts_of,
    next_move,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def mail(
    position: int,
    verdict: Verdict = Verdict.ACCEPTED,
    turn: str | None = None,
    *,
    cuts: str | None = None,
    key: str | None = "key",
    at: float = 0.0,
    debounce_ms: int = 0,
    debounce_max_ms: int = 10_000,
) -> Mail:
    """`at`: seconds after NOW."""
    return Mail(
        position=position,
        job_id=f"job-{position}",
        mode="followup",
        key=key,
        text=f"text {position}",
        at=NOW + timedelta(seconds=at),
        verdict=verdict,
        turn_id=turn if turn is not None else f"turn-{position}",
        cuts=cuts,
        debounce_ms=debounce_ms,
        debounce_max_ms=debounce_max_ms,
        agent="agent",
        channel=None,
        recipient="someone",
        origin="customer",
    )


def loaded(
    *rows: Mail,
    running: str | None = None,
    deaths: int = 0,
    merge_turn: str | None = None,
    now: float = 0.0,
    paused: bool = False,
    waits: bool = False,
    calls: tuple[CallRow, ...] = (),
    approvals: tuple[ApprovalRow, ...] = (),
) -> Loaded:
    session = SessionRow(
        id=1,
        tenant="",
        name="session",
        epoch=1,
        lease_id="lease",
        lease_until=NOW,
        due_at=NOW,
        paused=paused,
        mail_seq=max((row.position for row in rows), default=0),
        urgent_seq=0,
        log_seq=0,
        waiting=len(rows),
        open_calls=0,
        turn_id=running,
        turn_key=None,
        merge_turn=merge_turn,
        merge_key=None,
        deaths=deaths,
        load_from=0,
    )
    turn = _turn(running, TurnState.WAITING if waits else TurnState.RUNNING) if running is not None else None
    return Loaded(session, NOW + timedelta(seconds=now), rows, turn, calls, (), (), approvals)


def _turn(id: str, state: TurnState) -> TurnRow:
    address = ("agent", None, "someone", "customer")
    return TurnRow(id, 1, 1, state, None, 1, *address, "revision", {}, False, None, {}, None, 1, NOW, NOW, None)


def move(*rows: Mail, **how):
    return next_move(loaded(*rows, **how), lambda: "new-turn")


def steered(position: int, turn: str = "gone", **how) -> Mail:
    return mail(position, Verdict.STEERED, turn, **how)


def cancel(position: int, turn: str) -> Mail:
    return mail(position, Verdict.CONTROL, turn, cuts=turn, key=None)


def interrupt(position: int, cuts: str) -> Mail:
    return mail(position, Verdict.INTERRUPTING, cuts=cuts)


# --- a turn runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_a_running_turn_goes_on_whatever_waits(deaths):
    assert move(running="r", deaths=deaths) == Resume()
    assert move(mail(1), steered(2, "r"), running="r", deaths=deaths) == Resume()


@pytest.mark.parametrize("deaths", [3, 4, 9])
def test_a_running_turn_that_outlived_three_owners_is_given_up(deaths):
    assert move(mail(1), running="r", deaths=deaths) == GiveUpRunning()


def test_a_cancel_of_the_running_turn_cuts_it():
    assert move(cancel(1, "r"), running="r") == CutRunning(False, (1,), None)
    assert move(mail(1), cancel(2, "r"), cancel(3, "r"), running="r") == CutRunning(False, (2, 3), None)


def test_an_interrupt_cuts_the_running_turn_and_names_what_takes_its_place():
    assert move(mail(1), interrupt(2, "r"), running="r") == CutRunning(True, (), "turn-2")


def test_the_first_of_two_interrupts_takes_its_place_and_cancels_are_honoured_with_it():
    rows = interrupt(1, "r"), cancel(2, "r"), interrupt(3, "r")
    assert move(*rows, running="r") == CutRunning(True, (2,), "turn-1")


def test_what_was_aimed_at_another_turn_does_not_cut_this_one():
    assert move(interrupt(1, "earlier"), running="r") == Resume()
    assert cuts_of([interrupt(1, "earlier"), cancel(2, "r")], "r") == (cancel(2, "r"),)


def test_a_cut_comes_before_giving_up():
    assert move(cancel(1, "r"), running="r", deaths=3) == CutRunning(False, (1,), None)


# --- none runs --------------------------------------------------------------------------------------------------------


def test_nothing_waits():
    assert move() == LetGo(NEVER)


def test_the_oldest_message_begins_its_turn():
    assert move(mail(3), mail(5)) == Begin("turn-3", (mail(3),), False, False)


def test_merged_messages_begin_together():
    rows = mail(1, turn="t"), mail(2, Verdict.MERGED, "t"), mail(3, Verdict.MERGED, "t"), mail(4)
    assert move(*rows) == Begin("t", rows[:3], False, False)
    assert move(*rows[:3], merge_turn="t") == Begin("t", rows[:3], True, False)


def test_an_interrupt_whose_turn_is_gone_waits_for_its_place():
    rows = mail(1), interrupt(2, "gone")
    assert move(*rows) == Begin("turn-1", rows[:1], False, False)
    assert move(rows[1]) == Begin("turn-2", rows[1:], False, False)


def test_steers_that_no_turn_took_become_one_turn_as_far_as_they_belong_together():
    rows = steered(1), steered(2), steered(3, key="other"), steered(4), mail(5)
    assert move(*rows) == Begin("new-turn", rows[:2], False, True)
    assert move(*rows[2:]) == Begin("new-turn", rows[2:3], False, True)
    assert move(*rows[3:]) == Begin("new-turn", rows[3:4], False, True)


def test_steers_behind_another_message_wait_for_it():
    rows = mail(1), steered(2)
    assert move(*rows) == Begin("turn-1", rows[:1], False, False)


@pytest.mark.parametrize("deaths", [3, 5])
def test_a_turn_that_kills_its_owners_before_it_begins_is_given_up_too(deaths):
    assert move(mail(1), mail(2), deaths=deaths) == GiveUpQueued(Begin("turn-1", (mail(1),), False, False))
    assert move(steered(1), deaths=deaths) == GiveUpQueued(Begin("new-turn", (steered(1),), False, True))
    assert move(deaths=deaths) == LetGo(NEVER)


@pytest.mark.parametrize("deaths", [1, 2])
def test_two_deaths_are_not_enough(deaths):
    assert isinstance(move(mail(1), deaths=deaths), Begin)


# --- cancels of what has not begun ------------------------------------------------------------------------------------


def test_a_cancelled_turn_is_withdrawn_before_its_place_is_reached():
    rows = mail(1), mail(2, turn="t"), mail(3, Verdict.MERGED, "t"), cancel(4, "t")
    assert move(*rows) == WithdrawQueued("t", rows[1:3], (4,), False)


def test_the_first_cancel_comes_first():
    rows = mail(1, turn="a"), mail(2, turn="b"), cancel(3, "b"), cancel(4, "a")
    assert move(*rows) == WithdrawQueued("b", rows[1:2], (3,), False)


def test_a_cancel_of_what_has_ended_meanwhile_is_honoured_with_nothing():
    assert move(mail(1), cancel(2, "gone")) == WithdrawQueued("gone", (), (2,), False)


def test_what_was_meant_to_steer_a_cancelled_turn_is_not_withdrawn_with_it():
    assert move(steered(1, "t"), cancel(2, "t")) == WithdrawQueued("t", (), (2,), False)


def test_a_cancel_of_the_turn_that_is_merging_says_so():
    rows = mail(1, turn="t"), cancel(2, "t")
    assert move(*rows, merge_turn="t") == WithdrawQueued("t", rows[:1], (2,), True)


# --- debounce ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "second_at", "expected"),
    [
        (0.0, None, 2.0),  # two seconds of quiet after the first
        (1.9, None, 2.0),
        (2.0, None, None),
        (2.0, 1.5, 3.5),  # the second began the quiet anew
        (3.5, 1.5, None),
        (4.0, 3.9, 5.0),  # never later than five seconds after the first
        (5.0, 4.9, None),
    ],
)
def test_a_person_is_let_finish_but_not_for_ever(now, second_at, expected):
    rows = [mail(1, turn="t", debounce_ms=2000, debounce_max_ms=5000)]
    if second_at is not None:
        rows.append(mail(2, Verdict.MERGED, "t", at=second_at, debounce_ms=2000, debounce_max_ms=5000))
    decided = move(*rows, merge_turn="t", now=now)
    if expected is None:
        assert decided == Begin("t", tuple(rows), True, False)
    else:
        assert decided == LetGo(NOW + timedelta(seconds=expected))


def test_nobody_waits_for_a_turn_that_nothing_can_join_any_more():
    row = mail(1, turn="t", debounce_ms=2000)
    assert move(row, merge_turn=None) == Begin("t", (row,), False, False)
    assert move(row, merge_turn="another") == Begin("t", (row,), False, False)


def test_nobody_waits_for_released_steers():
    assert isinstance(move(steered(1, debounce_ms=2000), merge_turn="gone"), Begin)


def test_a_turn_to_be_given_up_waits_its_time_too():
    row = mail(1, turn="t", debounce_ms=2000)
    assert isinstance(move(row, merge_turn="t", deaths=3), LetGo)


# --- while a turn runs, another's cancel and withdrawals --------------------------------------------------------------


def withdrawal(position: int, of: int) -> Mail:
    return replace(mail(position, Verdict.CONTROL, "", key=None), turn_id=None, withdraws=of, mode="withdraw")


@pytest.mark.parametrize("how", [{}, {"running": "r"}, {"running": "r", "waits": True}, {"paused": True}])
def test_what_has_not_begun_is_cancelled_and_taken_back_at_any_time(how):
    queued = mail(1, turn="t")
    assert move(queued, cancel(2, "t"), **how) == WithdrawQueued("t", (queued,), (2,), False)
    assert move(queued, withdrawal(2, 1), **how) == TakeBack(2, queued, "t", False)


def test_controls_are_settled_in_the_order_in_which_they_came():
    rows = mail(1), mail(2, turn="t"), withdrawal(3, 1), cancel(4, "t")
    assert move(*rows) == TakeBack(3, rows[0], "turn-1", False)
    assert move(rows[0], rows[1], cancel(3, "t"), withdrawal(4, 1)) == WithdrawQueued("t", rows[1:2], (3,), False)


def test_one_of_several_merged_messages_leaves_its_turn_to_the_others():
    rows = mail(1, turn="t"), mail(2, Verdict.MERGED, "t"), withdrawal(3, 1)
    assert move(*rows, merge_turn="t") == TakeBack(3, rows[0], None, False)


def test_the_only_message_of_a_turn_that_is_still_merging_ends_it_and_says_so():
    rows = mail(1, turn="t", debounce_ms=2000), withdrawal(2, 1)
    assert move(*rows, merge_turn="t") == TakeBack(2, rows[0], "t", True)


def test_a_steered_message_ends_without_a_turn():
    row = steered(1, "r")
    assert move(row, withdrawal(2, 1), running="r") == TakeBack(2, row, None, False)
    assert move(row, withdrawal(2, 1)) == TakeBack(2, row, None, False)


def test_what_has_ended_cannot_be_taken_back():
    assert move(withdrawal(2, 1)) == TakeBack(2, None, None, False)


def test_an_interrupt_cuts_also_when_it_is_taken_back_since_and_is_taken_back_then():
    row = interrupt(1, "r")
    assert move(row, withdrawal(2, 1), running="r") == CutRunning(True, (), "turn-1")
    assert move(row, withdrawal(2, 1)) == TakeBack(2, row, "turn-1", False)


# --- an operator's hold -----------------------------------------------------------------------------------------------


def test_a_held_session_starts_nothing_and_is_due_again_when_something_waits():
    assert move(mail(1), paused=True) == LetGo(DUE_NOW)
    assert move(mail(1, turn="t", debounce_ms=2000), merge_turn="t", paused=True) == LetGo(DUE_NOW)
    assert move(mail(1), deaths=3, paused=True) == LetGo(DUE_NOW)
    assert move(paused=True) == LetGo(NEVER)


@pytest.mark.parametrize("waits", [True, False])
def test_a_turn_is_held_where_it_stands(waits):
    assert move(mail(1), running="r", waits=waits, paused=True) == Hold()
    assert move(mail(1), running="r", waits=waits, deaths=3, paused=True) == Hold()


def test_what_cuts_a_turn_cuts_it_while_it_is_held():
    assert move(cancel(1, "r"), running="r", paused=True) == CutRunning(False, (1,), None)


# --- a turn that waits for a person -----------------------------------------------------------------------------------


def call(number: int, state: CallState = CallState.ANNOUNCED) -> CallRow:
    return CallRow(1, number, f"call-{number}", "pay", {}, True, state)


def asked(number: int, decision: ApprovalDecision | None = None, *, expires: float = 60.0) -> ApprovalRow:
    times = (NOW, NOW + timedelta(seconds=expires))
    return ApprovalRow(f"approval-{number}", "r", 1, f"call-{number}", "pay", "hash", *times, decision)


def test_a_turn_is_suspended_again_while_each_of_its_calls_waits():
    waiting = {"running": "r", "waits": True, "calls": (call(0), call(1)), "approvals": (asked(0), asked(1))}
    assert move(**waiting) == SuspendAgain()
    assert move(mail(1), steered(2, "r"), **waiting) == SuspendAgain()
    assert move(interrupt(1, "r"), **waiting) == CutRunning(True, (), "turn-1")
    assert move(deaths=3, **waiting) == GiveUpRunning()


@pytest.mark.parametrize("decision", ApprovalDecision)
def test_a_decision_makes_a_turn_go_on_until_its_call_has_a_result(decision):
    approvals = (asked(0, decision), asked(1))
    assert move(running="r", waits=True, calls=(call(0), call(1)), approvals=approvals) == ResumeWaiting()
    done = call(0, CallState.DONE)
    assert move(running="r", waits=True, calls=(done, call(1)), approvals=approvals) == SuspendAgain()


@pytest.mark.parametrize(("now", "expected"), [(59.9, SuspendAgain()), (60.0, ResumeWaiting())])
def test_a_turn_goes_on_when_the_time_of_an_approval_is_over(now, expected):
    waiting = {"running": "r", "waits": True, "calls": (call(0),), "approvals": (asked(0),)}
    assert move(now=now, **waiting) == expected


def test_a_turn_that_waits_for_nobody_goes_on():
    assert move(running="r", waits=True) == ResumeWaiting()
    assert move(running="r", waits=True, calls=(call(0),)) == ResumeWaiting()
    done = call(0, CallState.DONE)
    assert move(running="r", waits=True, calls=(done,), approvals=(asked(0),)) == ResumeWaiting()


def test_a_running_turn_goes_on_also_with_open_approvals():
    assert move(running="r", calls=(call(0),), approvals=(asked(0),)) == Resume()
