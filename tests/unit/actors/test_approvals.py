"""Calls that a person must approve: asked for, waited for without an owner, decided, and run once or not at all."""

from __future__ import annotations

import pytest

from insika.agents.profile import load_profile
from insika.storage.rows import ApprovalDecision, CallState, TurnState, Verdict
from insika.testing import Call, Calls, Rule, Say, Script
from tests.actor_world import LEASE_S, Gate, Process, profile

THREE = Calls([Call("pay", {"n": 1}), Call("look", {"n": 2}), Call("pay", {"n": 3}), Call("pay", {"n": 4})])
SCRIPT = Script(
    rules=[
        Rule([THREE, Say("All paid.")], when="three"),
        Rule([Calls([Call("pay", {"n": 1}), Call("look", {"n": 2})]), Say("Paid.")], when="pay"),
    ],
    afterwards=Say("Said."),
)


def careful(mode: str = "followup", **limits) -> dict:
    return profile(approvals_required=["pay"], limits={"queue_mode": mode, **limits})


async def waiting(place_for, text: str = "pay", *profiles, **limits):
    place = place_for(SCRIPT)
    process = await place.process(*(profiles or (careful(**limits),)))
    accepted = await process.send(text, channel="web")
    await process.idle()
    return place, process, accepted


async def results(process: Process) -> list[str]:
    return [message.content for message in await process.messages() if message.role == "tool"]


async def at_rest(process: Process) -> None:
    row = await process.row()
    assert (row.waiting, row.turn_id, row.lease_id, row.open_calls, row.deaths) == (0, None, None, 0, 0)
    assert not [each for each in await process.approvals() if each.decision is None]


async def test_a_turn_waits_for_a_person_and_nobody_owns_it(place_for):
    place, process, accepted = await waiting(place_for)
    row = await process.row()
    assert (row.lease_id, row.turn_id, row.open_calls, row.deaths) == (None, accepted.turn_id, 2, 0)
    assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
    assert [(name, n) for name, n, _ in place.shop.ran] == [("look", 2)]
    (approval,) = await process.approvals()
    assert (approval.tool, approval.decision) == ("pay", None)
    assert row.due_at == approval.expires_at
    assert await process.sweep() == 0
    assert len(process.events.of("approval_requested")) == 1
    assert len(process.events.of("turn_suspended")) == 1


async def test_an_approved_call_runs_once_and_the_turn_goes_on(place_for):
    place, process, accepted = await waiting(place_for)
    assert (await process.approve()).won
    await process.idle()
    assert await process.answers() == ["Paid."]
    assert [(name, n) for name, n, _ in place.shop.ran] == [("look", 2), ("pay", 1)]
    assert len(process.model.requests) == 2
    assert (await process.turn(accepted.turn_id)).attempt == 2
    await at_rest(process)


async def test_a_rejected_call_does_not_run_and_the_model_is_told_why(place_for):
    place, process, _ = await waiting(place_for)
    await process.reject(0, "too dear for us")
    await process.idle()
    assert place.shop.count("pay") == 0
    assert "too dear for us" in (await results(process))[0]
    assert await process.answers() == ["Paid."]
    await at_rest(process)


async def test_a_decision_counts_once(place_for):
    place, process, _ = await waiting(place_for)
    assert (await process.approve()).won
    second = await process.reject(0, "no")
    assert (second.won, second.approval.decision) == (False, ApprovalDecision.APPROVED)
    await process.idle()
    third = await process.approve()
    assert not third.won
    assert place.shop.count("pay") == 1
    await at_rest(process)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
async def test_three_are_decided_one_by_one_each_time_by_another_process(place_for, order):
    place, process, accepted = await waiting(place_for, "three")
    assert len(await process.approvals()) == 3
    for nth, which in enumerate(order):
        assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
        assert place.shop.count("pay") == nth
        await process.die()
        process = await place.process(careful())
        await process.approve(which)
        await process.idle()

    assert place.shop.count("pay") == 3
    assert place.shop.count("look") == 1
    place.shop.once_each("pay", "look")
    assert await results(process) == ["pay 1 done", "look 2 done", "pay 3 done", "pay 4 done"]
    assert await process.answers() == ["All paid."]
    assert (await process.turn(accepted.turn_id)).attempt == 4
    await at_rest(process)


async def test_one_is_approved_one_rejected_and_one_expires(place_for):
    place, process, _ = await waiting(place_for, "three")
    await process.approve(0)
    await process.idle()
    await process.reject(1, "enough")
    await process.idle()
    place.clock.advance(3_600)
    await process.sweep()
    await process.idle()
    assert place.shop.count("pay") == 1
    decisions = [each.decision for each in await process.approvals()]
    assert decisions == [ApprovalDecision.APPROVED, ApprovalDecision.REJECTED, ApprovalDecision.EXPIRED]
    assert await process.answers() == ["All paid."]
    await at_rest(process)


