"""Why a model stopped, and what that makes of its message: cut-off calls, cut answers, and nothing at all."""

from __future__ import annotations

import pytest

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted
from insika.crash_points import CrashPoint
from insika.messages import NO_USAGE, ToolCall, Usage, assistant
from insika.ports import Stop, ThinkingDelta
from insika.storage.rows import CallState
from insika.turn import sentences
from insika.turn.log import Answer, Failure, Suspended
from tests.loop_doubles import Turn, at
from tests.spoken_models import SpokenModel, finished

CUT = Stop.LENGTH


def cut_off(*names: str, text: str = "") -> object:
    """Calls of these tools, the last one cut off."""
    *whole, last = [ToolCall(f"c{index}", name, {"n": index}) for index, name in enumerate(names)]
    return finished(assistant(text, *whole, ToolCall(last.id, last.name, cut_off=True)), stop=CUT)


def answered(turn: Turn) -> Answer:
    assert isinstance(turn.log.ended, Answer), turn.log.ended
    return turn.log.ended


async def test_a_call_that_the_output_limit_fell_into_is_not_run_and_the_model_is_told():
    turn = await Turn(SpokenModel([cut_off("look", "pay", "pay")], [finished()])).run()

    assert turn.tools.ran == ["c0", "c1"]
    assert turn.log.started == ["c1"]
    assert turn.results[2] == sentences.CUT_OFF
    assert turn.log.messages[4].is_error
    assert turn.log.calls[1, 2].state is CallState.NOT_RUN
    assert answered(turn).content == "Done."


@pytest.mark.parametrize("name", ["look", "pay", "put", "refund", "ship", "stop", "hang", "strict", "fly"])
async def test_it_is_run_by_no_door_and_nobody_is_asked_about_it(name):
    turn = await Turn(SpokenModel([cut_off(name)], [finished()])).run()

    assert turn.tools.ran == []
    assert turn.log.started == []
    assert turn.log.approvals == {}
    assert turn.results == [sentences.CUT_OFF]
    assert "tool_called" not in turn.events
    assert answered(turn).content == "Done."


async def test_the_calls_before_it_run_and_are_approved_as_ever():
    turn = Turn(SpokenModel([cut_off("refund", "refund")], [finished()]))
    with pytest.raises(Suspended):
        await turn.run()
    assert set(turn.log.approvals) == {"c0"}


async def test_it_counts_against_the_budget_and_is_no_circle():
    streams = [[cut_off("look")]] * 5
    renamed = [
        [finished(assistant("", ToolCall(f"id{index}", "look", cut_off=True)), stop=CUT)]
        for index, _ in enumerate(streams)
    ]
    limits = TurnLimits(max_tool_calls=4, max_tool_repeat=2)
    turn = await Turn(SpokenModel(*renamed), limits=limits).run()

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "tool_limit"
    assert turn.results == [sentences.CUT_OFF] * 4 + [sentences.not_run("tool_limit")]


async def test_a_resumed_turn_does_not_run_it_either():
    turn = Turn(SpokenModel([cut_off("pay")], [finished()]))

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    with pytest.raises(Died):
        await turn.run(crash=at(CrashPoint.STEP_APPENDED, die))
    await turn.run(fresh=False)
    assert turn.tools.ran == []
    assert turn.results == [sentences.CUT_OFF]


async def test_an_answer_that_was_cut_is_delivered_and_said_to_be_cut():
    turn = await Turn(SpokenModel([finished("And so it", stop=CUT)])).run()
    assert (answered(turn).content, answered(turn).outcome, answered(turn).cut_off) == ("And so it", "completed", True)


@pytest.mark.parametrize("stop", [Stop.END, Stop.CALLS, Stop.REFUSAL])
async def test_no_other_stop_changes_an_answer(stop):
    turn = await Turn(SpokenModel([finished("Well.", stop=stop)])).run()
    assert (answered(turn).content, answered(turn).outcome, answered(turn).cut_off) == ("Well.", "completed", False)


@pytest.mark.parametrize("stop", [Stop.LENGTH, Stop.REFUSAL])
@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_model_that_stopped_before_it_said_anything_fails_the_turn(stop, text):
    turn = await Turn(SpokenModel([ThinkingDelta("hm " * 9), finished(text, stop=stop)])).run()

    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "provider_fatal"
    assert ("params.max_tokens" in turn.log.ended.error.message) == (stop is Stop.LENGTH)
    (row,) = turn.log.model_calls.values()
    assert row.usage == Usage(10, 5)
    assert turn.event("provider_failure")["action"] == "fatal"


async def test_the_limit_that_was_set_is_named():
    limits = TurnLimits(max_output_tokens=64)
    turn = await Turn(SpokenModel([finished("", stop=CUT)]), limits=limits).run()
    assert isinstance(turn.log.ended, Failure)
    assert "64 output tokens" in turn.log.ended.error.message


@pytest.mark.parametrize("stop", [Stop.END, Stop.CALLS])
async def test_a_model_that_has_nothing_to_say_says_nothing(stop):
    turn = await Turn(SpokenModel([finished("", stop=stop)])).run()
    assert answered(turn).content == ""


async def test_what_a_turn_has_cost_is_counted_once_also_when_its_last_word_is_empty():
    limits = TurnLimits(max_tool_calls=1, on_exhausted=OnExhausted.SYNTHESIZE)
    calls = assistant("", ToolCall("a", "look", {"n": 1}), ToolCall("b", "look", {"n": 2}))
    turn = await Turn(SpokenModel([finished(calls)], [finished("")]), limits=limits).run()

    failure = turn.log.ended
    assert isinstance(failure, Failure)
    assert failure.error.type == "tool_limit"
    spent = sum((row.usage for row in turn.log.model_calls.values()), NO_USAGE)
    assert failure.usage + failure.estimate == spent == Usage(20, 10)
