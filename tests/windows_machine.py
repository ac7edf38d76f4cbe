"""The windows of the edge limits under any number of turns that begin, and begin again, in several processes.

The model keeps everything that ever happened, by the number of its window, and counts it by hand.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from insika.limits.windows import TokenCeiling, TurnAttempt, WindowCheck
from tests.limits_world import TOKEN_WINDOW_S, Counting, attempt, settled

PROCESSES = 3
WHO = st.integers(0, PROCESSES - 1)
ATTEMPTS = st.builds(
    attempt,
    turn=st.sampled_from([f"t{number}" for number in range(8)]),
    limit=st.integers(1, 4),
    session=st.sampled_from(["ana", "ben"]),
    window_s=st.sampled_from([60, 90]),
)
CEILINGS = st.builds(
    TokenCeiling, st.just("acme"), st.sampled_from(["shop", "orders"]), st.integers(1, 100), st.just(TOKEN_WINDOW_S)
)
CALLS = st.builds(
    settled,
    tokens=st.integers(0, 40),
    turn=st.sampled_from(["t1", "t2"]),
    agent=st.sampled_from(["shop", "orders"]),
    step=st.integers(0, 3),
)
T = TypeVar("T")


class WindowsMachine(RuleBasedStateMachine):
    """Subclasses say who counts, by `open`."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.counting = self.run(self.closing.enter_async_context(self.open()))
        self.turns: dict[tuple[str, int, int], list[str]] = defaultdict(list)
        self.calls: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
        self.let_through: dict[tuple[str, int, int, int], set[str]] = defaultdict(set)

    def teardown(self) -> None:
        self.run(self.closing.aclose())
        self.runner.close()

    def open(self) -> AbstractAsyncContextManager[Counting]:
        raise AssertionError("a subclass says who")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def window(self, length_s: int) -> int:
        """The number of the one under way."""
        return int(self.counting.clock.now().timestamp() // length_s)

    @rule(who=WHO, checks=st.lists(st.one_of(ATTEMPTS, ATTEMPTS, CEILINGS), min_size=1, max_size=4))
    def begin(self, who: int, checks: list[WindowCheck]) -> None:
        readings = self.run(self.counting.processes[who].windows.admit(checks))
        assert [reading.check for reading in readings] == checks
        for reading in readings:
            check = reading.check
            number = self.window(check.window_s)
            assert reading.ends_at.timestamp() == (number + 1) * check.window_s
            assert 0 < reading.retry_after_s <= check.window_s
            if isinstance(check, TurnAttempt):
                assert reading.counted == self.place(check, number)
                if not reading.breached:
                    self.let_through[check.session, check.window_s, number, check.limit].add(check.turn_id)
            else:
                spent = sum(self.calls[check.agent, number].values())
                assert (reading.counted, reading.breached) == (spent, spent >= check.limit)

    def place(self, check: TurnAttempt, number: int) -> int:
        turns = self.turns[check.session, check.window_s, number]
        if check.turn_id not in turns:
            turns.append(check.turn_id)
        return turns.index(check.turn_id) + 1

    @rule(who=WHO, call=CALLS)
    def spend(self, who: int, call: Any) -> None:
        process = self.counting.processes[who]
        process.windows.spend(call)
        self.run(process.told())
        self.calls[call.agent, self.window(TOKEN_WINDOW_S)].setdefault(call.call, call.tokens)

    @rule(seconds=st.sampled_from([0.001, 0.5, 29, 31, 59.999, 60, 90, 7_200, 86_400]))
    def time_passes(self, seconds: float) -> None:
        self.counting.clock.advance(seconds)

    @invariant()
    def no_more_turns_begin_than_the_limit_says(self) -> None:
        for (*_, limit), turns in self.let_through.items():
            assert len(turns) <= limit
