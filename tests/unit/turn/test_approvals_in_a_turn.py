"""A turn that needs a person: what is asked, what runs meanwhile, and what a person's word makes of a call."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted
from insika.clock import ManualClock
from insika.crash_points import CrashPoint
from insika.messages import assistant
from insika.ports import CallOutcome
from insika.storage.rows import ApprovalDecision, CallState
from insika.testing import Call, Calls, Say, Script
from insika.turn import sentences
from insika.turn.log import Answer, Failure, Superseded, Suspended
from tests.loop_doubles import FakeTool, Turn, at
from tests.strict import check_anthropic, check_openai

APPROVED, REJECTED = ApprovalDecision.APPROVED, ApprovalDecision.REJECTED
LIMITS = TurnLimits(approval_timeout_s=90.0)


def turn_of(*calls: Call, limits: TurnLimits = LIMITS, **more) -> Turn:
    named = [replace(call, id=f"c{index}") for index, call in enumerate(calls)]
    return Turn(Script([Calls(named), Say("Done.")]), limits=limits, **more)


async def waits(turn: Turn, *, fresh: bool = True) -> Turn:
    """Run it to where it waits for a person."""
    with pytest.raises(Suspended):
        await turn.run(fresh=fresh)
    assert turn.log.suspended
    assert turn.log.ended is None
    check_anthropic(turn.log.messages)
    check_openai(turn.log.messages)
    return turn


async def goes_on(turn: Turn) -> Turn:
    """Somebody loads it and runs it to its end."""
    return await turn.run(fresh=False)


def states(turn: Turn) -> list[str]:
    return [str(row.state) for row in turn.log.calls.values()]


def decisions(turn: Turn) -> list[ApprovalDecision | None]:
    return [row.decision for row in turn.log.approvals.values()]


def expire(turn: Turn) -> None:
    turn.log.now += timedelta(seconds=90)


async def test_the_others_run_and_are_recorded_before_the_turn_waits():
    turn = await waits(turn_of(Call("look"), Call("refund"), Call("pay"), Call("look", {"n": 1})))

    assert turn.tools.ran == ["c0", "c2", "c3"]
    assert states(turn) == ["done", "announced", "done", "done"]
    assert turn.results == []


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_what_is_approved_runs_once_and_what_ran_before_keeps_its_result(concurrency):
    limits = replace(LIMITS, tool_concurrency=concurrency)
    turn = await waits(turn_of(Call("look"), Call("refund"), Call("ship"), limits=limits))
    turn.log.decide("c1", APPROVED)
    turn.log.decide("c2", APPROVED)
    await goes_on(turn)

    assert turn.tools.ran == ["c0", "c1", "c2"]
    assert turn.log.started == ["c1", "c2"]
    assert turn.results == ["result of c0", "result of c1", "result of c2"]
    assert isinstance(turn.log.ended, Answer)


async def test_people_are_told_what_is_asked_but_not_the_arguments():
    turn = await waits(turn_of(Call("refund", {"secret": "swordfish"}), Call("look"), Call("ship")))

    requested = [data for type, data in turn.emit.events if type == "approval_requested"]
    assert requested == [
        {
            "approval_id": turn.log.approvals[call_id].id,
            "call_id": call_id,
            "tool": tool,
            "step": 1,
            "expires_in_s": 90.0,
        }
        for call_id, tool in (("c0", "refund"), ("c2", "ship"))
    ]
    assert turn.event("turn_suspended") == {"approvals": 2, "step": 1}
    assert turn.events.index("approval_requested") < turn.events.index("tool_called")
    assert "swordfish" not in str(turn.emit.events)


async def test_all_questions_of_a_batch_are_asked_in_one_write_before_anything_runs():
    turn = turn_of(Call("pay"), Call("refund"), Call("ship"))
    ask, ran_then = turn.log.ask_approvals, []

    async def asked(asks):
        ran_then.append(([each.call_id for each in asks], list(turn.tools.ran)))
        await ask(asks)

    turn.log.ask_approvals = asked
    await waits(turn)

    assert ran_then == [(["c1", "c2"], [])]


async def test_a_rejected_call_is_answered_with_the_reason_and_the_turn_goes_on():
    turn = await waits(turn_of(Call("refund"), Call("look")))
    turn.log.decide("c0", REJECTED, "Out of warranty.")
    await goes_on(turn)

    assert turn.tools.ran == ["c1"]
    assert turn.results == [sentences.approval_rejected("Out of warranty."), "result of c1"]
    assert decisions(turn) == [REJECTED]
    assert turn.event("turn_suspended")["approvals"] == 1
    assert "approval_decided" not in turn.events


async def test_what_nobody_decides_in_time_is_not_run_and_is_told():
    turn = await waits(turn_of(Call("refund")))
    expire(turn)
    await goes_on(turn)

    assert turn.tools.ran == []
    assert turn.results == [sentences.APPROVAL_NOT_GIVEN]
    assert decisions(turn) == [ApprovalDecision.EXPIRED]
    assert turn.event("approval_decided") == {
        "approval_id": turn.log.approvals["c0"].id,
        "call_id": "c0",
        "tool": "refund",
        "decision": "expired",
    }


async def test_an_approval_does_not_outlive_its_time():
    turn = await waits(turn_of(Call("ship")))
    turn.log.decide("c0", APPROVED)
    expire(turn)
    await goes_on(turn)

    assert turn.tools.ran == turn.log.started == []
    assert turn.results == [sentences.APPROVED_TOO_EARLY]
    assert decisions(turn) == [ApprovalDecision.EXPIRED]


async def test_an_approval_that_runs_out_between_load_and_start_starts_nothing():
    turn = await waits(turn_of(Call("look"), Call("ship")))
    turn.log.decide("c1", APPROVED)
    with pytest.raises(Superseded):
        await run_late(turn)
    await goes_on(turn)

    assert turn.tools.ran == ["c0"]
    assert turn.results[1] == sentences.APPROVED_TOO_EARLY


async def run_late(turn: Turn) -> None:
    start = turn.log.start_call

    async def late(*args, **more):
        turn.log.start_call = start
        expire(turn)
        await start(*args, **more)

    turn.log.start_call = late
    await turn.run(fresh=False)


async def test_decided_one_by_one_each_runs_as_soon_as_it_may_and_the_turn_waits_again():
    turn = await waits(turn_of(Call("refund"), Call("ship"), Call("refund", {"n": 2})))
    turn.log.decide("c1", APPROVED)
    await waits(turn, fresh=False)
    assert (turn.tools.ran, states(turn)) == (["c1"], ["announced", "done", "announced"])
    assert turn.emit.events[-1] == ("turn_suspended", {"approvals": 2, "step": 1})

    turn.log.decide("c2", REJECTED)
    await waits(turn, fresh=False)
    assert states(turn) == ["announced", "done", "not_run"]

    turn.log.decide("c0", APPROVED)
    await goes_on(turn)
    assert turn.tools.ran == ["c1", "c0"]
    assert turn.results == ["result of c0", "result of c1", sentences.approval_rejected("")]
    assert turn.events.count("approval_requested") == 3


async def test_a_decision_that_comes_while_others_run_is_seen_before_the_turn_waits():
    turn = turn_of(Call("look"), Call("refund"))
    turn.tools.tools["look"] = FakeTool(
        outcome=lambda call: CallOutcome("seen" if turn.log.decide("c1", APPROVED) else "lost")
    )
    with pytest.raises(Superseded):
        await turn.run()
    await goes_on(turn)

    assert turn.results == ["seen", "result of c1"]


async def test_a_tool_that_is_denied_meanwhile_does_not_run_though_it_was_approved():
    turn = await waits(turn_of(Call("ship"), Call("refund")))
    turn.log.decide("c0", APPROVED)
    del turn.tools.tools["ship"], turn.tools.tools["refund"]
    await goes_on(turn)

    assert turn.tools.ran == []
    assert turn.results == [sentences.tool_not_available("ship"), sentences.tool_not_available("refund")]
    assert decisions(turn) == [ApprovalDecision.VOID, ApprovalDecision.VOID]


async def test_arguments_that_do_not_fit_any_more_do_not_run_though_they_were_approved():
    turn = await waits(turn_of(Call("ship")))
    turn.log.decide("c0", APPROVED)
    turn.tools.tools["ship"] = FakeTool(side_effect=True, needs_approval=True, refuses="x: expected a number")
    await goes_on(turn)

    assert turn.tools.ran == []
    assert turn.results == ["x: expected a number"]
    assert decisions(turn) == [ApprovalDecision.VOID]


async def test_an_approval_of_other_arguments_lets_nothing_run():
    turn = await waits(turn_of(Call("ship", {"to": "Anna"})))
    turn.log.decide("c0", APPROVED)
    turn.log.approvals["c0"] = replace(turn.log.approvals["c0"], arguments_hash="of something else")
    await goes_on(turn)

    assert turn.tools.ran == turn.log.started == []
    assert turn.results == [sentences.APPROVED_OTHERWISE]


async def test_nobody_is_asked_about_a_call_that_could_not_run():
    turn = turn_of(Call("refund"), Call("ship"), Call("fly"))
    turn.tools.tools["refund"] = FakeTool(needs_approval=True, refuses="x: expected a number")
    turn.tools.tools["ship"] = FakeTool(needs_approval=True)
    turn.tools.refuse = lambda call: CallOutcome("no object", is_error=True) if call.name != "fly" else None
    await turn.run()

    assert turn.log.approvals == {}
    assert turn.results == ["no object", "no object", sentences.tool_not_available("fly")]


async def test_a_tool_that_has_come_to_need_approval_is_asked_about_before_it_runs():
    turn = turn_of(Call("pay"), Call("look"))

    def die():
        turn.tools.tools["pay"] = FakeTool(side_effect=True, needs_approval=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await turn.run(crash=at(CrashPoint.STEP_APPENDED, die))
    await waits(turn, fresh=False)

    assert turn.tools.ran == ["c1"]
    assert list(turn.log.approvals) == ["c0"]


async def test_an_approved_call_is_written_as_started_also_where_nobody_knew_of_it_when_it_was_announced():
    turn = turn_of(Call("look"))

    def die():
        turn.tools.tools["look"] = FakeTool(needs_approval=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await turn.run(crash=at(CrashPoint.STEP_APPENDED, die))
    await waits(turn, fresh=False)
    turn.log.decide("c0", APPROVED)
    await goes_on(turn)

    assert not turn.log.calls[1, 0].side_effect
    assert turn.log.started == turn.tools.ran == ["c0"]


async def test_a_question_ends_with_the_call_that_the_rules_have_come_to_stop():
    """A turn's limits are frozen; only a log that another version wrote can bring this about."""
    turn = await waits(turn_of(Call("look"), Call("refund")))
    turn.limits = replace(LIMITS, max_tool_calls=1, on_exhausted=OnExhausted.SYNTHESIZE)
    recorded = []
    finish = turn.log.finish_call

    async def finish_call(step, result):
        recorded.append((result.call_id, result.approval))
        await finish(step, result)

    turn.log.finish_call = finish_call
    await goes_on(turn)

    assert recorded == [("c1", ApprovalDecision.VOID)]
    assert turn.results[1] == sentences.not_run("tool_limit")


