"""Wherever a long conversation is cut, what is left is one that vendors take, and it is cut rarely."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.storage.rows import LogEntry
from insika.turn.estimate import estimate_usage
from insika.turn.history import load_from
from tests.strict import check_anthropic, check_openai


def said(turn: int, opening: int, batches: list[int], answers: bool) -> list[Message]:
    messages: list[Message] = [user("u" * (opening + 1))]
    for batch, size in enumerate(batches):
        calls = [ToolCall(f"t{turn}b{batch}c{index}", "look", {"n": index}) for index in range(size)]
        messages.append(assistant("Let me see.", *calls))
        messages.extend(tool_result(call.id, "r" * 20) for call in calls)
        messages.append(user("[insika] or a person"))
    return [*messages, assistant("The answer.")] if answers else messages


TURNS = st.lists(
    st.tuples(st.integers(0, 300), st.lists(st.integers(1, 4), max_size=3), st.booleans()), min_size=1, max_size=25
)
BUDGETS = st.integers(1, 600)


@given(TURNS, BUDGETS, st.integers(0, 400))
def test_no_cut_parts_a_result_from_its_call_or_begins_within_a_turn(turns, budget, opening):
    log: list[LogEntry] = []
    for number, (size, batches, answers) in enumerate(turns):
        for message in said(number, size, batches, answers):
            log.append(LogEntry(10 + len(log), f"turn-{number}", 1, 0, message))
    begins = {next(entry.seq for entry in log if entry.turn_id == f"turn-{number}") for number in range(len(turns))}

    moved = load_from(log, ["o" * (opening + 1)], budget)

    assert moved is None or moved in begins - {log[0].seq} or moved == log[-1].seq + 1
    kept = [entry.message for entry in log if moved is None or entry.seq >= moved]
    check_anthropic([*kept, user("o" * (opening + 1))], sent=True)
    check_openai([*kept, user("o" * (opening + 1))], sent=True)
    if moved is None:
        assert estimate_usage("", kept).input <= budget
    elif kept:
        assert estimate_usage("", kept).input <= budget // 2 + len(turns)


@given(TURNS, BUDGETS)
def test_between_two_moves_each_request_is_a_prefix_of_the_next_and_moves_are_rare(turns, budget):
    log: list[LogEntry] = []
    start, moves, spent = 1, 0, 0
    before: list[Message] = []
    for number, (size, batches, answers) in enumerate(turns):
        opening, *rest = said(number, size, batches, answers)
        loaded = [entry for entry in log if entry.seq >= start]
        moved = load_from(loaded, [opening.content], budget)
        if moved is not None:
            moves += 1
            assert moved > start
            start, before = moved, []
        log.append(LogEntry(len(log) + 1, f"turn-{number}", 1, 0, opening))
        request = [entry.message for entry in log if entry.seq >= start]
        assert request[: len(before)] == before
        log.extend(LogEntry(len(log) + 1 + at, f"turn-{number}", 1, 1, message) for at, message in enumerate(rest))
        before = request
        spent += estimate_usage("", [opening, *rest]).input
    # Each move frees at least half of the budget, so moves are at most as many as the halves that were said.
    assert moves <= spent // max(1, budget // 2) + 1
