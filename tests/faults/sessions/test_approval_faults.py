"""Faults 12 to 14: sessions that wait for a person are never locked, lose nothing, and an old word lets nothing run."""

from __future__ import annotations

import asyncio

import pytest

from insika.agents.profile import load_profile
from insika.storage.rows import ApprovalDecision, TurnState, Verdict
from insika.testing import Call, Calls, Rule, Say, Script
from tests.actor_world import profile

THREE = Calls([Call("pay", {"n": number}) for number in range(3)])
SCRIPT = Script(rules=[Rule([THREE, Say("Done.")], when="hello")], afterwards=Say("Ok."))
CAREFUL = profile(approvals_required=["pay"], limits={"tool_concurrency": 3})


async def waiting(place_for):
    place = place_for(SCRIPT)
    process = await place.process(CAREFUL)
    accepted = await process.send("hello", channel="web")
    await process.idle()
    assert len(await process.approvals()) == 3
    return place, process, accepted


@pytest.mark.parametrize("decided", [0, 1, 2])
@pytest.mark.parametrize("restart", ["before", "between", "after"])
async def test_a_conversation_is_not_locked_by_a_cancel_or_a_restart_while_it_waits(place_for, decided, restart):
    """Fault 12: three parallel approvals, some decided, a cancel, a restart, and then a plain message."""
    place, process, accepted = await waiting(place_for)
    if restart == "before":
        await process.die()
        process = await place.process(CAREFUL)
    for which in range(decided):
        await process.approve(which)
        await process.idle()
    if restart == "between":
        await process.die()
        process = await place.process(CAREFUL)
        process.deaf = True  # asked, and gone before anybody looked
    await process.cancel(accepted.turn_id)
    if restart != "before":
        await process.die()
        process = await place.process(CAREFUL)
    await process.send("and now?")
    await process.sweep()
    await process.idle()

    assert (await process.turn(accepted.turn_id)).state is TurnState.CANCELLED
    assert await process.answers() == ["Ok."]
    assert place.shop.count("pay") == decided
    assert [row.decision for row in await process.approvals()] == [
        *[ApprovalDecision.APPROVED] * decided,
        *[ApprovalDecision.VOID] * (3 - decided),
    ]
    row = await process.row()
    assert (row.turn_id, row.lease_id, row.waiting, row.open_calls) == (None, None, 0, 0)


@pytest.mark.parametrize("mode", ["followup", "collect", "steer", "interrupt"])
@pytest.mark.parametrize("restarted", [True, False])
async def test_a_plain_message_during_the_wait_is_not_lost(place_for, mode, restarted):
    """Fault 13: it waits its turn, joins at the boundary, or by an interrupt settles the approvals as not given."""
    place, process, accepted = await waiting(place_for)
    sent = await process.send("never mind", channel="web", queue_mode=mode)
    await process.idle()
    if restarted:
        await process.die()
        process = await place.process(CAREFUL)
    decisions = [await process.approve(which) for which in range(3)]
    await process.idle()

    assert await process.said() == ["hello", "never mind"]
    assert [each.won for each in decisions] == [mode != "interrupt"] * 3
    assert place.shop.count("pay") == (0 if mode == "interrupt" else 3)
    state = TurnState.CANCELLED if mode == "interrupt" else TurnState.COMPLETED
    assert (await process.turn(accepted.turn_id)).state is state
    assert (sent.verdict is Verdict.STEERED) is (mode == "steer")
    assert len(await process.turns()) == (1 if mode == "steer" else 2)


async def changed(process, by: str) -> None:
    """What an approval was given for is not so any more."""
    if by == "arguments":
        await process.write("""UPDATE tool_calls SET arguments = '{"n": 1000}' WHERE name = 'pay'""")
    elif by == "policy":
        denied = profile(approvals_required=["pay"], tools_deny=["pay"])
        await process.configuration.apply_profiles([load_profile(denied, "test")], from_file=False)
        await process.configuration.refresh()
    else:
        process.place.clock.jump(3_600)


@pytest.mark.parametrize("by", ["arguments", "policy", "time"])
@pytest.mark.parametrize("restarted", [True, False])
async def test_an_old_approval_lets_nothing_run_after_what_it_was_given_for_has_changed(place_for, by, restarted):
    """Fault 14: approved, and then the arguments, the policy or the time change before the call is dispatched."""
    place, process, accepted = await waiting(place_for)
    process.deaf = True
    for which in range(3):
        assert (await process.approve(which)).won
    if by == "policy" or not restarted:
        await changed(process, by)
    if restarted:
        await process.die()
        process = await place.process(CAREFUL if by != "policy" else profile(tools_deny=["pay"]))
        if by != "policy":
            await changed(process, by)
    process.deaf = False
    await process.sweep()
    await process.idle()

    assert place.shop.count("pay") == 0
    assert {call.state for call in await process.store.real.calls(accepted.turn_id)} == {"not_run"}
    row = await process.row()
    assert (row.turn_id, row.lease_id, row.open_calls) == (None, None, 0)
    assert not [each for each in await process.approvals() if each.decision in (None, ApprovalDecision.APPROVED)]


async def test_of_two_operators_at_once_one_is_first_and_the_other_is_told_so(place_for):
    """Fault 14: two operators at once."""
    place, process, _ = await waiting(place_for)
    other = await place.process(CAREFUL)
    for which in range(3):
        words = [process.approve(which), other.reject(which, "no")]
        decided = await asyncio.gather(*(words if which % 2 else reversed(words)))
        assert sorted(each.won for each in decided) == [False, True]
        assert decided[0].approval == decided[1].approval
    await asyncio.gather(process.idle(), other.idle())
    await process.sweep()
    await asyncio.gather(process.idle(), other.idle())

    approved = [each for each in await process.approvals() if each.decision is ApprovalDecision.APPROVED]
    assert place.shop.count("pay") == len(approved)
    place.shop.once_each("pay")
    assert await process.answers() == ["Done."]
