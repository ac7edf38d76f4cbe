"""Spend: the sum of what was settled, by tenant, agent and window; the same before, while and after it is added up."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from insika.messages import Usage
from insika.storage.operations import SettledModelCall
from insika.storage.rows import Spend
from tests.store_world import ESTIMATE, MEASURED, Owner, World, answer_call, classifier_call, done

DAY_S = 86_400.0
FIRST = datetime(2030, 1, 1, tzinfo=UTC)
"""Of the day and of the month in which the tests' clock begins."""


async def spent(world: World, *, agent: str = "shop", tenant: str = "") -> Spend:
    """Today, and since the first of this month."""
    day = world.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return await world.store.spend(tenant, agent, day, day.replace(day=1))


async def turn_of(world: World, tokens: int, **values: Any) -> Owner:
    """A turn that has cost this much."""
    said = await world.say(session=f"s{random.random()}", **values)
    owner = await world.own(said.session_id)
    await owner.start(agent=values.get("agent", "shop"))
    await owner.commit(model_call=SettledModelCall(answer_call(1), Usage(tokens)), deliveries=())
    return owner


async def days(world: World) -> dict[tuple[str, str], int]:
    rows = await world.peek("SELECT tenant, agent, sum(tokens) AS tokens FROM spend_days GROUP BY tenant, agent")
    return {(row["tenant"], row["agent"]): row["tokens"] for row in rows}


async def roll_up(world: World) -> int:
    return await world.store.roll_up_spend(world.clock.now() + timedelta(seconds=1))


async def test_all_four_parts_of_what_is_settled_count_and_nothing_else(world: World) -> None:
    assert await spent(world) == Spend()
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    assert await spent(world) == Spend(), "it is open"
    await owner.append("a")
    assert await spent(world) == Spend(MEASURED.total, MEASURED.total)
    await owner.cross(done(0, "a"))
    assert await spent(world) == Spend(MEASURED.total, MEASURED.total)
    await owner.fail(step=2)
    both = MEASURED.total + ESTIMATE.total
    assert await spent(world) == Spend(both, both), "what is estimated counts"
    assert await spent(world, agent="other") == Spend()
    assert await spent(world, tenant="other") == Spend()