async def test_a_tool_that_comes_to_need_approval_while_its_batch_runs_does_not_run_unasked():
    turn = turn_of(Call("look"), Call("pay"))

    def look(call):
        turn.tools.tools["pay"] = FakeTool(side_effect=True, needs_approval=True)
        return CallOutcome("looked")

    turn.tools.tools["look"] = FakeTool(outcome=look)
    with pytest.raises(Superseded):
        await turn.run()
    await waits(turn, fresh=False)

    assert turn.tools.ran == ["c0"]


async def test_whoever_was_asked_is_waited_for_though_the_tool_needs_no_approval_any_more():
    turn = await waits(turn_of(Call("refund")))
    turn.tools.tools["refund"] = FakeTool()
    await waits(turn, fresh=False)
    turn.log.decide("c0", APPROVED)
    await goes_on(turn)

    assert turn.tools.ran == turn.log.started == ["c0"]


async def test_an_approved_call_whose_end_nobody_saw_is_unknown_and_never_runs_twice():
    turn = await waits(turn_of(Call("refund"), Call("ship")))
    turn.log.decide("c0", APPROVED)

    def die():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await turn.run(fresh=False, crash=at(CrashPoint.CALL_RAN, die))
    await waits(turn, fresh=False)
    turn.log.decide("c1", APPROVED)
    await goes_on(turn)

    assert turn.tools.ran == ["c0", "c1"]
    assert turn.results == [sentences.UNKNOWN_OUTCOME, "result of c1"]


