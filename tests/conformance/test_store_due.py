"""Which sessions want an owner, how often they are named, and until when a clock may sleep."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

from insika.clock import DUE_NOW, NEVER
from tests.store_world import ESTIMATE, LEASE_S, World


async def test_due_sessions_are_named_oldest_first_and_at_most_as_many_as_asked(world: World) -> None:
    late = await world.say(session="late", mode="collect", debounce_ms=2000)
    soon = await world.say(session="soon", mode="collect", debounce_ms=1000)
    now = await world.say(session="now")
    assert await world.store.due_sessions() == (now.session_id,)
    world.clock.advance(10)
    assert await world.store.due_sessions(2) == (now.session_id, soon.session_id)
    assert await world.store.due_sessions() == (late.session_id,)


async def test_a_session_is_named_again_after_5_s_doubling_up_to_60(world: World) -> None:
    said = await world.say()
    named: list[datetime] = []
    for _ in range(600):
        if await world.store.due_sessions():
            named.append(world.clock.now())
        world.clock.advance(0.5)
    gaps = [(after - before).total_seconds() for before, after in itertools.pairwise(named)]
    assert gaps == [5, 10, 20, 40, 60, 60, 60]
    assert said.session_id


async def test_a_claim_clears_the_nudges(world: World) -> None:
    said = await world.say()
    for _ in range(3):
        world.clock.advance(100)
        await world.store.due_sessions()
    owner = await world.own(said.session_id)
    assert await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
    assert await world.store.due_sessions() == (said.session_id,)
    world.clock.advance(5)
    assert await world.store.due_sessions() == (said.session_id,)


async def test_two_sweeps_at_once_name_each_session_once(world: World) -> None:
    for n in range(5):
        await world.say(session=f"s{n}")
    first, second = await world.store.due_sessions(3), await world.store.due_sessions(5)
    assert len({*first, *second}) == len(first) + len(second) == 5


async def test_a_clock_set_back_does_not_silence_a_session(world: World) -> None:
    said = await world.say()
    await world.store.due_sessions()
    world.clock.jump(-300)
    assert await world.store.next_due_at() <= world.clock.now()
    assert await world.store.due_sessions() == (said.session_id,)


async def test_an_owned_session_is_not_named_until_its_lease_is_over(world: World) -> None:
    said = await world.say()
    await world.own(said.session_id)
    assert await world.store.due_sessions() == ()
    world.clock.advance(LEASE_S + 1)
    assert await world.store.due_sessions() == (said.session_id,)


async def test_with_nothing_to_do_a_clock_may_sleep_for_good(world: World) -> None:
    assert await world.store.next_due_at() == NEVER


async def test_a_clock_is_told_when_the_next_session_is_due(world: World) -> None:
    await world.say(session="a", mode="collect", debounce_ms=2000)
    await world.say(session="b", mode="collect", debounce_ms=1000)
    assert await world.store.next_due_at() == world.clock.now() + timedelta(seconds=1)
    await world.say(session="c")
    assert await world.store.next_due_at() == DUE_NOW


async def test_a_clock_that_named_what_is_due_may_sleep_until_it_would_name_it_again(world: World) -> None:
    await world.say()
    await world.store.due_sessions()
    assert await world.store.next_due_at() == world.clock.now() + timedelta(seconds=5)
    world.clock.advance(5)
    assert await world.store.due_sessions() != ()
    assert await world.store.next_due_at() == world.clock.now() + timedelta(seconds=10)


async def test_a_clock_is_told_when_a_lease_runs_out(world: World) -> None:
    said = await world.say()
    await world.own(said.session_id)
    due = await world.store.next_due_at()
    assert timedelta(0) <= due - (world.clock.now() + timedelta(seconds=LEASE_S)) <= timedelta(milliseconds=1)
    world.clock.advance((due - world.clock.now()).total_seconds())
    assert await world.store.due_sessions() == (said.session_id,)


async def test_a_paused_session_wakes_no_clock(world: World) -> None:
    await world.say()
    await world.store.set_paused("s", True)
    assert await world.store.next_due_at() == NEVER


async def test_a_clock_is_told_of_the_next_delivery(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.commit(release_due=NEVER)
    assert await world.store.next_due_at() == world.clock.now()
