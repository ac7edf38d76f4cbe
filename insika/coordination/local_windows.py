"""The windows of the edge limits, as one process counts them: by itself, or while Redis is away.

Bounded: of each length only the window under way is kept, dropped as a whole when it has ended, and in it so many
sessions and agents; whoever has not been seen for longest makes room, and begins at nothing when it comes again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from insika.clock import Clock
from insika.coordination.moments import from_ms, in_ms, window_end_ms
from insika.limits.windows import SettledTokens, TurnAttempt, WindowCheck, WindowReading

SUBJECTS = 100_000
"""Sessions, and agents, of one window."""
ATTEMPTS_BEYOND = 1_000
"""So many attempts beyond the limit are known again. Later ones are blocked for certain, and counted each time."""
CALLS_KNOWN = 20_000
"""At least so many of an agent's newest calls are known again."""

Tally = TypeVar("Tally")


class _Attempts:
    """Of one session: each turn keeps the number that it was counted as."""

    def __init__(self) -> None:
        self._count = 0
        self._numbers: dict[str, int] = {}

    def number(self, attempt: TurnAttempt) -> int:
        known = self._numbers.get(attempt.turn_id)
        return known if known is not None else self.learn(attempt, self._count + 1)

    def learn(self, attempt: TurnAttempt, number: int) -> int:
        self._count = max(self._count, number)
        if number <= attempt.limit + ATTEMPTS_BEYOND:
            self._numbers[attempt.turn_id] = number
        return number


class _Tokens:
    """Of one agent. `spent` may also be raised by who knows better."""

    def __init__(self) -> None:
        self.spent = 0
        self._calls: set[str] = set()
        self._older_calls: set[str] = set()

    def spend(self, call: str, tokens: int) -> None:
        if call in self._calls or call in self._older_calls:
            return
        if len(self._calls) >= CALLS_KNOWN:
            self._calls, self._older_calls = set(), self._calls
        self._calls.add(call)
        self.spent += tokens


class _UnderWay(Generic[Tally]):
    """The tallies of the windows under way, by length and by whose they are."""

    def __init__(self, empty: Callable[[], Tally], bound: int) -> None:
        self._empty = empty
        self._bound = bound
        self._windows: dict[int, tuple[int, OrderedDict[tuple[str, str], Tally]]] = {}

    def tally(self, whose: tuple[str, str], window_s: int, now_ms: int) -> tuple[Tally, int]:
        """And when its window ends."""
        for length in [length for length, (end, _) in self._windows.items() if end != window_end_ms(now_ms, length)]:
            del self._windows[length]
        end, tallies = self._windows.setdefault(window_s, (window_end_ms(now_ms, window_s), OrderedDict()))
        if whose not in tallies:
            tallies[whose] = self._empty()
            if len(tallies) > self._bound:
                tallies.popitem(last=False)
        tallies.move_to_end(whose)
        return tallies[whose], end


class LocalWindows:
    """`bound`: how many sessions, and how many agents, are kept of one window."""

    def __init__(self, clock: Clock, bound: int = SUBJECTS) -> None:
        self._clock = clock
        self._attempts = _UnderWay(_Attempts, bound)
        self._tokens = _UnderWay(_Tokens, bound)

    async def admit(self, checks: Sequence[WindowCheck]) -> Sequence[WindowReading]:
        now_ms = in_ms(self._clock.now())
        return [self._read(check, now_ms) for check in checks]

    def spend(self, settled: SettledTokens) -> None:
        whose = (settled.tenant, settled.agent)
        tokens, _ = self._tokens.tally(whose, settled.window_s, in_ms(self._clock.now()))
        tokens.spend(settled.call, settled.counted)

    def learn(self, readings: Sequence[WindowReading]) -> None:
        """What another one has counted, to go on from there. Readings of another window than ours are left aside."""
        now_ms = in_ms(self._clock.now())
        for reading in readings:
            check, counted = reading.check, reading.counted
            if in_ms(reading.ends_at) != window_end_ms(now_ms, check.window_s):
                continue
            if isinstance(check, TurnAttempt):
                attempts, _ = self._attempts.tally((check.tenant, check.session), check.window_s, now_ms)
                attempts.learn(check, counted)
            else:
                tokens, _ = self._tokens.tally((check.tenant, check.agent), check.window_s, now_ms)
                tokens.spent = max(tokens.spent, counted)

    def _read(self, check: WindowCheck, now_ms: int) -> WindowReading:
        if isinstance(check, TurnAttempt):
            attempts, end = self._attempts.tally((check.tenant, check.session), check.window_s, now_ms)
            counted = attempts.number(check)
        else:
            tokens, end = self._tokens.tally((check.tenant, check.agent), check.window_s, now_ms)
            counted = tokens.spent
        return WindowReading(check, counted, from_ms(end), (end - now_ms) / 1000)
