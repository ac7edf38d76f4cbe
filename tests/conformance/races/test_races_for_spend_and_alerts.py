"""Many look at what was spent, two clocks add it up, costs arrive late, and workers see the same level crossed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from insika.messages import Usage
from insika.storage.operations import NewAlert, SettledModelCall
from insika.storage.port import StoreRefused, StoreUnavailable
from insika.storage.rows import Begun, Spend
from tests.race_world import Altered, Race, naive, variants
from tests.store_world import ESTIMATE, Owner, alert, answer_call

FIRST = datetime(2030, 1, 1, tzinfo=UTC)
LATER = datetime(2031, 1, 1, tzinfo=UTC)
MEASURE = Usage(1_000)

UNLOCKED = naive("spend/roll_up", (" FOR NO KEY UPDATE SKIP LOCKED", ""), ("AND NOT m.rolled_up", ""))
AS_SEEN = naive(
    "spend/roll_up",
    (" FOR NO KEY UPDATE SKIP LOCKED", ""),
    ("SELECT turn_id, step", "SELECT input + output + cache_read + cache_write AS tokens, turn_id, step"),
    ("m.input + m.output + m.cache_read + m.cache_write AS tokens", "due.tokens"),
)
"""Adds what the row held when the statement began."""
CHECKED_FIRST = naive("turns/start", ("insika_raise(", "raise_what_is_not_there("))
"""Looks whether the alert was raised, and then raises it."""
RAISE_WHAT_IS_NOT_THERE = """
CREATE OR REPLACE FUNCTION raise_what_is_not_there(asked json, of_turn text) RETURNS SETOF text LANGUAGE sql AS $$
  INSERT INTO alerts (key, raised_at)
  SELECT a.key, insika_now() FROM json_to_recordset(asked) AS a (key text)
  WHERE NOT EXISTS (SELECT FROM alerts WHERE alerts.key = a.key)
  RETURNING key
$$
"""


IN_ANY_ORDER = naive("alerts/raise", ("insika_raise(", "raise_in_any_order("))
RAISE_IN_ANY_ORDER = """
CREATE OR REPLACE FUNCTION raise_in_any_order(asked json, of_turn text) RETURNS SETOF text LANGUAGE sql AS $$
  INSERT INTO alerts (key, raised_at) SELECT a.key, insika_now() FROM json_to_recordset(asked) AS a (key text)
  ON CONFLICT (key) DO NOTHING
  RETURNING key