async def test_every_kind_of_call_counts_for_the_agent_that_had_the_turn(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    key = await owner.screen(said.turn_id or "")
    assert key is not None
    await world.store.settle_model_call(said.turn_id or "", SettledModelCall(key, Usage(1)))
    await owner.start(model_call=classifier_call())
    await owner.route(next_call=None, model_call=SettledModelCall(classifier_call(), Usage(10)))
    await owner.redirect(model_call=answer_call(1))
    await owner.commit(model_call=SettledModelCall(answer_call(1), Usage(100)))
    assert await spent(world) == Spend(11, 11)
    assert await spent(world, agent="orders") == Spend(100, 100)


async def test_each_tenant_and_each_agent_spends_for_itself(world: World) -> None:
    await turn_of(world, 1)
    await turn_of(world, 10, agent="orders")
    await turn_of(world, 100, tenant="acme")
    await turn_of(world, 1000, tenant="acme", agent="orders")
    for _ in range(2):
        assert (await spent(world)).day == 1
        assert (await spent(world, agent="orders")).day == 10
        assert (await spent(world, tenant="acme")).day == 100
        assert (await spent(world, tenant="acme", agent="orders")).day == 1000
        await roll_up(world)
    assert await days(world) == {
        ("", "shop"): 1,
        ("", "orders"): 10,
        ("acme", "shop"): 100,
        ("acme", "orders"): 1000,
    }


async def test_a_call_counts_on_the_day_on_which_it_began(world: World) -> None:
    world.clock.advance(DAY_S - 1)
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    world.clock.advance(2)
    await owner.commit(model_call=SettledModelCall(answer_call(1), Usage(5)))
    for _ in range(2):
        assert await spent(world) == Spend(day=0, month=5)
        assert await world.store.spend("", "shop", FIRST, FIRST) == Spend(5, 5)
        assert await roll_up(world) in (0, 1)
    (row,) = await world.peek("SELECT day FROM spend_days")
    assert row["day"] in ("2030-01-01", (date(2030, 1, 1) - date(1970, 1, 1)).days)


async def test_a_month_holds_its_days_and_no_others(world: World) -> None:
    for n in range(62):  # January, February, and a little of March
        await turn_of(world, 1)
        if n % 3 == 0:
            await roll_up(world)
        day, month = world.clock.now(), world.clock.now().replace(day=1)
        assert await world.store.spend("", "shop", day, month) == Spend(1, day.day)
        world.clock.advance(DAY_S)
    year = await world.store.spend("", "shop", datetime(2030, 2, 28, tzinfo=UTC), FIRST)
    assert year == Spend(4, 62)


async def test_the_last_microsecond_of_a_day_is_of_that_day(world: World) -> None:
    world.clock.advance(DAY_S - 0.000001)
    await turn_of(world, 1)
    world.clock.advance(0.000001)
    await turn_of(world, 10)
    for _ in range(2):
        assert await spent(world) == Spend(10, 11)
        await roll_up(world)


@pytest.mark.parametrize(
    "start", [FIRST + timedelta(seconds=1), FIRST.replace(tzinfo=None), FIRST - timedelta(hours=5)]
)
async def test_windows_begin_at_midnight(world: World, start: datetime) -> None:
    with pytest.raises(ValueError, match="midnight"):
        await world.store.spend("", "shop", start, FIRST)
    with pytest.raises(ValueError, match="midnight"):
        await world.store.spend("", "shop", FIRST, start)


# --- adding up


async def test_what_is_added_up_is_added_once_and_changes_no_sum(world: World) -> None:
    for tokens in (1, 10, 100):
        await turn_of(world, tokens)
    assert await roll_up(world) == 3
    assert await spent(world) == Spend(111, 111)
    before = await world.everything()
    assert await roll_up(world) == 0
    assert await world.everything() == before
    await turn_of(world, 1000)
    assert await spent(world) == Spend(1111, 1111)
    assert await roll_up(world) == 1
    assert await days(world) == {("", "shop"): 1111}
    assert await spent(world) == Spend(1111, 1111)


async def test_adding_up_takes_so_many_at_a_time_and_none_that_began_later(world: World) -> None:
    for _ in range(5):
        await turn_of(world, 1)
    world.clock.advance(60)
    until = world.clock.now()
    await turn_of(world, 1)
    counts = [await world.store.roll_up_spend(until, limit=2) for _ in range(4)]
    assert counts == [2, 2, 1, 0]
    assert await days(world) == {("", "shop"): 5}
    assert await spent(world) == Spend(6, 6)


async def test_a_call_that_is_open_is_added_up_once_it_is_settled(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    world.clock.advance(40 * DAY_S)
    assert await roll_up(world) == 0
    await owner.commit(model_call=SettledModelCall(answer_call(1), Usage(7)))
    assert await roll_up(world) == 1
    assert await world.store.spend("", "shop", FIRST, FIRST) == Spend(7, 7)
    assert await spent(world) == Spend(0, 0)


@pytest.mark.parametrize("measure", [Usage(), Usage(3, 4, 5, 6), Usage(10_000)])
async def test_what_is_measured_after_it_was_added_up_corrects_its_day(world: World, measure: Usage) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.fail()
    await turn_of(world, 1)
    assert await roll_up(world) == 2
    world.clock.advance(3 * DAY_S)
    late = SettledModelCall(answer_call(1), measure)
    assert await world.store.settle_model_call(said.turn_id or "", late)
    assert await world.store.settle_model_call(said.turn_id or "", late) is False
    assert await world.store.spend("", "shop", FIRST, FIRST) == Spend(measure.total + 1, measure.total + 1)
    assert await roll_up(world) == 0
    assert await days(world) == {("", "shop"): measure.total + 1}


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happens_in_between_the_sum_is_that_of_the_rows(world: World, seed: int) -> None:
    chance = random.Random(seed)
    open_: list[tuple[Owner, str]] = []
    failed: list[str] = []
    for _ in range(60):
        what = chance.choice(["start", "start", "commit", "fail", "late", "roll up", "roll up", "time"])
        if what == "start":
            said = await world.say(session=f"s{chance.random()}", tenant=chance.choice(["", "acme"]))
            owner = await world.own(said.session_id)
            await owner.start()
            open_.append((owner, said.turn_id or ""))
        elif what == "time":
            world.clock.advance(chance.choice([1, 3_600, DAY_S]))
        elif what == "roll up":
            await world.store.roll_up_spend(world.clock.now(), limit=chance.choice([1, 2, 100]))
        elif what == "late" and failed:
            usage = Usage(chance.randrange(99), chance.randrange(99))
            await world.store.settle_model_call(chance.choice(failed), SettledModelCall(answer_call(1), usage))
        elif open_:
            owner, turn_id = open_.pop(chance.randrange(len(open_)))
            if what == "commit":
                await owner.commit(model_call=SettledModelCall(answer_call(1), Usage(chance.randrange(99))))
            elif what == "fail":
                await owner.fail(estimate=Usage(chance.randrange(99)))
                failed.append(turn_id)
        await assert_sums(world)


async def assert_sums(world: World) -> None:
    rows = await world.peek(
        "SELECT tenant, input + output + cache_read + cache_write AS tokens FROM model_calls WHERE state <> 'open'"
    )
    sums = Counter[str]()
    for row in rows:
        sums[row["tenant"]] += row["tokens"]
    for tenant in ("", "acme"):
        assert (await world.store.spend(tenant, "shop", FIRST, FIRST)).month == sums[tenant]
