"""What is told when somebody asks something of a session: who is woken, who is signalled, which event there is."""

from __future__ import annotations

from insika.storage.rows import ApprovalDecision, Verdict
from insika.testing import Call, Rule, Say, Script
from tests.actor_world import Gate, profile

CAREFUL = profile(approvals_required=["pay"])
SCRIPT = Script(rules=[Rule([Call("pay", {"n": 1}), Say("Paid.")], when="pay")], afterwards=Say("Said."))


async def waiting(place_for):
    process = await place_for(SCRIPT).process(CAREFUL)
    accepted = await process.send("pay")
    await process.idle()
    return process, accepted


async def test_a_cancel_wakes_and_signals_the_owner(place_for):
    place = place_for(SCRIPT)
    place.shop.gates["pay", 1] = gate = Gate()
    process = await place.process()
    accepted = await process.send("pay")
    await gate.reached()
    asked = await process.control.cancel(accepted.turn_id, request_id="cancel")
    assert asked.verdict is Verdict.CONTROL
    assert process.signalled == [accepted.session_id]
    gate.open()
    await process.idle()

    assert await process.control.cancel(accepted.turn_id, request_id="another") is None
    assert await process.control.cancel("nobody", request_id="third") is None
    assert process.signalled == [accepted.session_id]


async def test_a_decision_is_told_of_once_and_of_no_text(place_for):
    process, accepted = await waiting(place_for)
    decided = await process.decide(0, ApprovalDecision.REJECTED, reason="too dear")
    again = await process.approve()
    await process.idle()

    assert (decided.won, again.won) == (True, False)
    assert again.approval.decision is ApprovalDecision.REJECTED
    (event,) = process.events.of("approval_decided")
    approval = decided.approval
    assert (event.turn_id, event.session, event.agent) == (accepted.turn_id, "s", "agent")
    assert event.data == {
        "approval_id": approval.id,
        "call_id": approval.call_id,
        "tool": "pay",
        "decision": "rejected",
    }
    assert process.signalled == []


async def test_what_no_store_can_hold_is_replaced_in_a_decision(place_for):
    process, _ = await waiting(place_for)
    decided = await process.decide(0, ApprovalDecision.REJECTED, reason="too\0dear \ud800")
    assert decided.approval.reason == "too\ufffddear \ufffd"


async def test_nothing_is_told_of_an_approval_that_does_not_exist(place_for):
    process, _ = await waiting(place_for)
    assert await process.control.decide("nothing", ApprovalDecision.APPROVED, by="ann") is None
    assert process.events.of("approval_decided") == []


async def test_a_withdrawal_wakes_the_owner_and_is_no_reason_to_signal(place_for):
    process, _ = await waiting(place_for)
    await process.send("later", id="later")
    await process.idle()
    claims = process.store.operations.count("claim")
    asked = await process.withdraw("later")
    await process.idle()
    assert asked.ended is None
    assert process.store.operations.count("claim") == claims + 1
    assert process.signalled == []

    assert await process.withdraw("unheard-of") is None
    too_late = await process.control.withdraw("s", "later", request_id="again")
    assert (too_late.control, too_late.ended) == (None, "withdrawn")
    assert process.store.operations.count("claim") == claims + 1


async def test_the_end_of_a_hold_wakes_the_owner(place_for):
    process = await place_for(SCRIPT).process()
    await process.send("hello")
    await process.idle()
    assert await process.control.pause("s")
    await process.send("once more")
    await process.idle()
    assert await process.answers() == ["Said."]
    assert await process.control.resume("s")
    await process.idle()
    assert await process.answers() == ["Said.", "Said."]
    assert not await process.control.pause("nowhere")
    assert not await process.control.resume("s", tenant="somebody")