async def test_an_approved_call_that_exceeds_its_own_limit_is_unknown():
    turn = turn_of(Call("refund"))
    turn.tools.tools["refund"] = FakeTool(
        needs_approval=True, outcome=lambda call: CallOutcome("late", is_error=True, cut=True)
    )
    await waits(turn)
    turn.log.decide("c0", APPROVED)
    await goes_on(turn)

    assert turn.results == [sentences.UNKNOWN_OUTCOME]


async def test_a_call_that_ends_the_turn_waits_for_the_one_beside_it():
    turn = await waits(turn_of(Call("stop", {"say": "Bye."}), Call("ship")))
    assert states(turn) == ["done", "announced"]
    turn.log.decide("c1", APPROVED)
    await goes_on(turn)

    assert turn.tools.ran == ["c0", "c1"]
    assert isinstance(turn.log.ended, Answer)
    assert (turn.log.ended.content, turn.log.ended.outcome) == ("Bye.", "halted")


@pytest.mark.parametrize("on_exhausted", OnExhausted)
async def test_a_batch_that_the_rules_have_stopped_asks_nobody(on_exhausted):
    limits = replace(LIMITS, max_tool_calls=2, on_exhausted=on_exhausted)
    turn = await turn_of(Call("ship"), Call("look"), Call("look", {"n": 1}), limits=limits).run()

    assert turn.log.approvals == {}
    assert turn.tools.ran == ["c1"]
    assert turn.results == [sentences.not_run("tool_limit"), "result of c1", sentences.not_run("tool_limit")]
    assert isinstance(turn.log.ended, Answer if on_exhausted is OnExhausted.SYNTHESIZE else Failure)


