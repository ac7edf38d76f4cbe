"""An operator's hold: nothing starts and nobody comes while it lasts, but what is asked of the session is settled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.storage.operations import FailQueued, SettleMail
from insika.storage.rows import ApprovalDecision, Committed, TurnState, Verdict
from tests.store_world import ESTIMATE, LEASE_S, Owner, World, done


async def held(world: World, paused: bool = True) -> None:
    assert await world.store.set_paused("s", paused)


async def hand_over(owner: Owner) -> None:
    assert await owner.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)


async def idle(world: World) -> Owner:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.commit()
    return await owner.look()


async def test_a_hold_counts_as_mail_and_is_nothing_urgent(world: World) -> None:
    await world.say()
    before = await world.session()
    await held(world)
    assert await world.session() == replace(before, paused=True, mail_seq=2)
    assert (await world.say("two")).position == 3
    await held(world, False)
    assert (await world.session()).mail_seq == 4


@pytest.mark.parametrize("paused", [False, True])
async def test_saying_it_again_changes_nothing(world: World, paused: bool) -> None:
    await world.say()
    await held(world)
    await held(world, paused)
    before = await world.everything()
    await held(world, paused)
    assert await world.everything() == before


@pytest.mark.parametrize(("name", "tenant"), [("t", ""), ("s", "acme")])
async def test_a_session_that_does_not_exist_is_not_held(world: World, name: str, tenant: str) -> None:
    await world.say()
    before = await world.everything()
    assert not await world.store.set_paused(name, True, tenant=tenant)
    assert await world.everything() == before


async def test_a_tenant_s_session_is_held_alone(world: World) -> None:
    await world.say()
    await world.say(tenant="acme")
    assert await world.store.set_paused("s", True, tenant="acme")
    assert not (await world.session()).paused
    theirs = await world.store.session("s", tenant="acme")
    assert theirs is not None
    assert theirs.paused


# --- what it stops


async def test_no_turn_starts_although_the_owner_has_seen_the_hold(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await held(world)
    before = await world.everything()
    assert await owner.start() is None
    await owner.look()
    assert owner.loaded.session.paused
    assert await owner.start() is None
    assert await world.everything() == before
    await held(world, False)
    assert await owner.start() == 1


async def test_a_turn_nobody_survives_may_still_be_given_up(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await held(world)
    error = {"type": "worker_lost", "message": "its workers died"}
    lost = FailQueued(said.turn_id or "", (1,), "shop", "web", "bob", "customer", error)
    assert await world.store.fail_queued(owner.fence, owner.seen, lost)


async def test_a_boundary_is_not_crossed_past_an_unseen_hold(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await held(world)
    before = await world.everything()
    assert await owner.cross(done(0, "a"), nothing_unseen=True) is None
    assert await owner.release(world.clock.now()) is False
    assert await world.everything() == before


async def test_what_is_under_way_comes_to_its_end(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await held(world)
    assert (await owner.start_call()).moved
    assert (await owner.finish_call(done(0, "a"))).moved
    assert await owner.cross(done(0, "a")) is not None
    assert await owner.commit(2, release_due=NEVER) == Committed(released=True)


async def test_a_hold_that_the_owner_has_not_seen_keeps_the_lease_at_the_commit(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await held(world)
    assert await owner.commit(release_due=NEVER) == Committed(released=False)


async def test_a_held_turn_is_let_go_and_claimed_by_nobody(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await held(world)
    await hand_over(owner)
    session = await world.session()
    assert (session.turn_id, session.due_at, session.open_calls) == (owner.turn_id, DUE_NOW, 1)
    assert await world.store.claim(session.id, LEASE_S) is None
    assert await world.store.due_sessions() == ()
    assert await world.store.wake_due() == 0
    assert await world.store.next_due_at() == NEVER


async def test_a_held_session_whose_owner_died_is_claimed_by_nobody(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await held(world)
    world.clock.advance(LEASE_S + 1)
    assert await world.store.claim(owner.fence.session_id, LEASE_S) is None
    assert await world.store.due_sessions() == ()
    assert await world.store.next_due_at() == NEVER


async def test_a_claim_whose_answer_was_lost_is_answered_although_a_hold_came_since(world: World) -> None:
    said = await world.say()
    lease_id = "f" * 32
    first = await world.claim(said.session_id, lease_id=lease_id)
    await held(world)
    assert await world.store.claim(said.session_id, LEASE_S, lease_id=lease_id) == first


# --- messages are accepted all the same


@pytest.mark.parametrize("mode", ["followup", "collect", "steer", "interrupt"])
async def test_verdicts_are_those_of_any_other_time(world: World, mode: str) -> None:
    verdicts = []
    for session in ("s", "t"):
        first = await world.say("one", session=session)
        owner = await world.own(first.session_id)
        await owner.start()
        if session == "s":
            await held(world)
            await hand_over(owner)
        verdicts.append((await world.say("two", session=session, mode=mode)).verdict)
    assert verdicts[0] == verdicts[1]


async def test_a_full_mailbox_is_full(world: World) -> None:
    await world.say("one", mailbox_max=1)
    await held(world)
    assert (await world.say("two", mailbox_max=1)).verdict is Verdict.REJECTED


# --- but what is asked of the session is settled


async def test_a_held_session_is_claimed_for_a_withdrawal_and_for_nothing_else(world: World) -> None:
    said = await world.say("one", job_id="one")
    await world.say("two")
    await held(world)
    await world.store.withdraw("s", "one", request_id="r")
    assert await world.store.next_due_at() == DUE_NOW
    assert await world.store.due_sessions() == (said.session_id,)
    assert await world.store.wake_due() == 1
    owner = await world.own(said.session_id)
    assert await owner.start(positions=(2,)) is None
    mail = SettleMail((1,), "withdrawn", said.turn_id, TurnState.CANCELLED, control=(4,))
    assert await world.store.settle_mail(owner.fence, owner.seen, mail)
    await owner.look()
    assert await owner.release(DUE_NOW)
    assert await world.store.claim(said.session_id, LEASE_S) is None
    assert await world.store.due_sessions() == ()
    assert await world.store.next_due_at() == NEVER


async def test_a_held_turn_is_claimed_for_a_cancel_and_ended(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await held(world)
    await hand_over(owner)
    assert await world.store.cancel(owner.turn_id, request_id="r") is not None
    heir = await world.own(owner.fence.session_id)
    assert await heir.fail(state=TurnState.CANCELLED, outcome="cancelled", control=(3,))
    await heir.look()
    assert await heir.release()


async def test_each_request_that_is_open_lets_an_owner_come(world: World) -> None:
    said = await world.say("one", job_id="one")
    await held(world)
    await world.store.cancel(said.turn_id or "", request_id="r")
    await world.store.withdraw("s", "one", request_id="r2")
    for control in ((3,), (4,)):
        owner = await world.own(said.session_id)
        mail = SettleMail((), "withdrawn", None, TurnState.CANCELLED, control=control)
        assert await world.store.settle_mail(owner.fence, owner.seen, mail)
        await owner.look()
        assert await owner.release(DUE_NOW)
    assert await world.store.claim(said.session_id, LEASE_S) is None


async def test_a_decision_is_kept_for_after_the_hold(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await owner.look()
    await owner.ask("a")
    assert await owner.suspend()
    await held(world)
    decided = await world.store.decide(owner.approval("a").id, ApprovalDecision.APPROVED, by="ops")
    assert decided is not None
    assert decided.won
    assert await world.store.claim(owner.fence.session_id, LEASE_S) is None
    await held(world, False)
    assert (await world.own(owner.fence.session_id)).loaded.approvals == (decided.approval,)


# --- and afterwards


async def test_afterwards_it_is_due_when_a_message_waits(world: World) -> None:
    owner = await idle(world)
    await held(world)
    await world.say("two", mode="collect", debounce_ms=60_000)
    await owner.look()
    assert await owner.release(world.clock.now() + timedelta(seconds=60))
    await held(world, False)
    assert (await world.session()).due_at == DUE_NOW
    assert await world.store.due_sessions() == (owner.fence.session_id,)


async def test_afterwards_it_is_due_when_a_request_is_open(world: World) -> None:
    owner = await idle(world)
    await world.say("two", job_id="two")
    await owner.look()
    await world.store.withdraw("s", "two", request_id="r")
    await owner.start()
    await owner.commit()
    await held(world)
    await owner.look()
    assert await owner.release(world.clock.now() + timedelta(seconds=60))
    await held(world, False)
    assert (await world.session()).due_at == DUE_NOW


async def test_afterwards_a_waiting_turn_is_looked_at(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await owner.look()
    await owner.ask("a")
    assert await owner.suspend()
    await held(world)
    await held(world, False)
    assert (await world.session()).due_at == DUE_NOW


async def test_afterwards_nobody_comes_when_there_is_nothing_to_do(world: World) -> None:
    owner = await idle(world)
    await held(world)
    await owner.look()
    assert await owner.release()
    await held(world, False)
    assert (await world.session()).due_at == NEVER


async def test_a_held_turn_goes_on_where_it_stopped_and_counts_no_death(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a")
    await held(world)
    await hand_over(owner)
    world.clock.advance(3600)
    await held(world, False)
    heir = await world.own(owner.fence.session_id)
    assert (heir.claim.deaths, heir.loaded.session.parked_ms) == (0, 3_600_000)
    assert (await heir.start_call()).moved
    assert await heir.cross(done(0, "a")) is not None
