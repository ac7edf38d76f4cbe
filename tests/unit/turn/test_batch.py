from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from insika.agents.limits import TurnLimits
from insika.clock import ManualClock
from insika.crash_points import no_crash
from insika.errors import LeaseLost
from insika.messages import NO_USAGE, ToolCall, assistant
from insika.ports import CallOutcome
from insika.storage.operations import AnnouncedCall, AppendStep, CallResult, ModelCallKey, SettledModelCall
from insika.storage.rows import CallRow, CallState
from insika.testing import RecordingEmit, Script, ScriptedModel
from insika.turn import sentences
from insika.turn.batch import BatchRunner
from insika.turn.call_results import closing_results
from insika.turn.in_memory import InMemoryTurnLog
from insika.turn.log import Superseded
from insika.turn.ports import TurnPorts
from insika.turn.rules import TurnRules
from insika.turn.state import OpenBatch
from insika.turn.times import TurnTimes
from tests.loop_doubles import FakeTool, FakeToolbox, identity, some_tools

FIRST = ModelCallKey(1, 1, "answer", "offline/script")


class Batch:
    """A batch of the named tools, announced in a log; `states` are those its calls have come to already."""

    def __init__(self, *names: str, states: Sequence[CallState] = (), tools: FakeToolbox | None = None) -> None:
        self.tools = tools or some_tools()
        self.log = InMemoryTurnLog("turn-1", FIRST.model, ["hello"])
        self.calls = tuple(ToolCall(f"c{index}", name, {"n": index}) for index, name in enumerate(names))
        self.states = list(states) + [CallState.ANNOUNCED] * (len(names) - len(states))
        self.emit = RecordingEmit()
        self.time_is_up = False
        self.concurrency = 1

    async def run(self, rules: TurnRules | None = None) -> tuple[CallResult, ...]:
        message = assistant("", *self.calls)
        announced = tuple(
            AnnouncedCall(
                call.id,
                call.name,
                call.arguments,
                (tool := self.tools.find(call.name)) is not None and tool.side_effect,
            )
            for call in self.calls
        )
        await self.log.append(AppendStep("turn-1", 1, message, announced, SettledModelCall(FIRST, NO_USAGE)))
        for index, state in enumerate(self.states):
            row = self.log.calls[1, index]
            result = (
                f"earlier {row.call_id}" if state in (CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN) else None
            )
            self.log.calls[1, index] = replace(row, state=state, result=result)
        turn = identity(TurnLimits(tool_concurrency=self.concurrency, approval_timeout_s=90.0))
        clock = ManualClock()
        ports = TurnPorts(ScriptedModel(Script([])), self.tools, self.log, self.emit, clock, no_crash, TurnTimes(clock))
        runner = BatchRunner(turn, ports, lambda: self.time_is_up)
        rules = rules or TurnRules(TurnLimits())
        rules.opened(message)
        return await runner.run(OpenBatch(1, message, tuple(self.log.calls.values())), rules)


async def test_what_has_a_result_is_not_run_again():
    batch = Batch("pay", "look", "pay", states=[CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN])
    results = await batch.run()

    assert batch.tools.ran == []
    assert [result.content for result in results] == ["earlier c0", "earlier c1", "earlier c2"]
    assert [result.state for result in results] == ["done", "unknown", "not_run"]


@pytest.mark.parametrize(
    ("name", "state", "runs"),
    [
        ("pay", CallState.UNKNOWN, 0),
        ("put", CallState.DONE, 1),
        ("gone", CallState.UNKNOWN, 0),
    ],
)
async def test_what_had_started_is_run_again_only_if_it_bears_it(name, state, runs):
    batch = Batch(name, states=[CallState.STARTED])
    (result,) = await batch.run()

    assert result.state is state
    assert len(batch.tools.ran) == runs
    assert batch.log.started == []


async def test_a_name_that_has_come_to_mean_a_side_effect_is_treated_as_one():
    """It meant nothing when it was announced, so nothing says there that it changes the world."""
    batch = Batch("late", "look")
    find = batch.tools.find
    announced: list[str] = []

    def allowed_later(name: str) -> FakeTool | None:
        if name == "late" and not announced:
            announced.append(name)
            return None
        return FakeTool(side_effect=True) if name == "late" else find(name)

    batch.tools.find = allowed_later
    batch.tools.tools["late"] = FakeTool(side_effect=True)
    await batch.run()

    assert not batch.log.calls[1, 0].side_effect
    assert batch.log.started == ["c0"]
    assert batch.tools.ran == ["c0", "c1"]


async def test_the_last_result_without_effects_waits_for_the_boundary():
    batch = Batch("look", "look")
    await batch.run()

    assert [row.state for row in batch.log.calls.values()] == ["done", "announced"]


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_side_effect_is_started_before_it_runs_and_recorded_after(concurrency):
    batch = Batch("pay", "pay", "pay")
    batch.concurrency = concurrency
    seen: list[str] = []

    async def look_at_the_log(call: ToolCall) -> None:
        row = next(row for row in batch.log.calls.values() if row.call_id == call.id)
        seen.append(row.state)

    batch.tools.gate = look_at_the_log
    await batch.run()

    assert seen == ["started"] * 3
    assert [row.state for row in batch.log.calls.values()] == ["done"] * 3


