"""A turn that is let go on purpose: suspended until a person decides, or handed over; and how long that was."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from insika.clock import DUE_NOW
from insika.storage.operations import Release
from insika.storage.rows import ApprovalDecision, CallState, Ended, TurnState, Verdict
from tests.store_world import ESTIMATE, LEASE_S, Owner, World, assert_resumable, assert_valid_conversation, done

APPROVED, REJECTED = ApprovalDecision.APPROVED, ApprovalDecision.REJECTED
NOT_RUN = replace(done(0, "a", "was not run"), state=CallState.NOT_RUN, is_error=True)


async def asked_about(world: World, *call_ids: str, valid_s: float = 600.0) -> Owner:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append(*call_ids)
    await owner.look()
    assert await owner.ask(*call_ids, valid_s=valid_s)
    return owner


async def suspended(world: World, *call_ids: str, valid_s: float = 600.0) -> Owner:
    owner = await asked_about(world, *call_ids, valid_s=valid_s)
    assert await owner.suspend()
    return owner


async def turn_state(world: World, owner: Owner) -> tuple[TurnState, int]:
    turn = await world.store.turn(owner.turn_id)
    assert turn is not None
    return turn.state, turn.attempt


async def decide(owner: Owner, call_id: str, decision: ApprovalDecision = APPROVED) -> None:
    decided = await owner.store.decide(owner.approval(call_id).id, decision, by="ops")
    assert decided is not None
    assert decided.won


async def hand_over(owner: Owner) -> None:
    assert await owner.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)


# --- suspending


async def test_a_suspended_turn_waits_without_an_owner_and_keeps_its_batch(world: World) -> None:
    owner = await asked_about(world, "a", "b", valid_s=600)
    before = await world.session()
    assert await owner.suspend()
    assert await world.session() == replace(
        before, lease_id=None, lease_until=None, due_at=world.clock.now() + timedelta(seconds=600)
    )
    assert await turn_state(world, owner) == (TurnState.WAITING, 1)
    assert_resumable(await world.store.messages(owner.fence.session_id), await world.store.calls(owner.turn_id))
    assert (await world.session()).open_calls == 2


async def test_it_is_due_when_the_first_undecided_approval_expires(world: World) -> None:
    owner = await asked_about(world, "a", "b", "c", valid_s=30)
    world.clock.advance(10)
    await decide(owner, "a")
    await owner.look()
    assert await owner.suspend()
    assert (await world.session()).due_at == owner.approval("b").expires_at
    world.clock.advance(19.999)
    assert await world.store.claim(owner.fence.session_id, LEASE_S) is None
    assert await world.store.due_sessions() == ()
    assert await world.store.next_due_at() == owner.approval("b").expires_at
    world.clock.advance(0.001)
    assert await world.store.due_sessions() == (owner.fence.session_id,)
    assert await world.store.claim(owner.fence.session_id, LEASE_S) is not None


async def test_what_has_been_decided_no_longer_counts_for_when(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a", "b")
    await owner.look()
    await owner.ask("a", valid_s=30)
    await owner.ask("b", valid_s=40)
    await decide(owner, "a", REJECTED)
    await owner.look()
    assert await owner.suspend()
    assert (await world.session()).due_at == owner.approval("b").expires_at


@pytest.mark.parametrize("mode", ["followup", "steer", "interrupt"])
async def test_a_turn_is_not_suspended_past_unseen_mail(world: World, mode: str) -> None:
    owner = await asked_about(world, "a")
    await world.say("more", mode=mode)
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before
    await owner.look()
    assert await owner.suspend()


async def test_a_turn_is_not_suspended_past_a_cancel_nor_past_a_hold(world: World) -> None:
    owner = await asked_about(world, "a")
    await world.store.cancel(owner.turn_id, request_id="r")
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before
    await owner.look()
    await world.store.set_paused("s", True)
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before


@pytest.mark.parametrize("decision", [APPROVED, REJECTED])
async def test_a_turn_is_not_suspended_when_everything_is_decided(world: World, decision: ApprovalDecision) -> None:
    owner = await asked_about(world, "a")
    await decide(owner, "a", decision)
    await owner.look()
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before


async def test_a_turn_that_asked_nobody_is_not_suspended(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before
    await owner.append("a")
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before


async def test_a_turn_is_not_suspended_while_one_of_its_calls_runs(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a", "b")
    await owner.look()
    await owner.ask("a")
    await owner.start_call(1)
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before
    await owner.finish_call(done(1, "b"))
    assert await owner.suspend(), "results of the others are kept, and nothing runs any more"


async def test_an_approval_left_open_by_a_batch_that_is_closed_suspends_nothing(world: World) -> None:
    owner = await asked_about(world, "a")
    assert await owner.cross(NOT_RUN) is not None
    before = await world.everything()
    assert not await owner.suspend()
    assert await world.everything() == before


async def test_having_seen_the_mail_is_not_having_looked_at_what_is_urgent(world: World) -> None:
    owner = await asked_about(world, "a")
    await world.say("stop", mode="interrupt")
    seen = replace(owner.seen, mail=(await world.session()).mail_seq)
    assert not await world.store.suspend(owner.fence, seen, owner.turn_id)


async def test_another_turn_is_not_suspended(world: World) -> None:
    owner = await asked_about(world, "a")
    before = await world.everything()
    assert not await world.store.suspend(owner.fence, owner.seen, "another turn")
    assert not await world.store.resume_turn(owner.fence, owner.seen, "another turn")
    assert await world.everything() == before


# --- while it waits


async def test_a_claim_of_a_waiting_turn_is_no_death_and_no_attempt(world: World) -> None:
    owner = await suspended(world, "a")
    await decide(owner, "a")
    heir = await world.own(owner.fence.session_id)
    assert heir.claim.deaths == 0
    assert await turn_state(world, owner) == (TurnState.WAITING, 1)
    assert heir.loaded.turn is not None
    assert heir.loaded.turn.state is TurnState.WAITING
    assert [row.decision for row in heir.loaded.approvals] == [APPROVED]


async def test_a_turn_that_waited_runs_again_as_its_next_attempt(world: World) -> None:
    owner = await suspended(world, "a")
    await decide(owner, "a")
    heir = await world.own(owner.fence.session_id)
    assert await heir.resume()
    assert await turn_state(world, owner) == (TurnState.RUNNING, 2)
    before = await world.everything()
    assert await heir.resume(), "it runs already"
    assert await world.everything() == before


async def test_nothing_is_resumed_past_something_urgent(world: World) -> None:
    owner = await suspended(world, "a")
    await decide(owner, "a")
    heir = await world.own(owner.fence.session_id)
    await world.say("stop", mode="interrupt")
    before = await world.everything()
    assert not await world.store.resume_turn(heir.fence, heir.seen, heir.turn_id)
    assert await world.everything() == before
    await heir.look()
    assert await heir.resume()


async def test_a_plain_message_costs_one_idle_claim_and_waits(world: World) -> None:
    owner = await suspended(world, "a")
    due_at = (await world.session()).due_at
    said = await world.say("and?")
    assert (said.verdict, (await world.session()).due_at) == (Verdict.ACCEPTED, DUE_NOW)
    heir = await world.own(owner.fence.session_id)
    assert await heir.suspend()
    assert (await world.session()).due_at == due_at
    assert await turn_state(world, owner) == (TurnState.WAITING, 1)
    assert await world.store.claim(owner.fence.session_id, LEASE_S) is None
    assert (await world.session()).waiting == 1


async def test_several_are_decided_one_by_one_with_new_owners_in_between(world: World) -> None:
    owner = await suspended(world, "a", "b", "c")
    for index, call_id in enumerate("abc"):
        await decide(owner, call_id)
        heir = await world.own(owner.fence.session_id)
        assert await heir.resume()
        started = await heir.start_call(index, arguments_hash=heir.approval(call_id).arguments_hash)
        assert started.moved
        assert (await heir.finish_call(done(index, call_id))).moved
        if call_id != "c":
            assert await heir.suspend()
    results = [done(index, call_id) for index, call_id in enumerate("abc")]
    assert await heir.cross(*results) == 5
    assert await turn_state(world, owner) == (TurnState.RUNNING, 4)
    assert_valid_conversation(heir.loaded.log)


async def test_an_interrupt_of_a_waiting_turn_aims_at_it_and_ends_it(world: World) -> None:
    owner = await suspended(world, "a")
    said = await world.say("never mind", mode="interrupt")
    assert (said.verdict, (await world.session()).due_at) == (Verdict.INTERRUPTING, DUE_NOW)
    heir = await world.own(owner.fence.session_id)
    assert [row.cuts for row in heir.loaded.mail] == [owner.turn_id]
    assert await heir.fail(NOT_RUN, state=TurnState.CANCELLED, outcome="cancelled")
    assert await turn_state(world, owner) == (TurnState.CANCELLED, 1)
    summary = await world.store.approval(owner.approval("a").id)
    assert summary is not None
    assert summary.approval.decision is ApprovalDecision.VOID
    await heir.look()
    assert await heir.start() is not None


async def test_a_waiting_turn_can_be_cancelled(world: World) -> None:
    owner = await suspended(world, "a")
    control = await world.store.cancel(owner.turn_id, request_id="r")
    assert control is not None
    assert (control.verdict, control.turn_state) == (Verdict.CONTROL, TurnState.WAITING)
    heir = await world.own(owner.fence.session_id)
    assert await heir.fail(NOT_RUN, state=TurnState.CANCELLED, outcome="cancelled", control=(2,))
    assert [row.ended for row in await world.store.mail(owner.fence.session_id)] == [Ended.TURN, Ended.CONTROL]
    assert_valid_conversation(await world.store.messages(owner.fence.session_id))


async def test_no_other_turn_starts_while_one_waits(world: World) -> None:
    owner = await suspended(world, "a")
    await world.say("two")
    heir = await world.own(owner.fence.session_id)
    before = await world.everything()
    assert await heir.start() is None
    assert await world.everything() == before


async def test_an_owner_that_dies_with_a_waiting_turn_counts_as_dead(world: World) -> None:
    owner = await suspended(world, "a")
    await world.say("and?")
    await world.own(owner.fence.session_id)
    heir = await world.take_over(owner.fence.session_id)
    assert heir.claim.deaths == 1
    assert await turn_state(world, owner) == (TurnState.WAITING, 1)


async def test_a_waiting_turn_is_never_let_go_for_good(world: World) -> None:
    owner = await suspended(world, "a")
    await world.say("and?")
    heir = await world.own(owner.fence.session_id)
    assert not await heir.release()


# --- for how long


async def parked_ms(world: World) -> int:
    return (await world.session()).parked_ms


async def test_the_time_for_which_a_turn_waits_is_not_its_own(world: World) -> None:
    owner = await suspended(world, "a")
    world.clock.advance(90.25)
    assert await parked_ms(world) == 0
    await decide(owner, "a")
    world.clock.advance(0.5)
    heir = await world.own(owner.fence.session_id)
    assert heir.loaded.session.parked_ms == 90_750
    world.clock.advance(10)
    assert await parked_ms(world) == 90_750


async def test_a_handed_over_turn_stands_still_too_and_it_adds_up(world: World) -> None:
    owner = await suspended(world, "a")
    world.clock.advance(5)
    await decide(owner, "a")
    heir = await world.own(owner.fence.session_id)
    await heir.resume()
    world.clock.advance(2)
    await hand_over(heir)
    world.clock.advance(7)
    await world.own(owner.fence.session_id)
    assert await parked_ms(world) == 12_000


async def test_a_turn_whose_owner_died_does_not_stand_still(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await world.take_over(owner.fence.session_id)
    assert await parked_ms(world) == 0


async def test_a_claim_whose_answer_was_lost_counts_the_time_once(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await hand_over(owner)
    world.clock.advance(3)
    lease_id = "f" * 32
    await world.claim(owner.fence.session_id, lease_id=lease_id)
    world.clock.advance(3)
    await world.claim(owner.fence.session_id, lease_id=lease_id)
    assert await parked_ms(world) == 3_000


async def test_between_turns_nothing_is_parked(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await hand_over(owner)
    world.clock.advance(3)
    heir = await world.own(owner.fence.session_id)
    assert await parked_ms(world) == 0
    assert await heir.release(world.clock.now() + timedelta(seconds=1))
    world.clock.advance(3)
    await world.own(owner.fence.session_id)
    assert await parked_ms(world) == 0


async def test_the_next_turn_begins_with_no_parked_time(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await hand_over(owner)
    world.clock.advance(3)
    heir = await world.own(owner.fence.session_id)
    assert await parked_ms(world) == 3_000
    await heir.commit()
    await world.say("two")
    await heir.look()
    await heir.start()
    assert await parked_ms(world) == 0


async def test_a_clock_that_was_set_back_takes_no_time_away(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await hand_over(owner)
    world.clock.jump(-300)
    await world.own(owner.fence.session_id)
    assert await parked_ms(world) == 0


async def test_a_release_in_the_middle_of_a_turn_is_no_parking(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    assert await world.store.release(owner.fence, owner.seen, Release(world.clock.now()))
    world.clock.advance(3)
    await world.own(owner.fence.session_id)
    assert await parked_ms(world) == 0
