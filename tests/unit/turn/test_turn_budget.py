from __future__ import annotations

import pytest

from insika.messages import Halt, assistant, tool_result
from insika.turn.step_limit import StepLimit
from insika.turn.turn_budget import TurnBudget
from tests.turn_doubles import Transcript, announce, batch


def run_batch(budget: TurnBudget, size: int, halts: bool = False) -> None:
    opening, *results = batch(size)
    budget.message_ended(opening)
    for _ in range(size):
        budget.tool_call()
    for index, result in enumerate(results):
        budget.tool_result(Halt() if halts and index == 0 else result.content)
        budget.message_ended(result)


def warnings(transcript: Transcript) -> list[tuple[int, int]]:
    assert {type for type, _ in transcript.events} <= {"tool_budget_warned"}
    return [(data["threshold"], data["remaining"]) for _, data in transcript.events]


def test_one_call_at_a_time_is_warned_at_ten_five_and_two_and_stopped_past_the_limit():
    transcript = Transcript()
    budget = TurnBudget(transcript, 12, transcript.emit)
    for _ in range(12):
        run_batch(budget, 1)
    assert warnings(transcript) == [(10, 10), (5, 5), (2, 2)]
    assert transcript.said == [TurnBudget.notice(left, 12) for left in (10, 5, 2)]
    assert not budget.exhausted
    with pytest.raises(StepLimit.Exceeded) as caught:
        budget.tool_call()
    assert caught.value.max == 12
    assert (budget.calls, budget.exhausted) == (13, True)


def test_the_event_tells_remaining_limit_and_threshold():
    transcript = Transcript()
    budget = TurnBudget(transcript, 11, transcript.emit)
    run_batch(budget, 1)
    assert transcript.events == [("tool_budget_warned", {"remaining": 10, "max": 11, "threshold": 10})]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(10, [5, 2]), (11, [10, 5, 2]), (5, [2]), (6, [5, 2]), (2, []), (3, [2]), (1, [])],
)
def test_a_threshold_that_no_call_leaves_is_never_warned_at(limit, expected):
    transcript = Transcript()
    budget = TurnBudget(transcript, limit, transcript.emit)
    for _ in range(limit):
        run_batch(budget, 1)
    assert [threshold for threshold, _ in warnings(transcript)] == expected


@pytest.mark.parametrize(
    ("limit", "size", "threshold", "remaining"),
    [(20, 12, 10, 8), (12, 7, 5, 5), (12, 8, 5, 4), (12, 10, 2, 2), (12, 11, 2, 1), (12, 12, 2, 0), (3, 3, 2, 0)],
)
def test_a_batch_past_thresholds_earns_one_notice_the_most_urgent_with_the_number_truly_left(
    limit, size, threshold, remaining
):
    transcript = Transcript()
    budget = TurnBudget(transcript, limit, transcript.emit)
    run_batch(budget, size)
    assert warnings(transcript) == [(threshold, remaining)]
    assert transcript.said == [TurnBudget.notice(remaining, limit)]


def test_a_threshold_that_a_more_urgent_one_spoke_for_is_spent():
    transcript = Transcript()
    budget = TurnBudget(transcript, 12, transcript.emit)
    run_batch(budget, 7)
    run_batch(budget, 1)
    assert warnings(transcript) == [(5, 5)]


def test_nothing_is_said_before_the_batch_has_closed():
    transcript = Transcript()
    budget = TurnBudget(transcript, 11, transcript.emit)
    budget.message_ended(announce(2))
    budget.tool_call()
    budget.message_ended(tool_result("c0", ""))
    assert transcript.messages == []
    budget.tool_call()
    budget.message_ended(tool_result("c1", ""))
    assert warnings(transcript) == [(10, 9)]


def test_a_halted_batch_gets_no_notice_and_it_is_not_made_up_for():
    transcript = Transcript()
    budget = TurnBudget(transcript, 11, transcript.emit)
    run_batch(budget, 1, halts=True)
    run_batch(budget, 1)
    assert warnings(transcript) == []
    run_batch(budget, 4)
    assert warnings(transcript) == [(5, 5)]


def test_with_synthesis_a_batch_past_the_limit_is_refused_call_by_call_and_its_boundary_tells_zero():
    transcript = Transcript()
    budget = TurnBudget(transcript, 3, transcript.emit, "synthesize")
    opening, *results = batch(5)
    budget.message_ended(opening)
    for _ in range(3):
        budget.tool_call()
    for _ in range(2):
        with pytest.raises(StepLimit.Exceeded):
            budget.tool_call()
    for result in results:
        budget.message_ended(result)
    assert budget.on_exhausted == "synthesize"
    assert (budget.calls, budget.exhausted) == (5, True)
    assert warnings(transcript) == [(2, 0)]


def test_without_a_limit_nothing_is_counted_said_or_stopped():
    transcript = Transcript()
    budget = TurnBudget(transcript, None, transcript.emit)
    for size in (1, 40, 60):
        run_batch(budget, size)
    assert (budget.calls, budget.exhausted, budget.on_exhausted) == (0, False, "raise")
    assert (transcript.messages, transcript.events) == ([], [])


def test_an_answer_without_calls_is_no_boundary():
    transcript = Transcript()
    budget = TurnBudget(transcript, 11, transcript.emit)
    budget.tool_call()
    budget.message_ended(assistant("done"))
    assert transcript.messages == []


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused_by_name(limit):
    with pytest.raises(ValueError, match=str(limit)):
        TurnBudget(Transcript(), limit, Transcript().emit)


def test_a_policy_must_be_known_and_have_a_limit_to_act_on():
    with pytest.raises(ValueError, match="shrug"):
        TurnBudget(Transcript(), 3, Transcript().emit, "shrug")
    with pytest.raises(ValueError, match="synthesize"):
        TurnBudget(Transcript(), None, Transcript().emit, "synthesize")


def test_the_three_notices_escalate_by_what_is_left():
    tiers = [TurnBudget.notice(left, 50).split("in this turn. ")[-1] for left in (2, 5, 10)]
    assert len(set(tiers)) == 3
    for left in range(3):
        assert TurnBudget.notice(left, 50).endswith(tiers[0])
    for left in range(3, 6):
        assert TurnBudget.notice(left, 50).endswith(tiers[1])
    for left in range(6, 11):
        assert f"{left} tool calls" in TurnBudget.notice(left, 50)
        assert "50" in TurnBudget.notice(left, 50)


@pytest.mark.parametrize("remaining", [-1, 11, 50])
def test_there_is_no_notice_for_more_than_ten_or_less_than_nothing(remaining):
    with pytest.raises(ValueError, match=str(remaining)):
        TurnBudget.notice(remaining, 50)
