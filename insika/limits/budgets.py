"""The calendar budget: whether a turn that arrives now may run, and what operators are told of it. Pure.

What holds: only what is settled counts (`spent >= cap`), and it is looked at once, when a turn arrives; so a cap is
overshot by what was under way when it was crossed, at most one model call of each turn in flight, and the further steps
of turns that were let in before. A level of a window is told once, however many workers see it crossed: by
`Crossing.key`, which the store keeps unique.

Source: the order's "Calendar budgets": UTC midnight, the first of a month, 0.8 of the cap.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from insika.agents.budget import Budget
from insika.documents import canonical_digest


class Window(enum.StrEnum):
    DAILY = "daily"
    MONTHLY = "monthly"


class Level(enum.StrEnum):
    """`alert`: the share of a cap at which somebody should know. `cap`: the cap itself."""

    ALERT = "alert"
    CAP = "cap"


@dataclass(frozen=True, slots=True)
class Calendar:
    """The day and the month that hold a moment, in UTC: their first moments, and those of the next ones."""

    day: datetime
    next_day: datetime
    month: datetime
    next_month: datetime

    @classmethod
    def of(cls, now: datetime) -> Calendar:
        day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        month = day.replace(day=1)
        return cls(day, day + timedelta(days=1), month, (month + timedelta(days=32)).replace(day=1))


@dataclass(frozen=True, slots=True)
class Spent:
    """Settled tokens of one agent in one tenant, since the beginning of the day and of the month."""

    day: int = 0
    month: int = 0


@dataclass(frozen=True, slots=True)
class Crossing:
    """A level that is reached. `since` is the first moment of the window."""

    window: Window
    level: Level
    spent: int
    cap: int
    since: datetime

    def key(self, tenant: str, agent: str) -> str:
        """The same for everybody who sees this level of this cap reached in this window, and for nothing else: of a cap
        that was raised meanwhile people are told anew."""
        whose = canonical_digest([tenant, agent])[:32]
        return f"budget/{whose}/{self.window}/{self.since:%Y-%m-%d}/{self.level}/{self.cap}"


@dataclass(frozen=True, slots=True)
class MayRun:
    """`crossed`: what is to be told, if nobody has. `past_cap`: the budget is soft, and past at least one cap: the
    model is told so in every request of the turn."""

    crossed: tuple[Crossing, ...] = ()
    past_cap: bool = False


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The turn fails with `budget_exceeded`. `window` is the one that opens last, `retry_after_s` seconds from now."""

    crossed: tuple[Crossing, ...]
    window: Window
    retry_after_s: float


@dataclass(frozen=True, slots=True)
class _Count:
    window: Window
    spent: int
    cap: int
    since: datetime
    opens_again: datetime


def judge(budget: Budget, spent: Spent, now: datetime) -> MayRun | Exhausted:
    """`now` is the store's time, which also dates the model calls that `spent` sums up."""
    counts = tuple(_counts(budget, spent, Calendar.of(now)))
    crossed = tuple(crossing for count in counts for crossing in _crossings(count, budget.alert_at))
    full = [count for count in counts if count.spent >= count.cap]
    if not full or budget.soft:
        return MayRun(crossed, past_cap=bool(full))
    last = max(full, key=lambda count: count.opens_again)
    return Exhausted(crossed, last.window, (last.opens_again - now).total_seconds())


def has_cap(budget: Budget) -> bool:
    """There is something to look at."""
    return bool(budget.daily or budget.monthly)


def _counts(budget: Budget, spent: Spent, calendar: Calendar) -> Iterator[_Count]:
    if budget.daily:
        yield _Count(Window.DAILY, spent.day, budget.daily, calendar.day, calendar.next_day)
    if budget.monthly:
        yield _Count(Window.MONTHLY, spent.month, budget.monthly, calendar.month, calendar.next_month)


def _crossings(count: _Count, alert_at: float | None) -> Iterator[Crossing]:
    if alert_at is not None and count.spent >= alert_at * count.cap:
        yield Crossing(count.window, Level.ALERT, count.spent, count.cap, count.since)
    if count.spent >= count.cap:
        yield Crossing(count.window, Level.CAP, count.spent, count.cap, count.since)
