"""The windows of the edge limits: what is counted in them, and the port of whoever counts. Pure.

What holds: a window is fixed, from one multiple of its length (by Unix time) to the next. An attempt is a turn begun,
counted once however often it begins again; one that is blocked counts too. Of tokens only what is settled counts; so a
ceiling is overshot by what was under way when it was reached, at most one model call of each turn in flight, and the
further steps of turns that were let in before.

Source: the order's "Layer 4: Edge limits".
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

LONGEST_WINDOW_S = 366 * 86_400
MOST_TOKENS = 10**12
"""What one model call is counted with at the most: a vendor that says more is mistaken."""


class WindowKind(enum.StrEnum):
    """As settings, profiles and the event `limit_breached` name it."""

    CHAT_RATE_LIMIT = "chat_rate_limit"
    AGENT_TOKEN_CEILING = "agent_token_ceiling"  # noqa: S105 - tokens of a model


@dataclass(frozen=True, slots=True)
class TurnAttempt:
    """This turn of this session begins. `limit` turns of a session may begin in each window of `window_s` seconds.

    Raises ValueError for a limit below 1: one that is off is not asked about; or a window that is not from 1 to
    LONGEST_WINDOW_S."""

    kind: ClassVar[WindowKind] = WindowKind.CHAT_RATE_LIMIT

    tenant: str
    session: str
    turn_id: str
    limit: int
    window_s: int

    def __post_init__(self) -> None:
        _check(self.limit, self.window_s)

    def breached_by(self, counted: int) -> bool:
        return counted > self.limit


@dataclass(frozen=True, slots=True)
class TokenCeiling:
    """A turn of this agent begins, which it may while fewer than `limit` tokens are spent in the window. Raises as
    TurnAttempt."""

    kind: ClassVar[WindowKind] = WindowKind.AGENT_TOKEN_CEILING

    tenant: str
    agent: str
    limit: int
    window_s: int

    def __post_init__(self) -> None:
        _check(self.limit, self.window_s)

    def breached_by(self, counted: int) -> bool:
        return counted >= self.limit


WindowCheck = TurnAttempt | TokenCeiling


@dataclass(frozen=True, slots=True)
class WindowReading:
    """How a check came out. `counted`: attempts including this one, as many as there were when it was counted; or the
    tokens spent by now. `retry_after_s`: until the window ends, which is at `ends_at` by the clock of who counts."""

    check: WindowCheck
    counted: int
    ends_at: datetime
    retry_after_s: float

    @property
    def breached(self) -> bool:
        return self.check.breached_by(self.counted)


@dataclass(frozen=True, slots=True)
class SettledTokens:
    """What one model call has cost, measured or estimated. A call is known by its turn, step, attempt and purpose, as
    its row is. `window_s` as in the TokenCeiling that it counts for."""

    tenant: str
    agent: str
    window_s: int
    turn_id: str
    step: int
    attempt: int
    purpose: str
    tokens: int

    @property
    def call(self) -> str:
        return f"{self.turn_id}:{self.step}:{self.attempt}:{self.purpose}"

    @property
    def counted(self) -> int:
        """0 up to MOST_TOKENS."""
        return min(max(self.tokens, 0), MOST_TOKENS)


class EdgeWindows(Protocol):
    """Counts attempts and tokens for all processes. It never raises, and nobody waits long for it: where the processes
    cannot be asked together, each answers from what it has counted and last heard itself."""

    async def admit(self, checks: Sequence[WindowCheck]) -> Sequence[WindowReading]:
        """One reading for each check, in order. All are looked at, and every attempt counted, as one step that nothing
        comes between, whatever comes of each. The same attempt again, within its window, is not counted again and
        reads as it did at first."""
        ...

    def spend(self, settled: SettledTokens) -> None:
        """Count what a model call has cost, in the window that is under way when it is told. Call it on the loop's
        thread; it returns at once. The same call again, within its window, is not counted again, whatever it cost."""
        ...


def _check(limit: int, window_s: int) -> None:
    if limit < 1:
        raise ValueError(f"a limit of {limit} is off, and what is off is not checked")
    if not 1 <= window_s <= LONGEST_WINDOW_S:
        raise ValueError(f"a window of {window_s} s is not from 1 to {LONGEST_WINDOW_S}")
