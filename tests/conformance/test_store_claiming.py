"""Who gets a session, when, and what is known of the owners before."""

from __future__ import annotations

import asyncio

import pytest

from insika.clock import NEVER
from insika.storage.operations import Fence
from tests.store_world import ESTIMATE, LEASE_S, Owner, World, done


async def test_a_due_session_is_claimed_once(world: World) -> None:
    said = await world.say()
    claims = await asyncio.gather(*(world.store.claim(said.session_id, LEASE_S) for _ in range(20)))
    (claim,) = [claim for claim in claims if claim is not None]
    assert (claim.session_id, claim.epoch, claim.deaths) == (said.session_id, 1, 0)


async def test_each_claim_has_a_lease_of_its_own_and_the_next_epoch(world: World) -> None:
    said = await world.say()
    first = await world.own(said.session_id)
    second = await world.take_over(said.session_id)
    assert first.fence.lease_id != second.fence.lease_id
    assert (first.claim.epoch, second.claim.epoch) == (1, 2)


async def test_a_claim_whose_answer_was_lost_is_made_again_and_nobody_has_died(world: World) -> None:
    """Whoever asked has nothing but the lease's name; what the first claim took must not look like a dead owner's."""
    said = await world.say()
    await (await world.own(said.session_id)).start()
    world.clock.advance(LEASE_S + 1)
    lost = await world.claim(said.session_id, lease_id="mine")
    again = await world.claim(said.session_id, lease_id="mine", take_suspects=False)
    assert again == lost
    assert (again.lease_id, again.epoch, again.deaths) == ("mine", 2, 1)
    (turn,) = await world.store.turns(said.session_id)
    assert turn.attempt == 2

    world.clock.advance(LEASE_S - 1)
    assert await world.store.claim(said.session_id, LEASE_S) is None, "it runs from the second claim on"
    world.clock.advance(2)
    assert (await world.claim(said.session_id)).deaths == 2


async def test_a_claim_that_is_made_again_too_late_finds_another_s(world: World) -> None:
    said = await world.say()
    await world.claim(said.session_id, lease_id="mine")
    world.clock.advance(LEASE_S + 1)
    await world.claim(said.session_id, lease_id="another's")
    assert await world.store.claim(said.session_id, LEASE_S, lease_id="mine") is None


