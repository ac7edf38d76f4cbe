from __future__ import annotations

import pytest

from insika.messages import ToolCall, assistant, tool_result, user
from insika.storage.rows import LogEntry
from insika.turn.history import load_from


def conversation(*sizes: int, first_seq: int = 1) -> list[LogEntry]:
    """A turn for each size, in estimated tokens: a question, a batch, an answer."""
    log: list[LogEntry] = []
    for number, size in enumerate(sizes):
        messages = [
            user("x" * 4 * (size - 2)),
            assistant("", ToolCall(f"c{number}", "ab")),
            tool_result(f"c{number}", ""),
            assistant("yes!"),
        ]
        for message in messages:
            log.append(LogEntry(first_seq + len(log), f"turn-{number}", 1, 0, message))
    return log


def test_without_a_budget_everything_is_kept():
    assert load_from(conversation(1000, 1000), ["x" * 4000], None) is None


def test_what_fits_stays_where_it_is():
    assert load_from(conversation(40, 40), ["x" * 80], 100) is None
    assert load_from([], ["x" * 400], 100) is None


def test_what_does_not_fit_frees_half_of_the_budget_at_a_turn_s_beginning():
    log = conversation(40, 20, 20, 20, first_seq=7)
    assert load_from(log, ["x" * 4 * 10], 100) == log[8].seq


def test_one_turn_that_is_too_large_leaves_nothing_but_the_new_one():
    log = conversation(500)
    assert load_from(log, ["hello"], 100) == log[-1].seq + 1


def test_a_new_turn_that_is_too_large_is_kept_all_the_same():
    log = conversation(10, 10)
    assert load_from(log, ["x" * 4000], 100) == log[-1].seq + 1
    assert load_from([], ["x" * 4000], 100) is None


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_a_tiny_budget_is_no_error(budget):
    log = conversation(10, 10)
    assert load_from(log, ["hi"], budget) == log[-1].seq + 1
