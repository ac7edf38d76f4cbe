"""Waiting for what comes of something: it ends with the first finding, and asks at least once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from actors.cli import outcomes
from actors.cli.outcomes import OWNED_S, UNOWNED_S, outcome, patience_s
from insika.storage.rows import SessionRow

ROW = SessionRow(1, "", "s", 1, None, None, datetime.now(UTC), False, 1, 0, 1, 1, 0, None, None, None, None, 0, 0)


class Look:
    """Finds something at the `nth` look."""

    def __init__(self, nth: int) -> None:
        self.nth = nth
        self.looks = 0

    async def __call__(self) -> str | None:
        self.looks += 1
        return "found" if self.looks == self.nth else None


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(outcomes.asyncio, "sleep", sleep)
    return slept


@pytest.mark.parametrize("nth", [1, 2, 11])
async def test_it_ends_with_the_first_finding(nth: int) -> None:
    look = Look(nth)
    assert (await outcome(look, 1.0), look.looks) == ("found", nth)


async def test_it_gives_up_in_the_end(without_pauses: list[float]) -> None:
    assert await outcome(Look(12), 1.0) is None
    assert sum(without_pauses) == pytest.approx(1.0)


async def test_without_patience_it_looks_once_and_sleeps_never(without_pauses: list[float]) -> None:
    look = Look(1)
    assert (await outcome(look, 0), without_pauses) == ("found", [])


def test_an_owner_is_waited_for_longer_than_one_who_may_never_come() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    assert patience_s(replace(ROW, lease_id="l", lease_until=later)) == OWNED_S
    for other in (None, ROW, replace(ROW, lease_id="l", lease_until=later - timedelta(hours=2))):
        assert patience_s(other) == UNOWNED_S