$$
"""


async def failed(race: Race) -> Owner:
    """The owner of a turn that failed, whose model call is estimated."""
    owner = await race.running()
    await owner.fail()
    return owner


async def spent(race: Race) -> int:
    return (await race.world.store.spend("", "shop", FIRST, FIRST)).month


async def in_days(race: Race) -> int:
    rows = await race.world.peek("SELECT coalesce(sum(tokens), 0) AS tokens FROM spend_days")
    return int(rows[0]["tokens"])


# --- adding up


@variants(UNLOCKED)
async def test_two_clocks_add_each_call_once(race: Race, statement: Altered, lost: bool) -> None:
    await failed(race)

    def adding() -> asyncio.Future[tuple[int, int]]:
        return asyncio.ensure_future(
            race.overlap(lambda held: held.store.roll_up_spend(LATER), race.store(statement).roll_up_spend(LATER))
        )

    if lost:
        with pytest.raises(StoreRefused, match="added up once"):  # the guard behind the statement stops it
            await adding()
    else:
        assert await adding() == (1, 0)
    assert await spent(race) == await in_days(race) == ESTIMATE.total


@variants(AS_SEEN)
async def test_what_is_being_measured_is_added_as_it_is_measured(race: Race, statement: Altered, lost: bool) -> None:
    owner = await failed(race)
    turn_id = (await race.world.store.turns(owner.fence.session_id))[0].id
    measured, added = await race.overlap(
        lambda held: held.store.settle_model_call(turn_id, SettledModelCall(answer_call(1), MEASURE)),
        race.store(statement).roll_up_spend(LATER),
    )
    assert measured
    assert added == int(lost), "what is being settled is left for later"
    await race.world.store.roll_up_spend(LATER)
    assert (await spent(race) != MEASURE.total) is lost
    assert (await in_days(race) != MEASURE.total) is lost


async def test_a_measure_that_waits_for_the_adding_up_corrects_its_day(race: Race) -> None:
    owner = await failed(race)
    turn_id = (await race.world.store.turns(owner.fence.session_id))[0].id
    late = SettledModelCall(answer_call(1), MEASURE)
    added, measured = await race.overlap(
        lambda held: held.store.roll_up_spend(LATER), race.store().settle_model_call(turn_id, late)
    )
    assert (added, measured) == (1, True)
    assert await spent(race) == await in_days(race) == MEASURE.total


async def test_who_looks_while_it_is_added_up_sees_each_call_once(race: Race) -> None:
    await failed(race)
    async with race.holding() as held:
        assert await held.store.roll_up_spend(LATER) == 1
        assert await spent(race) == ESTIMATE.total
        assert await held.store.spend("", "shop", FIRST, FIRST) == Spend(ESTIMATE.total, ESTIMATE.total)
        await held.let_go()
    assert await spent(race) == ESTIMATE.total


async def test_adding_up_that_is_taken_back_has_added_nothing(race: Race) -> None:
    await failed(race)
    async with race.holding() as held:
        assert await held.store.roll_up_spend(LATER) == 1
        await held.take_back()
    assert (await spent(race), await in_days(race)) == (ESTIMATE.total, 0)
    assert await race.world.store.roll_up_spend(LATER) == 1


async def test_many_clocks_and_many_late_measures_come_to_one_sum(race: Race) -> None:
    turns = []
    for n in range(24):
        owner = await race.world.own((await race.world.say(session=f"s{n}")).session_id)
        await owner.start()
        turns.append(owner.turn_id)
        await owner.fail()
    store = race.store()
    await asyncio.gather(
        *(store.settle_model_call(turn_id, SettledModelCall(answer_call(1), MEASURE)) for turn_id in turns),
        *(store.roll_up_spend(LATER, limit=5) for _ in turns),
        *(store.settle_model_call(turn_id, SettledModelCall(answer_call(1), MEASURE)) for turn_id in turns),
    )
    while await store.roll_up_spend(LATER):
        pass
    assert await spent(race) == await in_days(race) == 24 * MEASURE.total


# --- alerts


@variants(CHECKED_FIRST)
async def test_two_turns_that_see_a_level_crossed_raise_it_once(race: Race, statement: Altered, lost: bool) -> None:
    await race.pool().rows(RAISE_WHAT_IS_NOT_THERE, {})
    first = await race.waiting()
    second = await race.world.own((await race.world.say(session="other")).session_id)

    def starting() -> asyncio.Future[tuple[Begun | None, Begun | None]]:
        opening = second.opening(alerts=(NewAlert("level"),))
        return asyncio.ensure_future(
            race.overlap(
                lambda held: held.store.start(first.fence, first.seen, first.opening(alerts=(NewAlert("level"),))),
                race.store(statement).start(second.fence, second.seen, opening),
            )
        )

    if lost:
        with pytest.raises(StoreRefused, match="alerts_pkey"):  # the guard stops it, and the turn with it
            await starting()
    else:
        assert await starting() == (Begun(1, frozenset({"level"})), Begun(1))


async def test_an_alert_whose_cause_is_taken_back_is_the_next_one_s(race: Race) -> None:
    first = await race.waiting()
    async with race.holding() as held:
        await held.store.start(first.fence, first.seen, first.opening(alerts=(alert("level"),)))
        raising = asyncio.ensure_future(race.store().raise_alerts([alert("level")]))
        assert await race.waits(raising)
        await held.take_back()
        assert await raising == {"level"}
    assert len(await race.world.deliveries()) == 1


async def test_ten_that_raise_the_same_raise_each_once(race: Race) -> None:
    stores = [race.store() for _ in range(10)]
    alerts = [alert("a"), alert("b"), alert("c")]
    raised = await asyncio.gather(
        *(store.raise_alerts(alerts if n % 2 else alerts[::-1]) for n, store in enumerate(stores))
    )
    assert sorted(key for keys in raised for key in keys) == ["a", "b", "c"]
    assert len(await race.world.deliveries()) == 3


@variants(IN_ANY_ORDER)
async def test_who_raises_several_waits_for_nobody_that_waits_for_it(
    race: Race, statement: Altered, lost: bool
) -> None:
    """One holds a key, two want it and another; then it is free. Out of order, each of the two may get one of them."""
    await race.pool().rows(RAISE_IN_ANY_ORDER, {})
    first, second = race.store(statement), race.store(statement)
    deadlocks = 0
    for n in range(12):
        one, two = NewAlert(f"{n} a"), NewAlert(f"{n} b")
        async with race.holding() as held:
            await held.store.raise_alerts([two])
            backwards = asyncio.ensure_future(first.raise_alerts([two, one]))
            await race.waits(backwards)
            forwards = asyncio.ensure_future(second.raise_alerts([one, two]))
            await race.waits(forwards, others=1)
            await held.take_back()
        answers = await asyncio.gather(backwards, forwards, return_exceptions=True)
        deadlocks += sum(isinstance(answer, StoreUnavailable) for answer in answers)
        if deadlocks:
            break
        assert sorted(key for answer in answers if not isinstance(answer, BaseException) for key in answer) == [
            one.key,
            two.key,
        ]
    assert bool(deadlocks) is lost