async def test_nothing_starts_once_the_lease_may_have_ended():
    batch = Batch("look", "pay")

    def lost() -> None:
        raise LeaseLost("gone")

    batch.log.may_start = lost
    with pytest.raises(LeaseLost):
        await batch.run()

    assert batch.tools.ran == []
    assert batch.log.started == []


async def test_after_news_for_one_call_those_that_run_end_and_no_other_begins():
    batch = Batch("look", "pay", "look", "look", "pay")
    batch.concurrency = 2
    first_may_end = asyncio.Event()

    async def wait_for_the_news(call: ToolCall) -> None:
        if call.id == "c0":
            await first_may_end.wait()

    async def interrupted(step: int, index: int, *, arguments_hash: str | None = None) -> None:
        first_may_end.set()
        raise Superseded

    batch.tools.gate = wait_for_the_news
    batch.log.start_call = interrupted
    with pytest.raises(Superseded):
        await batch.run()

    assert batch.tools.ran == ["c0"]
    assert batch.log.calls[1, 0].state is CallState.DONE
    assert {row.state for row in list(batch.log.calls.values())[1:]} == {CallState.ANNOUNCED}


async def test_when_the_time_is_up_no_call_begins_and_what_had_started_is_unknown():
    batch = Batch("look", "pay", "put", states=[CallState.ANNOUNCED, CallState.STARTED, CallState.ANNOUNCED])
    batch.time_is_up = True
    results = await batch.run()

    assert batch.tools.ran == []
    assert [result.state for result in results] == ["not_run", "unknown", "not_run"]
    assert results[0].content == sentences.not_run("timeout")


async def test_events_tell_of_calls_by_counts_and_names_only():
    batch = Batch("pay")
    await batch.run()

    about = {"call_id": "c0", "tool": "pay", "step": 1, "index": 0}
    assert batch.emit.events == [("tool_called", about), ("tool_returned", {**about, "state": "done", "error": False})]


async def test_calls_of_a_stopped_turn_keep_the_results_they_have():
    limits = TurnLimits(max_tool_calls=1)
    states = [CallState.DONE, CallState.DONE, CallState.STARTED, CallState.ANNOUNCED]
    batch = Batch("pay", "pay", "pay", "pay", states=states)
    results = await batch.run(TurnRules(limits))

    assert batch.tools.ran == []
    assert [result.state for result in results] == ["done", "done", "unknown", "not_run"]
    assert results[1].content == "earlier c1"


async def test_halts_are_seen_by_the_rules_in_time():
    rules = TurnRules(TurnLimits(max_tool_calls=3))
    batch = Batch("stop", "look")
    await batch.run(rules)

    said = rules.close([], ())
    assert said.notices == ()


def test_a_batch_that_is_closed_from_outside_keeps_what_is_known():
    def row(index: int, state: CallState, result: str | None = None) -> CallRow:
        return CallRow(1, index, f"c{index}", "pay", {}, True, state, result, halts=result is not None)

    rows = (row(0, CallState.DONE, "paid"), row(1, CallState.STARTED), row(2, CallState.ANNOUNCED))
    closed = closing_results(rows, "cancelled")

    assert [(result.state, result.content) for result in closed] == [
        ("done", "paid"),
        ("unknown", sentences.UNKNOWN_OUTCOME),
        ("not_run", sentences.not_run("cancelled")),
    ]
    assert [result.halts for result in closed] == [True, False, False]


async def test_a_tool_that_is_not_there_is_recorded_as_not_run():
    batch = Batch("fly", "look")
    results = await batch.run()

    assert results[0].state is CallState.NOT_RUN
    assert batch.log.calls[1, 0].state is CallState.NOT_RUN


async def test_an_outcome_that_times_out_without_effects_is_an_ordinary_error():
    batch = Batch("slow")
    batch.tools.tools["slow"] = FakeTool(outcome=lambda call: CallOutcome("too slow", is_error=True, cut=True))
    (result,) = await batch.run()

    assert (result.state, result.content, result.is_error) == ("done", "too slow", True)


@pytest.mark.parametrize("side_effect", [True, False])
async def test_a_call_whose_arguments_do_not_fit_never_begins(side_effect):
    batch = Batch("picky")
    batch.tools.tools["picky"] = FakeTool(side_effect=side_effect, refuses="x: expected a number")
    (result,) = await batch.run()

    assert (result.state, result.is_error) == ("not_run", True)
    assert "x: expected a number" in result.content
    assert (batch.tools.ran, batch.log.started, batch.emit.events) == ([], [], [])


async def test_what_had_started_and_is_refused_now_stays_unknown():
    batch = Batch("put", states=[CallState.STARTED])
    batch.tools.tools["put"] = FakeTool(side_effect=True, idempotent=True, refuses="x: expected a number")
    (result,) = await batch.run()

    assert (result.state, result.content) == ("unknown", sentences.UNKNOWN_OUTCOME)
    assert batch.tools.ran == []


def test_only_a_call_that_certainly_never_began_is_said_to_have_had_no_effect():
    def row(index: int, *, side_effect: bool) -> CallRow:
        return CallRow(1, index, f"c{index}", "tool", {}, side_effect, CallState.ANNOUNCED)

    careful, harmless = closing_results((row(0, side_effect=True), row(1, side_effect=False)), "cancelled")

    assert careful.content == sentences.not_run("cancelled")
    assert harmless.content == sentences.given_up("cancelled")
    assert "no effect" not in harmless.content