async def test_a_session_that_is_not_due_is_not_claimed(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.commit(release_due=NEVER)
    assert await world.store.claim(said.session_id, LEASE_S) is None
    world.clock.advance(10 * 365 * 24 * 3600)
    assert await world.store.claim(said.session_id, LEASE_S) is None


@pytest.mark.parametrize("session_id", [0, 4711])
async def test_there_is_no_claim_on_a_session_that_does_not_exist(world: World, session_id: int) -> None:
    assert await world.store.claim(session_id, LEASE_S) is None


async def test_a_paused_session_is_not_claimed_and_still_accepts(world: World) -> None:
    said = await world.say()
    assert await world.store.set_paused("s", True)
    assert await world.store.claim(said.session_id, LEASE_S) is None
    assert await world.store.due_sessions() == ()
    assert (await world.say("two")).position == 3, "the hold has a place of its own"
    assert await world.store.set_paused("s", False)
    assert await world.store.claim(said.session_id, LEASE_S) is not None


async def test_a_claim_leaves_the_due_time_so_that_a_dead_owner_s_session_is_due_by_itself(world: World) -> None:
    said = await world.say()
    await world.own(said.session_id)
    assert await world.store.due_sessions() == ()
    world.clock.advance(LEASE_S + 1)
    assert await world.store.due_sessions() == (said.session_id,)


async def test_a_lease_holds_until_its_end(world: World) -> None:
    said = await world.say()
    await world.claim(said.session_id)
    world.clock.advance(LEASE_S)
    assert await world.store.claim(said.session_id, LEASE_S) is None
    world.clock.advance(0.001)
    assert await world.store.claim(said.session_id, LEASE_S) is not None


async def test_a_process_may_leave_expired_leases_alone(world: World) -> None:
    said = await world.say()
    await world.claim(said.session_id)
    world.clock.advance(LEASE_S + 1)
    assert await world.store.claim(said.session_id, LEASE_S, take_expired=False) is None
    assert await world.store.claim(said.session_id, LEASE_S, take_expired=True) is not None


async def test_deaths_are_counted_and_suspects_are_taken_only_by_those_who_want_them(world: World) -> None:
    said = await world.say()
    deaths = []
    for _ in range(2):
        deaths.append((await world.claim(said.session_id, take_suspects=False)).deaths)
        world.clock.advance(LEASE_S + 1)
    assert deaths == [0, 1]
    assert await world.store.claim(said.session_id, LEASE_S, take_suspects=False) is None
    assert (await world.claim(said.session_id)).deaths == 2


async def test_starting_and_ending_a_turn_forget_the_deaths_and_progress_does_not(world: World) -> None:
    said = await world.say()
    await world.own(said.session_id)
    owner = await world.take_over(said.session_id)
    assert owner.claim.deaths == 1
    await owner.start()
    assert owner.loaded.session.deaths == 0
    owner = await world.take_over(said.session_id)
    await owner.append("c")
    owner = await world.take_over(said.session_id)
    await owner.cross(done(0, "c"))
    assert (await owner.look()).loaded.session.deaths == 2
    await owner.fail()
    assert (await owner.look()).loaded.session.deaths == 0


async def test_letting_go_counts_no_death(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
    assert (await world.own(said.session_id)).claim.deaths == 0


async def test_an_attempt_is_counted_for_each_owner_of_a_running_turn(world: World) -> None:
    said = await world.say()
    await world.own(said.session_id)
    owner = await world.take_over(said.session_id)
    await owner.start()
    assert owner.loaded.turn is not None
    assert owner.loaded.turn.attempt == 1
    owner = await world.take_over(said.session_id)
    assert owner.loaded.turn is not None
    assert owner.loaded.turn.attempt == 2


async def test_loading_asks_for_the_lease(world: World) -> None:
    said = await world.say()
    old = await world.own(said.session_id)
    await world.take_over(said.session_id)
    assert await world.store.load(old.fence) is None
    assert await world.store.load(Fence(said.session_id, "")) is None


async def test_a_load_gives_all_of_it_and_the_log_from_where_the_owner_stands(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a", "b")
    await owner.start_call(0)
    await world.say("two")
    loaded = (await owner.look()).loaded
    assert loaded.now == world.clock.now()
    assert [row.text for row in loaded.mail] == ["two"]
    assert loaded.turn is not None
    assert (loaded.turn.id, loaded.turn.limits, loaded.turn.started_seq) == (said.turn_id, {"max_tool_calls": 50}, 1)
    assert [(call.call_id, call.state) for call in loaded.calls] == [("a", "started"), ("b", "announced")]
    assert [(call.step, call.state) for call in loaded.model_calls] == [(1, "measured")]
    assert [entry.seq for entry in loaded.log] == [1, 2]
    later = await world.store.load(owner.fence, log_after=1)
    assert later is not None
    assert [entry.seq for entry in later.log] == [2]


async def test_history_before_load_from_is_kept_and_not_loaded(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.commit()
    await world.say("two")
    await owner.look()
    assert await owner.start(load_from=3) == 3
    assert [entry.seq for entry in owner.loaded.log] == [3]
    assert owner.loaded.session.load_from == 3
    assert [entry.seq for entry in await world.store.messages(said.session_id)] == [1, 2, 3]


@pytest.mark.parametrize("jump", [-300.0, 300.0])
async def test_a_clock_that_jumps_hastens_or_delays_a_takeover_and_breaks_no_rule(world: World, jump: float) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    world.clock.jump(jump)
    taken = await world.store.claim(said.session_id, LEASE_S)
    assert (taken is not None) == (jump > 0)
    if taken is None:
        assert await owner.append("c") == 2, "the lease's id decides who writes, not the clock"
    else:
        assert await owner.append("c") is None
        assert await (await Owner(world, taken).look()).append("c") == 2
    assert (await world.say("more")).position == 2


@pytest.mark.parametrize("jump", [-300.0, 300.0])
async def test_what_is_due_now_stays_due_when_the_clock_jumps(world: World, jump: float) -> None:
    said = await world.say()
    world.clock.jump(jump)
    assert await world.store.due_sessions() == (said.session_id,)
    assert await world.store.claim(said.session_id, LEASE_S) is not None