@pytest.mark.parametrize(("after_s", "decided"), [(3_599, True), (3_600, False), (3_601, False)])
async def test_an_approval_expires_by_the_clock_of_the_store(place_for, after_s, decided):
    place, process, accepted = await waiting(place_for)
    place.clock.advance(after_s)
    answer = await process.approve()
    await process.idle()
    assert answer.won is decided
    assert place.shop.count("pay") == (1 if decided else 0)
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED
    await at_rest(process)


async def test_the_sweeper_finds_what_has_expired_as_a_session_that_is_due(place_for):
    place, process, _ = await waiting(place_for, "pay", careful(approval_timeout=60))
    place.clock.advance(59)
    assert await process.sweep() == 0
    place.clock.advance(1)
    assert await process.sweep() == 1
    await process.idle()
    assert [each.decision for each in await process.approvals()] == [ApprovalDecision.EXPIRED]
    assert place.shop.count("pay") == 0
    await at_rest(process)


async def test_an_approval_that_expires_before_its_call_begins_lets_nothing_run(place_for):
    place, process, _ = await waiting(place_for, "pay", careful(approval_timeout=60))

    async def oversleep(when: str, operation: str) -> None:
        if (when, operation) == ("before", "start_call"):
            process.store.hook = _nothing
            place.clock.jump(60)

    process.store.hook = oversleep
    await process.approve()
    await process.idle()
    assert place.shop.count("pay") == 0
    assert [each.decision for each in await process.approvals()] == [ApprovalDecision.EXPIRED]
    assert await process.answers() == ["Paid."]
    await at_rest(process)


async def test_a_plain_message_costs_a_waiting_turn_one_idle_claim(place_for):
    _, process, accepted = await waiting(place_for)
    before, counts = await process.row(), await process.counts()
    process.store.operations.clear()
    await process.send("hello")
    await process.idle()

    assert process.store.operations == ["accept", "claim", "load", "suspend"]
    assert {**await process.counts(), "mailbox": 1, "turns": 1} == {**counts, "mailbox": 1, "turns": 1}
    after = await process.row()
    assert (after.turn_id, after.due_at, after.lease_id) == (before.turn_id, before.due_at, None)
    turn = await process.turn(accepted.turn_id)
    assert turn.state is TurnState.WAITING
    assert process.events.of("turn_resumed") == []


@pytest.mark.parametrize("mode", ["followup", "collect", "steer", "interrupt"])
async def test_a_message_during_the_wait_follows_its_mode(place_for, mode):
    place, process, accepted = await waiting(place_for, "pay", careful(mode))
    sent = [await process.send(text, channel="web") for text in ("one", "two")]
    await process.idle()
    if mode != "interrupt":
        assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
        await process.approve()
        await process.idle()

    verdicts = {
        "followup": [Verdict.ACCEPTED, Verdict.ACCEPTED],
        "collect": [Verdict.ACCEPTED, Verdict.MERGED],
        "steer": [Verdict.STEERED, Verdict.STEERED],
        "interrupt": [Verdict.INTERRUPTING, Verdict.ACCEPTED],
    }
    assert [each.verdict for each in sent][:1] == verdicts[mode][:1]
    assert await process.said() == ["pay", "one", "two"]
    answers = {
        "followup": ["Paid.", "Said.", "Said."],
        "collect": ["Paid.", "Said."],
        "steer": ["Said."],  # to what was said last
        "interrupt": ["Said.", "Said."],
    }
    assert await process.answers() == answers[mode]
    if mode != "interrupt":
        assert [each.verdict for each in sent] == verdicts[mode]
        assert place.shop.count("pay") == 1
    await at_rest(process)


async def test_an_interrupt_settles_what_waits_as_not_given_and_its_own_turn_runs_next(place_for):
    place, process, accepted = await waiting(place_for)
    (approval,) = await process.approvals()
    interrupt = await process.send("stop", queue_mode="interrupt")
    await process.idle()

    assert interrupt.verdict is Verdict.INTERRUPTING
    assert (await process.turn(accepted.turn_id)).error["type"] == "interrupted"
    (settled,) = await process.approvals()
    assert settled.decision is ApprovalDecision.VOID
    assert (await process.turn(interrupt.turn_id)).state is TurnState.COMPLETED
    assert await process.said() == ["pay", "stop"]
    late = await process.control.decide(approval.id, ApprovalDecision.APPROVED, by="ann")
    await process.idle()
    assert not late.won
    assert place.shop.count("pay") == 0
    (told,) = process.events.of("approval_decided")
    assert (told.turn_id, told.data["decision"]) == (accepted.turn_id, "void")
    await at_rest(process)


