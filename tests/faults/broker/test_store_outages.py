"""The store goes away while jobs pour in: nothing is lost, overtaken, refused, or delivered again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from actors.broker.outage import StoreGone
from tests.broker_world import Door, Outages, Vhost, job, until_beside_the_loop

COUNT = 200


def jobs(first: int, count: int) -> list[bytes]:
    return [job(f"{number:05}", session=f"s{number % 3}", id=f"j{number}") for number in range(first, first + count)]


async def in_order(door: Door, count: int) -> None:
    rows = await door.process.select(
        "SELECT s.name, m.text FROM mailbox m JOIN sessions s ON s.id = m.session_id ORDER BY s.name, m.position"
    )
    expected = [(f"s{n}", f"{number:05}") for n in range(3) for number in range(n, count, 3)]
    assert [(row["name"], row["text"]) for row in rows] == expected


async def test_several_in_a_row_with_two_processes_reading(vhost: Vhost, door: Callable[..., Awaitable[Door]]) -> None:
    """Each gives back what it holds, so that the deliveries of innocent jobs are counted; none is condemned for it."""
    doors = [await door(vhost), await door(vhost)]
    outages = [Outages(each) for each in doors]
    rounds = 4
    async with doors[0].open(), doors[1].open():
        for round_ in range(rounds):
            for outage in outages:
                outage.away = True
            await asyncio.to_thread(vhost.publish, jobs(round_ * COUNT, COUNT))
            await until_beside_the_loop(lambda: not doors[0].gate.is_open or not doors[1].gate.is_open)
            # In nobody's hands, so that no time limit of the broker runs.
            await until_beside_the_loop(
                lambda: not (doors[0].gate.is_open or doors[1].gate.is_open) and vhost.waiting() >= COUNT
            )
            for outage in outages:
                outage.away = False

            async def all_accepted(count: int = (round_ + 1) * COUNT) -> bool:
                return len(await doors[0].accepted()) == count

            await doors[0].until(all_accepted)
    await in_order(doors[0], rounds * COUNT)
    kept = await doors[0].kept()
    assert [row for row in kept if row.requeued_at is None] == []


async def test_deliveries_do_not_climb_while_the_store_is_away(
    quorum_vhost: Vhost, door: Callable[..., Awaitable[Door]]
) -> None:
    made = await door(quorum_vhost)
    outage = Outages(made)
    async with made.open():
        outage.away = True
        quorum_vhost.publish(jobs(0, 50))
        await until_beside_the_loop(lambda: outage.failed["mark_requeued"] >= 3, "the third probe")
        assert quorum_vhost.waiting() == 50
        assert made.closings == 1
        outage.away = False

        async def all_accepted() -> bool:
            return len(await made.accepted()) == 50

        await made.until(all_accepted)
    await in_order(made, 50)
    assert await made.kept() == []  # nobody came near the third time


async def test_a_process_that_waited_in_vain_leaves_everything_to_the_next(
    vhost: Vhost, door: Callable[..., Awaitable[Door]]
) -> None:
    made = await door(vhost, patience_s=0.0)
    outage = Outages(made)
    outage.away = True
    vhost.publish(jobs(0, 50))
    watching = asyncio.create_task(made.outage.watch())
    made.consuming.start()
    with pytest.raises(StoreGone, match="the store has taken no job"):
        await watching
    await asyncio.to_thread(made.consuming.stop, 10)
    assert vhost.waiting() == 50

    following = await door(vhost)
    async with following.open():

        async def all_accepted() -> bool:
            return len(await following.accepted()) == 50

        await following.until(all_accepted)
    await in_order(following, 50)
