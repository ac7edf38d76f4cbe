from __future__ import annotations

import asyncio
from datetime import timedelta

from structlog.testing import capture_logs

from actors.lease import Outage
from actors.sweeper import POLL_S, Sweeper, Swept
from insika.clock import DUE_NOW, NEVER, ManualClock
from insika.storage.port import StoreUnavailable


class Due:
    """A store in which sessions are due; and everything a sweeper wakes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.due: list[int] = []
        self.next = NEVER
        self.errors: list[Exception] = []
        self.woken: list[int] = []
        self.rung = 0
        self.refreshed = 0
        self.expired = 0
        self.swept = asyncio.Event()
        self.outage = Outage(15.0, self.clock)
        self.added = 0
        self.sweeper = Sweeper(
            self, self, self.clock, self.expire, self.refresh, outage=self.outage, roll_up=self.roll_up
        )

    async def roll_up(self) -> int:
        self.added += 1
        return 0

    async def due_sessions(self, limit: int = 500) -> list[int]:
        due, self.due = self.due[:limit], self.due[limit:]
        return due

    async def next_due_at(self):
        self.swept.set()
        return self.next

    async def refresh(self) -> None:
        self.refreshed += 1
        if self.errors:
            raise self.errors.pop(0)

    async def expire(self) -> int:
        return self.expired

    def session(self, session_id: int) -> None:
        self.woken.append(session_id)

    def delivery(self) -> None:
        self.rung += 1


async def test_one_sweep_learns_wakes_and_settles():
    due = Due()
    due.due, due.expired = [3, 1], 2

    assert await due.sweeper.run_once() == Swept(woken=2, uncertain=2)
    assert (due.refreshed, due.woken, due.rung, due.added) == (1, [3, 1], 1, 1)


async def test_it_sleeps_until_the_next_is_due_but_never_long_nor_not_at_all():
    due = Due()
    for next_due, expected in [
        (NEVER, POLL_S),
        (DUE_NOW, POLL_S),
        (due.clock.now() + timedelta(seconds=0.2), 0.2),
        (due.clock.now() + timedelta(seconds=100), POLL_S),
        (due.clock.now() - timedelta(seconds=1), 0.01),
    ]:
        due.next = next_due
        assert await due.sweeper._until_next_due() == expected


async def test_a_clock_that_is_ahead_of_the_stores_does_not_make_it_spin():
    due = Due()
    due.next = due.clock.now() - timedelta(minutes=5)
    paused = [await due.sweeper._until_next_due() for _ in range(12)]
    assert paused[:4] == [0.01, 0.02, 0.04, 0.08]
    assert paused[-4:] == [POLL_S] * 4
    due.next = due.clock.now() + timedelta(seconds=0.1)
    assert await due.sweeper._until_next_due() == 0.1
    due.next = due.clock.now()
    assert await due.sweeper._until_next_due() == 0.01


async def test_it_survives_an_outage_and_whatever_else_and_remembers_the_outage(monkeypatch):
    monkeypatch.setattr("actors.sweeper.OUTAGE_PAUSE_S", 0.0)
    due = Due()
    due.errors = [StoreUnavailable("away"), RuntimeError("unforeseen"), StoreUnavailable("away")]
    due.due = [7]
    stop = asyncio.Event()
    with capture_logs():
        running = asyncio.create_task(due.sweeper.run(stop))
        async with asyncio.timeout(20):
            await due.swept.wait()
        stop.set()
        await running

    assert due.refreshed == 4
    assert due.woken == [7]
    assert due.outage.just_over


async def test_it_stops_while_it_sleeps():
    due = Due()
    stop = asyncio.Event()
    running = asyncio.create_task(due.sweeper.run(stop))
    await due.swept.wait()
    assert not running.done()
    stop.set()
    async with asyncio.timeout(20):
        await running
    assert running.done()


async def test_no_more_sessions_are_woken_than_there_is_room_for():
    world = Due()
    room = iter([0, 2, 5])
    sweeper = Sweeper(
        world, world, world.clock, world.expire, world.refresh, outage=world.outage, room=lambda: next(room)
    )
    world.due = [1, 2, 3]
    assert (await sweeper.run_once()).woken == 0
    assert (await sweeper.run_once()).woken == 2
    assert world.woken == [1, 2]
    assert (await sweeper.run_once()).woken == 1
    assert world.woken == [1, 2, 3]
    assert world.refreshed == 3
