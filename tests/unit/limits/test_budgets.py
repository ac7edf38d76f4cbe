"""The calendar budget, with the order's own numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.agents.budget import Budget
from insika.limits.budgets import Calendar, Exhausted, Level, MayRun, Spent, Window, has_cap, judge

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BOTH = Budget(daily=100_000, monthly=2_000_000)


def levels(verdict: MayRun | Exhausted) -> list[tuple[str, str]]:
    return [(str(crossing.window), str(crossing.level)) for crossing in verdict.crossed]


@pytest.mark.parametrize(
    ("day", "month", "runs", "told"),
    [
        (0, 0, True, []),
        (79_999, 79_999, True, []),
        (80_000, 80_000, True, [("daily", "alert")]),
        (99_999, 99_999, True, [("daily", "alert")]),
        (100_000, 100_000, False, [("daily", "alert"), ("daily", "cap")]),
        (0, 1_599_999, True, []),
        (0, 1_600_000, True, [("monthly", "alert")]),
        (0, 2_000_000, False, [("monthly", "alert"), ("monthly", "cap")]),
    ],
)
def test_a_turn_runs_until_what_is_spent_reaches_the_cap(
    day: int, month: int, runs: bool, told: list[tuple[str, str]]
) -> None:
    verdict = judge(BOTH, Spent(day, month), NOON)
    assert isinstance(verdict, MayRun) is runs
    assert levels(verdict) == told


def test_a_full_day_opens_at_midnight_utc_and_a_full_month_on_the_first() -> None:
    noon_elsewhere = NOON.astimezone(timezone(timedelta(hours=-8)))
    daily = judge(BOTH, Spent(day=100_000), noon_elsewhere)
    assert isinstance(daily, Exhausted)
    assert (daily.window, daily.retry_after_s) == (Window.DAILY, 12 * 3600)
    monthly = judge(BOTH, Spent(month=2_000_000), NOON.replace(day=3))
    assert isinstance(monthly, Exhausted)
    assert (monthly.window, monthly.retry_after_s) == (Window.MONTHLY, (27 * 24 + 12) * 3600)


def test_where_both_windows_are_full_the_later_one_counts() -> None:
    verdict = judge(BOTH, Spent(100_000, 2_000_000), NOON.replace(day=3))
    assert isinstance(verdict, Exhausted)
    assert verdict.window is Window.MONTHLY


def test_a_soft_budget_lets_the_turn_run_and_says_so() -> None:
    verdict = judge(Budget(daily=100, soft=True), Spent(day=100), NOON)
    assert isinstance(verdict, MayRun)
    assert verdict.past_cap
    assert levels(verdict) == [("daily", "alert"), ("daily", "cap")]
    below = judge(Budget(daily=100, soft=True), Spent(day=99), NOON)
    assert isinstance(below, MayRun)
    assert not below.past_cap


def test_null_and_zero_are_no_cap_and_a_null_alert_is_no_alert() -> None:
    assert not has_cap(Budget())
    assert not has_cap(Budget(daily=0, monthly=0))
    assert judge(Budget(daily=0), Spent(10**9, 10**9), NOON) == MayRun()
    assert levels(judge(Budget(daily=10, alert_at=None), Spent(9, 9), NOON)) == []


def test_a_level_is_one_key_in_its_window_and_another_in_the_next() -> None:
    def key(now: datetime, tenant: str = "", agent: str = "shop") -> str:
        return judge(Budget(daily=10), Spent(day=8), now).crossed[0].key(tenant, agent)

    assert key(NOON) == key(NOON + timedelta(hours=11))
    assert key(NOON) != key(NOON + timedelta(hours=12))
    raised = judge(Budget(daily=20), Spent(day=16), NOON).crossed[0].key("", "shop")
    assert raised != key(NOON)
    assert len({key(NOON), key(NOON, "acme"), key(NOON, agent="x"), key(NOON, "acmesho", "p")}) == 4


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda at: at.year < 9990))
def test_a_moment_lies_in_its_own_day_and_month(now: datetime) -> None:
    calendar = Calendar.of(now)
    assert calendar.month <= calendar.day <= now < calendar.next_day <= calendar.next_month
    assert calendar.next_day - calendar.day == timedelta(days=1)
    assert calendar.next_month.day == 1
    assert calendar.next_month.month != calendar.month.month


@given(st.integers(0, 200), st.integers(0, 200), st.booleans(), st.floats(0.01, 1))
def test_a_hard_budget_stops_exactly_at_its_caps(day: int, month: int, soft: bool, alert_at: float) -> None:
    verdict = judge(Budget(daily=50, monthly=100, soft=soft, alert_at=alert_at), Spent(day, month), NOON)
    assert isinstance(verdict, Exhausted) is (not soft and (day >= 50 or month >= 100))
    caps = {crossing.window for crossing in verdict.crossed if crossing.level is Level.CAP}
    assert caps == {w for w, full in ((Window.DAILY, day >= 50), (Window.MONTHLY, month >= 100)) if full}
    if isinstance(verdict, Exhausted):
        assert verdict.retry_after_s > 0