async def test_a_call_that_is_taken_up_again_is_not_counted_again():
    limits = replace(LIMITS, max_tool_calls=3)
    turn = await waits(turn_of(Call("look"), Call("refund"), Call("ship"), limits=limits))
    for call_id in ("c1", "c2"):
        turn.log.decide(call_id, APPROVED)
        try:
            await turn.run(fresh=False)
        except Suspended:
            continue

    assert turn.tools.ran == ["c0", "c1", "c2"]
    assert turn.said == [sentences.budget_answer_now(0)]


async def test_what_people_write_during_the_wait_joins_behind_the_results():
    turn = await waits(turn_of(Call("refund")))
    turn.writes("and hurry")
    with pytest.raises(Suspended):
        await turn.run(fresh=False)
    turn.log.decide("c0", APPROVED)
    await goes_on(turn)

    assert [message.content for message in turn.log.messages[-3:]] == ["result of c0", "and hurry", "Done."]


async def test_a_text_that_the_guard_refuses_at_the_boundary_ends_and_those_behind_it_join():
    turn = turn_of(Call("look"))
    turn.writes("refused", "welcome")
    turn.log.refused.add(2)
    await turn.run()

    assert turn.said == ["welcome"]
    assert turn.log.mail == []


# --- the turn's time --------------------------------------------------------------------------------------------------


async def test_a_resumed_turn_with_no_time_left_fails_at_once_and_its_calls_are_answered():
    turn = await waits(turn_of(Call("look"), Call("refund"), Call("ship"), Call("pay")))
    turn.log.calls[1, 3] = replace(turn.log.calls[1, 3], state=CallState.ANNOUNCED, result=None)
    turn.log.decide("c1", APPROVED)
    turn.tools.ran.clear()
    turn.time_s = 0.0
    await goes_on(turn)

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "timeout"
    assert "300 s" in turn.log.ended.error.message
    assert turn.tools.ran == []
    assert turn.results == ["result of c0", *[sentences.not_run("timeout")] * 3]
    assert decisions(turn) == [ApprovalDecision.VOID, ApprovalDecision.VOID]
    assert len(turn.model.requests) == 1


async def test_a_resumed_turn_with_no_time_left_asks_no_model():
    turn = Turn(Script([Say("Done.")]), time_s=-5.0)
    await turn.run(fresh=False)

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "timeout"
    assert turn.model.requests == []


async def test_when_the_time_runs_out_while_the_others_run_nobody_is_waited_for():
    clock = ManualClock()
    turn = turn_of(Call("look"), Call("refund"), clock=clock)

    def slow(call):
        clock.advance(301)
        return CallOutcome("slow, and whole")

    turn.tools.tools["look"] = FakeTool(outcome=slow)
    await turn.run()

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "timeout"
    assert turn.results == ["slow, and whole", sentences.not_run("timeout")]
    assert decisions(turn) == [ApprovalDecision.VOID]
    assert not turn.log.suspended


async def test_a_call_that_needs_approval_is_announced_as_one_with_effects():
    turn = await waits(turn_of(Call("refund"), Call("look")))

    assert [row.side_effect for row in turn.log.calls.values()] == [True, False]
    assert turn.log.messages[-1] == assistant("", *turn.log.messages[-1].tool_calls)