@pytest.mark.parametrize("decided_first", [True, False])
async def test_a_cancel_of_a_waiting_turn_ends_it_whatever_was_decided(place_for, decided_first):
    place, process, accepted = await waiting(place_for)
    await process.runtime.drain(0)
    if decided_first:
        await process.approve()
    await process.cancel(accepted.turn_id)
    heir = await place.process(careful())
    await heir.sweep()
    await heir.idle()

    assert (await heir.turn(accepted.turn_id)).state is TurnState.CANCELLED
    assert place.shop.count("pay") == 0
    assert len(await results(heir)) == 2
    await heir.send("hello")
    await heir.idle()
    assert await heir.answers() == ["Said."]
    await at_rest(heir)


async def test_which_calls_need_a_person_is_read_as_it_is_now(place_for):
    place = place_for(SCRIPT)
    process = await place.process(profile())

    async def grow_careful(when: str, operation: str) -> None:
        if (when, operation) == ("before", "append"):
            process.store.hook = _nothing
            await process.configuration.apply_profiles([load_profile(careful(), "test")], from_file=False)
            await process.configuration.refresh()

    process.store.hook = grow_careful
    accepted = await process.send("pay")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
    assert place.shop.count("pay") == 0


async def test_what_a_person_was_asked_is_answered_also_when_nobody_need_be_asked_any_more(place_for):
    place, process, accepted = await waiting(place_for)
    await process.configuration.apply_profiles([load_profile(profile(), "test")], from_file=False)
    await process.configuration.refresh()
    await process.send("hello")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
    assert place.shop.count("pay") == 0
    await process.approve()
    await process.idle()
    assert place.shop.count("pay") == 1


async def test_a_tool_that_is_denied_meanwhile_does_not_run_although_it_was_approved(place_for):
    place, process, accepted = await waiting(place_for)
    denied = profile(approvals_required=["pay"], tools_deny=["pay"])
    await process.configuration.apply_profiles([load_profile(denied, "test")], from_file=False)
    await process.configuration.refresh()
    await process.approve()
    await process.idle()
    assert place.shop.count("pay") == 0
    calls = await process.store.real.calls(accepted.turn_id)
    assert [call.state for call in calls] == [CallState.NOT_RUN, CallState.DONE]
    assert await process.answers() == ["Paid."]
    await at_rest(process)


async def test_a_hold_of_a_waiting_turn_keeps_what_was_decided_from_running(place_for):
    place, process, accepted = await waiting(place_for)
    await process.control.pause("s")
    await process.approve()
    await process.idle()
    assert place.shop.count("pay") == 0
    assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
    assert await process.sweep() == 0
    await process.control.resume("s")
    await process.idle()
    assert await process.answers() == ["Paid."]
    await at_rest(process)


async def test_a_decision_just_before_the_turn_is_suspended_is_not_overlooked(place_for):
    place = place_for(SCRIPT)
    process = await place.process(careful())

    async def decide(when: str, operation: str) -> None:
        if (when, operation) == ("before", "suspend"):
            process.store.hook = _nothing
            await process.approve()

    process.store.hook = decide
    await process.send("pay")
    await process.idle()
    assert place.shop.count("pay") == 1
    assert await process.answers() == ["Paid."]


async def test_a_call_is_approved_while_another_of_its_batch_still_runs(place_for):
    place = place_for(SCRIPT)
    place.shop.gates["look", 2] = gate = Gate()
    process = await place.process(careful())
    await process.send("pay")
    await gate.reached()
    await process.approve()
    gate.open()
    await process.idle()
    assert await process.answers() == ["Paid."]
    place.shop.once_each("pay", "look")


async def test_an_approved_call_whose_owner_dies_in_it_is_unknown_and_not_run_again(place_for):
    place, process, _ = await waiting(place_for)
    place.shop.gates["pay", 1] = gate = Gate()
    await process.approve()
    await gate.reached()
    await process.die()
    place.shop.gates.clear()
    heir = await place.process(careful())
    place.clock.advance(LEASE_S + 1)
    await heir.sweep()
    await heir.idle()
    assert place.shop.count("pay") == 1
    assert await heir.answers() == ["Paid."]


async def test_twenty_idle_claims_count_no_death_and_make_no_suspect(place_for):
    _, process, accepted = await waiting(place_for)
    for number in range(20):
        await process.send(f"hello {number}")
        await process.idle()
        assert (await process.row()).deaths == 0
    await process.approve()
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED
    assert len(await process.answers()) == 21


async def _nothing(when: str, operation: str) -> None:
    return None
