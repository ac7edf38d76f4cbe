from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from insika.messages import Halt, Message
from insika.turn.step_limit import StepLimit
from insika.turn.turn_budget import TurnBudget
from tests.turn_doubles import Transcript, batch

LIMITS = st.integers(1, 60)


@dataclass(frozen=True)
class Batch:
    size: int
    halts: bool


BATCHES = st.lists(st.builds(Batch, st.integers(1, 14), st.booleans()), max_size=12)
Shown = Message | Halt | str | None
"""What a budget is shown: a message, a tool's result, or None for a call."""


def shown(batches: list[Batch]) -> Iterator[Shown]:
    for each in batches:
        opening, *results = batch(each.size)
        yield opening
        yield from [None] * each.size
        for index, result in enumerate(results):
            yield Halt() if each.halts and index == each.size // 2 else "found"
            yield result


def show(budget: TurnBudget, what: Shown) -> None:
    if isinstance(what, Message):
        budget.message_ended(what)
    elif what is None:
        with suppress(StepLimit.Exceeded):
            budget.tool_call()
    else:
        budget.tool_result(what)


@given(LIMITS, BATCHES)
def test_each_boundary_says_at_most_one_notice_and_it_is_true(limit, batches):
    transcript = Transcript()
    budget = TurnBudget(transcript, limit, transcript.emit, "synthesize")
    left = limit
    for each in batches:
        before, left = left, max(0, left - each.size)
        crossed = [threshold for threshold in (10, 5, 2) if before > threshold >= left]
        transcript.messages, transcript.events = [], []
        for what in shown([each]):
            assert transcript.messages == []
            show(budget, what)
        if crossed and not each.halts:
            expected = {"remaining": left, "max": limit, "threshold": min(crossed)}
            assert transcript.said == [TurnBudget.notice(left, limit)]
            assert transcript.events == [("tool_budget_warned", expected)]
        else:
            assert (transcript.messages, transcript.events) == ([], [])
    assert budget.calls == sum(each.size for each in batches)
    assert budget.exhausted == (budget.calls > limit)


@given(LIMITS, BATCHES)
def test_each_threshold_speaks_at_most_once_and_ever_more_urgently(limit, batches):
    transcript = Transcript()
    budget = TurnBudget(transcript, limit, transcript.emit)
    for what in shown(batches):
        show(budget, what)
    thresholds = [data["threshold"] for _, data in transcript.events]
    assert thresholds == sorted(set(thresholds), reverse=True)
    assert set(thresholds) <= {threshold for threshold in (10, 5, 2) if threshold < limit}


@given(LIMITS, st.integers(0, 80))
def test_exactly_the_limit_runs(limit, wanted):
    budget = TurnBudget(Transcript(), limit, Transcript().emit)
    refused = 0
    for _ in range(wanted):
        try:
            budget.tool_call()
        except StepLimit.Exceeded:
            refused += 1
    assert refused == max(0, wanted - limit)


@given(st.one_of(st.none(), LIMITS), BATCHES, st.data())
def test_a_budget_rebuilt_from_the_log_anywhere_says_the_same_from_there_on(limit, batches, data):
    log = list(shown(batches))
    cut = data.draw(st.integers(0, len(log)))
    straight, resumed, discarded = Transcript(), Transcript(), Transcript()
    first = TurnBudget(straight, limit, straight.emit)
    for what in log[:cut]:
        show(first, what)
    straight.messages, straight.events = [], []

    switch = Switch(discarded)
    second = TurnBudget(switch, limit, switch.emit)
    for what in log[:cut]:
        show(second, what)
    switch.to = resumed

    for what in log[cut:]:
        show(first, what)
        show(second, what)
    assert resumed.messages == straight.messages
    assert resumed.events == straight.events
    assert (second.calls, second.exhausted) == (first.calls, first.exhausted)


@given(BATCHES)
def test_without_a_limit_nothing_ever_happens(batches):
    transcript = Transcript()
    budget = TurnBudget(transcript, None, transcript.emit)
    for what in shown(batches):
        show(budget, what)
    assert (transcript.messages, transcript.events, budget.calls, budget.exhausted) == ([], [], 0, False)


class Switch:
    """A chat and emit that discard until they are turned over to another."""

    def __init__(self, to: Transcript) -> None:
        self.to = to

    def add_message(self, role: str, content: str) -> None:
        self.to.add_message(role, content)

    def emit(self, type, data, /) -> None:
        self.to.emit(type, data)
