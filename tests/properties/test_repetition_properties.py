from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.errors import ToolRepetition
from insika.messages import Halt
from insika.turn.repetition import CallKey, RepetitionGuard
from tests.turn_doubles import Transcript, batch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FEW_TOOLS = st.lists(st.sampled_from("AABBC"), max_size=30)
MAX_REPEAT = st.integers(2, 5)


def count_back(calls: list[str]) -> int:
    """The rule, word for word: equal calls in a row, or each second one with equal calls between them."""
    in_a_row = alternating = 1
    while in_a_row < len(calls) and calls[-1 - in_a_row] == calls[-1]:
        in_a_row += 1
    while (
        2 * alternating < len(calls)
        and calls[-1 - 2 * alternating] == calls[-1]
        and calls[-2 * alternating] == calls[-2]
    ):
        alternating += 1
    return max(in_a_row, alternating)


def shuffled(value, random):
    if isinstance(value, dict):
        items = [(key, shuffled(inner, random)) for key, inner in value.items()]
        random.shuffle(items)
        return dict(items)
    return [shuffled(inner, random) for inner in value] if isinstance(value, list) else value


def told_apart(value):
    """A form in which Python's == tells true from 1 and 1 from 1.0."""
    if isinstance(value, dict):
        return {key: told_apart(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [told_apart(inner) for inner in value]
    return (type(value).__name__, repr(value))


@given(JSON, st.randoms())
def test_the_order_of_keys_makes_no_difference(arguments, random):
    assert CallKey.of("A", shuffled(arguments, random)) == CallKey.of("A", arguments)


@given(JSON, JSON)
def test_calls_are_equal_exactly_when_their_values_are(one, other):
    assert (CallKey.of("A", one) == CallKey.of("A", other)) == (told_apart(one) == told_apart(other))


@given(JSON)
def test_a_journey_through_a_stored_log_makes_no_difference(arguments):
    assert CallKey.of("A", json.loads(json.dumps(arguments))) == CallKey.of("A", arguments)


class Turn:
    """One batch a call: what the guard said and when it stopped."""

    def __init__(self, max_repeat: int) -> None:
        self.transcript = Transcript()
        self.guard = RepetitionGuard(self.transcript, max_repeat, self.transcript.emit)

    def call(self, tool: str, halts: bool = False, repeatable: bool = False) -> bool:
        """True if the call was allowed to run."""
        opening, result = batch(1)
        self.guard.message_ended(opening)
        try:
            self.guard.tool_call(tool, {"same": [1]}, repeatable)
        except ToolRepetition:
            return False
        finally:
            self.guard.tool_result(Halt() if halts else "")
            self.guard.message_ended(result)
        return True


@given(MAX_REPEAT, FEW_TOOLS)
def test_a_call_is_stopped_exactly_when_more_equal_ones_than_allowed_stand_behind_it(max_repeat, tools):
    turn = Turn(max_repeat)
    for index, tool in enumerate(tools):
        counted = count_back(tools[: index + 1])
        assert turn.call(tool) == (counted <= max_repeat)


@given(MAX_REPEAT, FEW_TOOLS)
def test_one_notice_for_each_circle_and_always_before_the_stop(max_repeat, tools):
    turn = Turn(max_repeat)
    told = False
    for index, tool in enumerate(tools):
        counted = count_back(tools[: index + 1])
        before = len(turn.transcript.messages)
        ran = turn.call(tool)
        speaks = counted == max_repeat and not told
        assert len(turn.transcript.messages) == before + speaks
        if speaks:
            assert turn.transcript.events[-1][1] == {"tool": tool, "count": max_repeat, "max": max_repeat}
        told = counted >= max_repeat
        if not ran:
            assert before > 0, "stopped without a warning"


@given(MAX_REPEAT, st.lists(st.sampled_from("AB"), max_size=40))
def test_within_one_batch_nothing_is_said_and_at_its_end_at_most_one_thing(max_repeat, tools):
    transcript = Transcript()
    guard = RepetitionGuard(transcript, max_repeat, transcript.emit)
    if not tools:
        return
    opening, *results = batch(len(tools))
    guard.message_ended(opening)
    for index, tool in enumerate(tools):
        if count_back(tools[: index + 1]) > max_repeat:
            with pytest.raises(ToolRepetition):
                guard.tool_call(tool, {})
        else:
            guard.tool_call(tool, {})
    for result in results:
        assert transcript.messages == []
        guard.message_ended(result)
    reached = any(count_back(tools[: index + 1]) == max_repeat for index in range(len(tools)))
    assert len(transcript.messages) == len(transcript.events) == reached


@given(MAX_REPEAT, FEW_TOOLS, st.data())
def test_repeatable_calls_are_invisible(max_repeat, tools, data):
    plain, mixed = Turn(max_repeat), Turn(max_repeat)
    for tool in tools:
        for _ in range(data.draw(st.integers(0, 2))):
            assert mixed.call(data.draw(st.sampled_from("ABCP")), repeatable=True)
        assert mixed.call(tool) == plain.call(tool)
    assert mixed.transcript.events == plain.transcript.events


@given(MAX_REPEAT, st.lists(st.tuples(st.sampled_from("AABC"), st.booleans()), max_size=25), st.data())
def test_a_guard_rebuilt_from_the_log_anywhere_goes_on_the_same(max_repeat, calls, data):
    cut = data.draw(st.integers(0, len(calls)))
    straight, resumed = Turn(max_repeat), Turn(max_repeat)
    for tool, halts in calls[:cut]:
        straight.call(tool, halts)
        resumed.call(tool, halts)
    resumed.transcript.messages.clear()  # what a replay says is thrown away
    resumed.transcript.events.clear()
    already = len(straight.transcript.messages)
    for tool, halts in calls[cut:]:
        assert resumed.call(tool, halts) == straight.call(tool, halts)
    assert resumed.transcript.messages == straight.transcript.messages[already:]


@given(st.integers(-2, 1), FEW_TOOLS)
def test_below_two_it_is_off(max_repeat, tools):
    turn = Turn(max_repeat)
    assert all(turn.call(tool) for tool in tools)
    assert turn.transcript.messages == []
