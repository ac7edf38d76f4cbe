"""What people look at, the jobs that came to nothing, and renewing a lease."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from insika.clock import DUE_NOW, NEVER
from insika.storage.operations import Fence
from insika.storage.rows import TurnState
from tests.store_world import ESTIMATE, LEASE_S, World


async def test_sessions_are_listed_newest_first_with_what_they_are_doing(world: World) -> None:
    first = await world.say(session="a")
    owner = await world.own(first.session_id)
    await owner.start()
    await world.say(session="a")
    await world.say(session="b", tenant="acme")
    b, a = await world.store.sessions()
    assert (b.tenant, b.name, b.waiting, b.turn_id, b.turn_state, b.owned, b.due_at) == (
        *("acme", "b", 1, None, None, False),
        DUE_NOW,
    )
    assert (a.name, a.waiting, a.turn_id, a.turn_state, a.owned, a.messages) == (
        *("a", 1, first.turn_id),
        *(TurnState.RUNNING, True, 1),
    )
    assert [row.name for row in await world.store.sessions(1)] == ["b"]
    assert [row.name for row in await world.store.sessions(tenant="")] == ["a"]
    world.clock.advance(LEASE_S + 1)
    assert [row.owned for row in await world.store.sessions()] == [False, False]


async def test_a_session_is_found_by_tenant_and_name(world: World) -> None:
    said = await world.say(session="a")
    row = await world.store.session("a")
    assert row is not None
    assert (row.id, row.tenant, row.name, row.paused, row.epoch) == (said.session_id, "", "a", False, 0)
    assert await world.store.session("A") is None


async def test_what_is_unknown_reads_as_nothing(world: World) -> None:
    assert await world.store.turn("x") is None
    assert await world.store.messages(1) == ()
    assert await world.store.mail(1) == ()
    assert await world.store.turns(1) == ()
    assert await world.store.calls("x") == ()
    assert await world.store.model_calls("x") == ()
    assert await world.store.sessions() == ()
    assert await world.store.set_paused("x", True) is False


async def test_the_latest_turns_are_listed_first(world: World) -> None:
    a, b, c = [str((await world.say(session=name)).turn_id) for name in ("x", "y", "x")]
    assert [turn.id for turn in await world.store.latest_turns()] == [c, b, a]
    assert [turn.id for turn in await world.store.latest_turns(2)] == [c, b]
    session = await world.store.session("x")
    assert session is not None
    assert [turn.id for turn in await world.store.latest_turns(session_id=session.id)] == [c, a]


async def test_turns_are_found_by_the_beginning_of_their_ids(world: World) -> None:
    for turn_id in ("ab-2", "ab-1", "ac", "b%", "\U0010fffd"):
        await world.say(turn_id=turn_id)
    assert await world.store.turn_ids("ab", 9) == ("ab-1", "ab-2")
    assert await world.store.turn_ids("a", 2) == ("ab-1", "ab-2")
    assert await world.store.turn_ids("b%", 9) == ("b%",)
    assert await world.store.turn_ids("%", 9) == ()
    assert await world.store.turn_ids("AB", 9) == ()
    assert len(await world.store.turn_ids("", 9)) == 5


async def test_turns_are_listed_in_the_order_of_their_messages(world: World) -> None:
    said = [await world.say(f"message {n}") for n in range(5)]
    assert [turn.id for turn in await world.store.turns(said[0].session_id)] == [accepted.turn_id for accepted in said]


async def test_a_job_that_could_not_be_read_is_kept_as_it_came(world: World) -> None:
    raw = b'\x00\xff{"session": '
    error = {"type": "invalid_job", "message": "not JSON", "field": "text"}
    number = await world.store.reject(raw, error, "amqp")
    kept = await world.store.rejected_job(number)
    assert kept is not None
    assert (kept.id, kept.raw, kept.error, kept.source, kept.requeued_at) == (number, raw, error, "amqp", None)
    assert kept.at == world.clock.now()


async def test_rejected_jobs_are_listed_newest_first(world: World) -> None:
    numbers = [await world.store.reject(b"x", {}, "http") for _ in range(3)]
    assert [kept.id for kept in await world.store.rejected_jobs()] == numbers[::-1]
    assert [kept.id for kept in await world.store.rejected_jobs(1)] == numbers[-1:]
    assert await world.store.rejected_job(999) is None


async def test_requeueing_is_marked(world: World) -> None:
    number = await world.store.reject(b"x", {}, "http")
    world.clock.advance(60)
    assert await world.store.mark_requeued(number)
    kept = await world.store.rejected_job(number)
    assert kept is not None
    assert kept.requeued_at == world.clock.now()
    assert await world.store.mark_requeued(999) is False


async def test_a_renewal_extends_the_leases_that_are_still_held(world: World) -> None:
    owners = [await world.own((await world.say(session=f"s{n}")).session_id) for n in range(3)]
    lost = owners[1]
    await world.store.release_for_drain(lost.fence, unknown_result="?", estimate=ESTIMATE)
    renewal = world.store.renewal()
    try:
        world.clock.advance(10)
        fences = [owner.fence for owner in owners]
        held = await asyncio.to_thread(renewal.renew, fences, LEASE_S)
        assert held.keys() == {owners[0].fence.lease_id, owners[2].fence.lease_id}
        session = await world.session("s0")
        assert session.lease_until == world.clock.now() + timedelta(seconds=LEASE_S)
        world.clock.advance(LEASE_S - 1)
        assert await world.store.claim(owners[0].fence.session_id, LEASE_S) is None
    finally:
        renewal.close()


async def test_a_renewal_revives_no_lease_that_was_taken_over(world: World) -> None:
    said = await world.say()
    old = await world.own(said.session_id)
    new = await world.take_over(said.session_id)
    renewal = world.store.renewal()
    try:
        assert renewal.renew([old.fence, Fence(999, "x")], LEASE_S) == {}
        assert renewal.renew([], LEASE_S) == {}
        assert renewal.renew([new.fence], LEASE_S) == {new.fence.lease_id: 0}
    finally:
        renewal.close()


async def test_an_expired_lease_that_nobody_took_may_be_renewed(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    world.clock.advance(LEASE_S + 60)
    renewal = world.store.renewal()
    try:
        assert renewal.renew([owner.fence], LEASE_S) == {owner.fence.lease_id: 0}
    finally:
        renewal.close()
    assert await world.store.claim(said.session_id, LEASE_S) is None
    assert await world.store.next_due_at() != NEVER
