"""Spend is summed up regularly, a bounded piece at a time; and no sum changes by it."""

from __future__ import annotations

from datetime import datetime, timedelta

from actors.roll_up import AT_MOST, EVERY_S, SETTLED_FOR_S, RollUp
from insika.clock import ManualClock
from insika.limits.budgets import Calendar
from insika.providers.script import Say
from insika.storage.rows import Spend
from insika.testing import Script
from tests.actor_world import profile


class Calls:
    """A store with so many settled calls."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.asked: list[tuple[datetime, int]] = []

    async def roll_up_spend(self, until: datetime, *, limit: int = 1_000) -> int:
        self.asked.append((until, limit))
        added = min(limit, self.left)
        self.left -= added
        return added

    async def spend(self, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> Spend:
        return Spend(0, 0)


async def test_what_settled_a_minute_ago_is_added_every_few_seconds() -> None:
    calls, clock = Calls(3), ManualClock()
    roll_up = RollUp(calls, clock)
    assert [await roll_up.run_once() for _ in range(3)] == [3, 0, 0]
    assert calls.asked == [(clock.now() - timedelta(seconds=SETTLED_FOR_S), AT_MOST)]
    clock.advance(EVERY_S)
    calls.left = 2
    assert await roll_up.run_once() == 2


async def test_a_clock_that_is_set_back_does_not_keep_it_waiting() -> None:
    calls, clock = Calls(0), ManualClock()
    roll_up = RollUp(calls, clock)
    await roll_up.run_once()
    clock.jump(-86_400)
    clock.advance(EVERY_S)
    await roll_up.run_once()
    assert len(calls.asked) == 2


async def test_what_has_gathered_is_added_piece_by_piece() -> None:
    calls, clock = Calls(2 * AT_MOST + 1), ManualClock()
    roll_up = RollUp(calls, clock)
    assert [await roll_up.run_once() for _ in range(4)] == [AT_MOST, AT_MOST, 1, 0]


async def test_no_budget_sees_the_difference(place_for) -> None:
    place = place_for(Script(afterwards=Say("x" * 400)))
    process = await place.process(profile())
    await process.send("hello")
    await process.idle()
    calendar = Calendar.of(place.clock.now())

    async def spent() -> Spend:
        return await process.store.real.spend("", "agent", calendar.day, calendar.month)

    before = await spent()
    assert before.day > 0
    assert await RollUp(process.store.real, place.clock).run_once() == 0
    place.clock.advance(SETTLED_FOR_S + 1)
    assert await RollUp(process.store.real, place.clock).run_once() == 1
    assert await spent() == before
