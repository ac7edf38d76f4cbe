from __future__ import annotations

from types import MappingProxyType

import pytest

from insika.errors import ToolRepetition
from insika.messages import Halt
from insika.turn import sentences
from insika.turn.repetition import CallKey, RepetitionGuard
from tests.turn_doubles import Transcript, batch


def run_batch(guard: RepetitionGuard, *tools: str, halts: bool = False, repeatable: bool = False) -> None:
    """One batch with a call of each tool, all with the same arguments."""
    opening, *results = batch(len(tools))
    guard.message_ended(opening)
    for tool in tools:
        guard.tool_call(tool, {"at": 1}, repeatable)
    for result in results:
        guard.tool_result(Halt() if halts else result.content)
        guard.message_ended(result)


def run_each(guard: RepetitionGuard, tools: str) -> None:
    for tool in tools:
        run_batch(guard, tool)


def guarded(max_repeat: int = 3) -> tuple[RepetitionGuard, Transcript]:
    transcript = Transcript()
    return RepetitionGuard(transcript, max_repeat, transcript.emit), transcript


def warned(transcript: Transcript) -> list[str]:
    assert {type for type, _ in transcript.events} <= {"tool_repetition_warned"}
    return [data["tool"] for _, data in transcript.events]


def test_three_equal_calls_run_and_earn_one_notice_and_the_fourth_is_stopped():
    guard, transcript = guarded()
    run_each(guard, "AA")
    assert transcript.messages == []
    run_each(guard, "A")
    assert transcript.said == [sentences.repetition("A", 3)]
    assert transcript.events == [("tool_repetition_warned", {"tool": "A", "count": 3, "max": 3})]
    with pytest.raises(ToolRepetition, match="A was called 4 times"):
        guard.tool_call("A", {"at": 1})
    assert len(transcript.messages) == 1


def test_the_error_carries_the_contract_type():
    guard, _ = guarded(2)
    run_each(guard, "AA")
    with pytest.raises(ToolRepetition) as caught:
        guard.tool_call("A", {"at": 1})
    assert caught.value.as_dict()["type"] == "tool_repetition"
    assert "max_tool_repeat" in caught.value.message


def test_calls_alternating_in_pairs_count_and_the_fourth_of_one_is_stopped():
    guard, transcript = guarded()
    run_each(guard, "ABAB")
    assert transcript.messages == []
    run_each(guard, "AB")
    assert warned(transcript) == ["A"]
    with pytest.raises(ToolRepetition, match="A was called 4 times"):
        guard.tool_call("A", {"at": 1})


@pytest.mark.parametrize("tools", ["ABCABCABCABC", "ABACADAEAFA", "AABBAABBAABB", "AABAABAAB", "ABBABBABBABB"])
def test_other_patterns_are_no_circle(tools):
    guard, transcript = guarded()
    run_each(guard, tools)
    assert transcript.messages == []


def test_a_new_call_breaks_the_circle_and_the_next_one_may_be_warned_of_again():
    guard, transcript = guarded()
    run_each(guard, "AAABAAA")
    assert warned(transcript) == ["A", "A"]


def test_a_circle_that_changes_its_shape_is_a_new_one():
    guard, transcript = guarded()
    run_each(guard, "ABABAAA")
    assert warned(transcript) == ["A", "A"]
    with pytest.raises(ToolRepetition):
        guard.tool_call("A", {"at": 1})


def test_other_arguments_are_another_call():
    guard, transcript = guarded()
    for at in range(20):
        guard.tool_call("A", {"at": at})
    assert transcript.messages == []


def test_equal_calls_within_one_batch_are_told_at_its_end():
    guard, transcript = guarded()
    run_batch(guard, "A", "A", "A")
    assert warned(transcript) == ["A"]


def test_a_fourth_equal_call_within_one_batch_is_stopped_and_so_is_every_further_one():
    guard, _ = guarded()
    guard.message_ended(next(batch(5)))
    for _ in range(3):
        guard.tool_call("A", {})
    for _ in range(2):
        with pytest.raises(ToolRepetition):
            guard.tool_call("A", {})
    guard.tool_call("B", {})


