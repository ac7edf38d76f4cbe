from __future__ import annotations

from insika.messages import Message, ToolCall, Usage, assistant, tool_result, user
from insika.storage.rows import CallRow, CallState, LogEntry, ModelCallRow
from insika.turn.state import announced_ids, state_from_log

TURN = "turn-1"


def entries(*messages: tuple[int, Message], turn: str = TURN, first: int = 1) -> list[LogEntry]:
    return [LogEntry(first + at, turn, 1, step, message) for at, (step, message) in enumerate(messages)]


def call_row(step: int, index: int, state: CallState = CallState.ANNOUNCED) -> CallRow:
    return CallRow(step, index, f"s{step}c{index}", "look", {}, False, state)


def announce(step: int, size: int) -> tuple[int, Message]:
    return step, assistant("", *(ToolCall(f"s{step}c{index}", "look") for index in range(size)))


def attempt(step: int, attempt: int, state: str = "measured", purpose: str = "answer") -> ModelCallRow:
    return ModelCallRow(TURN, step, attempt, purpose, "offline/x", state, Usage(input=1))


OPENING = (0, user("hello"))


def test_a_turn_just_begun():
    earlier = entries((0, user("before")), (1, assistant("done")), turn="earlier")
    state = state_from_log(TURN, [*earlier, *entries(OPENING, first=3)], (), (), fresh=True)

    assert (state.step, state.attempt, state.request_open, state.batch) == (1, 1, True, None)
    assert [message.content for message in state.history] == ["before", "done", "hello"]
    assert [entry.seq for entry in state.turn] == [3]


def test_a_turn_taken_up_before_its_first_answer():
    state = state_from_log(TURN, entries(OPENING), (), [attempt(1, 1, "open")], fresh=False)

    assert (state.step, state.attempt, state.request_open) == (1, 2, False)


def test_attempts_of_other_steps_do_not_count():
    log = entries(OPENING, announce(1, 1), (1, tool_result("s1c0", "x")))
    models = [attempt(1, 1, "estimated"), attempt(1, 2), attempt(2, 1, "open")]
    state = state_from_log(TURN, log, [call_row(1, 0, CallState.DONE)], models, fresh=False)

    assert (state.step, state.attempt) == (2, 2)
    assert state.usage == Usage(input=3)


def test_an_attempt_at_another_purpose_counts_too():
    log = entries(OPENING, announce(1, 1), (1, tool_result("s1c0", "x")))
    state = state_from_log(TURN, log, [call_row(1, 0)], [attempt(2, 1, "open", "synthesis")], fresh=False)

    assert state.attempt == 2


def test_an_open_batch_is_found_with_its_calls_in_order():
    log = entries(OPENING, announce(1, 3))
    rows = [call_row(1, 2), call_row(1, 0, CallState.DONE), call_row(1, 1, CallState.STARTED)]
    state = state_from_log(TURN, log, rows, [attempt(1, 1)], fresh=False)

    assert state.batch is not None
    assert (state.step, state.batch.step) == (1, 1)
    assert [row.index for row in state.batch.calls] == [0, 1, 2]
    assert state.batch.message == log[1].message


def test_a_closed_batch_is_not_open():
    log = entries(OPENING, announce(1, 1), (1, tool_result("s1c0", "x")), (1, user("[insika] a notice")))
    state = state_from_log(TURN, log, [call_row(1, 0, CallState.DONE)], [attempt(1, 1)], fresh=False)

    assert state.batch is None
    assert state.step == 2


def test_calls_of_earlier_batches_do_not_get_into_the_open_one():
    log = entries(OPENING, announce(1, 2), (1, tool_result("s1c0", "x")), (1, tool_result("s1c1", "y")), announce(2, 1))
    rows = [call_row(1, 0, CallState.DONE), call_row(1, 1, CallState.DONE), call_row(2, 0)]
    state = state_from_log(TURN, log, rows, [attempt(1, 1), attempt(2, 1)], fresh=False)

    assert state.batch is not None
    assert [(row.step, row.index) for row in state.batch.calls] == [(2, 0)]


def test_an_open_batch_of_another_turn_is_none_of_ours():
    log = [*entries((0, user("a")), announce(1, 1), turn="other"), *entries(OPENING, first=3)]
    assert state_from_log(TURN, log, (), (), fresh=False).batch is None


def test_ids_are_gathered_from_all_that_was_said():
    log = entries(OPENING, announce(1, 2), announce(2, 1))
    assert announced_ids(entry.message for entry in log) == {"s1c0", "s1c1", "s2c0"}