def test_a_notice_earned_in_the_middle_of_a_batch_is_said_at_its_end():
    guard, transcript = guarded()
    run_batch(guard, "A", "A", "A", "B")
    assert warned(transcript) == ["A"]


def test_two_circles_in_one_batch_earn_one_notice_of_the_last():
    guard, transcript = guarded()
    run_batch(guard, "A", "A", "A", "B", "B", "B")
    assert warned(transcript) == ["B"]
    assert len(transcript.messages) == 1


def test_a_halted_batch_gets_no_notice_and_it_is_not_made_up_for():
    guard, transcript = guarded()
    run_each(guard, "AA")
    run_batch(guard, "A", halts=True)
    run_batch(guard, "B")
    assert transcript.messages == []


def test_repeatable_calls_neither_count_nor_break_a_circle():
    guard, transcript = guarded()
    for _ in range(9):
        run_batch(guard, "poll", repeatable=True)
    assert transcript.messages == []
    for tool in "AAA":
        run_batch(guard, tool)
        run_batch(guard, "poll", repeatable=True)
    assert warned(transcript) == ["A"]
    with pytest.raises(ToolRepetition):
        guard.tool_call("A", {"at": 1})


@pytest.mark.parametrize("max_repeat", [1, 0, -3])
def test_below_two_it_is_off(max_repeat):
    guard, transcript = guarded(max_repeat)
    run_each(guard, "A" * 20)
    guard.tool_call("A", object())
    assert (transcript.messages, transcript.events) == ([], [])


def test_the_order_of_keys_makes_no_difference_at_any_depth():
    guard, _ = guarded(2)
    guard.tool_call("A", {"x": 1, "y": [{"p": {"m": None, "n": []}, "q": "é"}]})
    guard.tool_call("A", {"y": [{"q": "é", "p": {"n": [], "m": None}}], "x": 1})
    with pytest.raises(ToolRepetition):
        guard.tool_call("A", {"y": [{"p": {"n": [], "m": None}, "q": "é"}], "x": 1})


def test_the_order_of_a_list_makes_a_difference():
    assert CallKey.of("A", [1, 2]) != CallKey.of("A", [2, 1])


def test_values_that_json_tells_apart_are_told_apart():
    values = [True, 1, 1.0, "1", [1], {"1": 1}, None, False, 0, "", [], {}, "true", "null", [[]]]
    keys = {CallKey.of("A", {"v": value}) for value in values}
    assert len(keys) == len(values)


@pytest.mark.parametrize(
    "arguments", [{}, [], None, "{broken", [{"a": [1, {"b": []}]}], {"a": {"b": [{}]}}, 7, {"s": "\ud800\x00"}]
)
def test_whatever_a_model_may_have_written_can_be_compared(arguments):
    guard, transcript = guarded()
    for _ in range(3):
        guard.tool_call("A", arguments)
    with pytest.raises(ToolRepetition):
        guard.tool_call("A", arguments)
    assert transcript.messages == []


def test_read_only_mappings_and_tuples_compare_as_objects_and_lists():
    frozen = MappingProxyType({"b": (1, 2), "a": MappingProxyType({"y": 1, "x": 2})})
    assert CallKey.of("A", frozen) == CallKey.of("A", {"a": {"x": 2, "y": 1}, "b": [1, 2]})


def test_arguments_that_json_cannot_hold_are_refused_by_type():
    with pytest.raises(TypeError, match="set"):
        CallKey.of("A", {"a": {1, 2}})


def test_a_tool_name_never_runs_into_its_arguments():
    assert CallKey.of("A", "B") != CallKey.of('A"B', "")


def test_equal_calls_that_gave_nothing_count_like_any_others():
    guard, transcript = guarded()
    for _ in range(3):
        opening, result = batch(1)
        guard.message_ended(opening)
        guard.tool_call("A", {})
        guard.tool_result(None)
        guard.message_ended(result)
    assert warned(transcript) == ["A"]
