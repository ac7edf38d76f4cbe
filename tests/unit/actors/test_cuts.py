"""Cancels and interrupts, as an owner honours them: at a boundary, before a call, before the answer is out."""

from __future__ import annotations

import asyncio

import pytest

from insika.crash_points import CrashPoint
from insika.storage.rows import Ended, TurnState, Verdict
from insika.testing import Call, Calls, Fail, Rule, Say, Script, ScriptedModel
from insika.turn import sentences
from tests.actor_world import LEASE_S, PATIENCE_S, Died, Gate

LONG = Script(
    rules=[
        Rule([Call("look", {"n": 1}), Calls([Call("pay", {"n": 2}), Call("pay", {"n": 3})]), Say("Done.")], when="long")
    ],
    afterwards=Say("Short."),
)
WRITES = ["start_call", "finish_call", "cross_boundary", "commit", "append"]


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_what_cuts_a_turn_before_a_write_cuts_it_there(place_for, operation, how):
    place = place_for(LONG)
    process = await place.process()
    cut: list[str] = []

    async def somebody_cuts(when: str, reached: str) -> None:
        if (when, reached) == ("before", operation) and not cut:
            cut.append(operation)
            if how == "cancel":
                assert (await process.cancel(accepted.turn_id)).verdict is Verdict.CONTROL
            else:
                assert (await process.send("stop", queue_mode="interrupt")).verdict is Verdict.INTERRUPTING

    accepted = await process.send("long", channel="web")
    process.store.hook = somebody_cuts
    await process.idle()

    turn = await process.turn(accepted.turn_id)
    assert (turn.state, turn.outcome) == (TurnState.CANCELLED, "cancelled")
    assert turn.error["type"] == ("cancelled" if how == "cancel" else "interrupted")
    assert await process.select("SELECT id FROM outbox WHERE turn_id = '" + turn.id + "'") == []
    assert "Done." not in await process.answers()
    place.shop.once_each("pay")
    row = await process.row()
    assert (row.turn_id, row.open_calls, row.waiting, row.lease_id) == (None, 0, 0, None)
    assert not await process.select("SELECT 1 FROM model_calls WHERE state = 'open'")
    assert not await process.select("SELECT 1 FROM mailbox WHERE ended IS NULL")
    if how == "interrupt":
        assert await process.said() == ["long", "stop"]
        assert await process.answers() == ["Short."]
        (event,) = process.events.of("turn_interrupted")
        assert event.data["replaced_by"] == (await process.turns())[1].id


async def test_calls_that_had_not_started_when_the_turn_was_cut_never_start(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 2] = gate = Gate()
    process = await place.process()
    accepted = await process.send("long")
    await gate.reached()
    await process.cancel(accepted.turn_id)
    gate.open()
    await process.idle()

    assert [n for name, n, _ in place.shop.ran if name == "pay"] == [2]
    messages = await process.messages()
    assert [message.content for message in messages[-2:]] == ["pay 2 done", sentences.not_run("cancelled")]


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_a_call_that_ran_to_its_end_keeps_its_result_when_the_turn_was_cut_meanwhile(place_for, how):
    """Also the only one of its batch, without effects, whose result would have been written with the boundary."""
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    accepted = await process.send("long")
    await gate.reached()
    if how == "cancel":
        await process.cancel(accepted.turn_id)
    else:
        await process.send("stop", queue_mode="interrupt")
    gate.open()
    await process.idle()

    assert (await process.turn(accepted.turn_id)).state is TurnState.CANCELLED
    (call,) = await process.select(f"SELECT state, result FROM tool_calls WHERE turn_id = '{accepted.turn_id}'")
    assert (call["state"], call["result"]) == ("done", "look 1 done")
    assert "look 1 done" in [message.content for message in await process.messages()]


async def test_an_answer_that_was_committed_first_stays(place_for):
    process = await place_for(LONG).process()
    accepted = await process.send("short", channel="web")
    await process.idle()

    assert await process.cancel(accepted.turn_id) is None
    assert len(await process.select("SELECT id FROM outbox")) == 1


async def test_a_queued_turn_is_withdrawn_and_its_text_never_run(place_for):
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    await process.send("long")
    await gate.reached()
    doomed = await process.send("forget it")
    last = await process.send("short")
    await process.cancel(doomed.turn_id)
    await process.cancel(doomed.turn_id, "once more")
    gate.open()
    await process.idle()

    assert (await process.turn(doomed.turn_id)).state is TurnState.CANCELLED
    assert (await process.turn(last.turn_id)).state is TurnState.COMPLETED
    assert await process.said() == ["long", "short"]
    mail = await process.store.mail((await process.row()).id)
    assert [row.ended for row in mail] == [Ended.TURN, Ended.WITHDRAWN, Ended.TURN, Ended.CONTROL, Ended.CONTROL]
    assert (await process.row()).waiting == 0
    assert [event.turn_id for event in process.events.of("turn_cancelled")] == [doomed.turn_id]


async def test_a_cancel_that_meets_a_turn_which_fails_by_itself_is_honoured_and_holds_up_nothing(place_for):
    """The failure was written first: then there is nothing to cancel any more, and the session must go on."""
    script = Script(rules=[Rule([Fail("closed", fatal=True)], when="bad"), Rule([Say("Fine.")])])
    process = await place_for(script).process()

    async def too_late(when: str, operation: str) -> None:
        if (when, operation) == ("before", "end"):
            await process.cancel(failing.turn_id)

    failing = await process.send("bad")
    process.store.hook = too_late
    await process.idle()
    process.store.hook = _nothing
    await process.send("good")
    await process.idle()

    assert (await process.turn(failing.turn_id)).state is TurnState.FAILED
    assert await process.answers() == ["Fine."]
    mail = await process.store.mail((await process.row()).id)
    assert [row.ended for row in mail] == [Ended.TURN, Ended.CONTROL, Ended.TURN]
    assert (await process.row()).lease_id is None


async def _nothing(when: str, operation: str) -> None:
    return None


async def test_an_interrupt_cuts_the_running_turn_only_and_waits_its_turn(place_for):
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    cut = await process.send("long")
    await gate.reached()
    waiting = await process.send("first in line")
    interrupt = await process.send("stop", queue_mode="interrupt")
    gate.open()
    await process.idle()

    states = [(await process.turn(each.turn_id)).state for each in (cut, waiting, interrupt)]
    assert states == [TurnState.CANCELLED, TurnState.COMPLETED, TurnState.COMPLETED]
    assert await process.said() == ["long", "first in line", "stop"]


async def test_two_interrupts_cut_one_turn_once(place_for):
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    await process.send("long")
    await gate.reached()
    await process.send("stop", queue_mode="interrupt")
    await process.send("no, stop", queue_mode="interrupt")
    gate.open()
    await process.idle()

    assert [turn.state for turn in await process.turns()] == [
        TurnState.CANCELLED,
        TurnState.COMPLETED,
        TurnState.COMPLETED,
    ]
    assert await process.said() == ["long", "stop", "no, stop"]


async def test_a_cancel_while_the_model_talks_leaves_nothing_published(place_for):
    gate = Gate()
    process = await place_for(LONG).process(model=ScriptedModel(LONG, gate))
    accepted = await process.send("short", channel="web")
    await gate.reached()
    await process.cancel(accepted.turn_id)
    gate.open()
    await process.idle()

    assert (await process.turn(accepted.turn_id)).state is TurnState.CANCELLED
    assert await process.answers() == []
    assert await process.select("SELECT id FROM outbox") == []
    (row,) = await process.select("SELECT state, input, output FROM model_calls")
    assert row == {"state": "estimated", "input": 6, "output": 2}  # what it cost, although it came to nothing


async def test_a_cancel_outlives_the_death_of_the_owner(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 2] = gate = Gate()
    first = await place.process()
    accepted = await first.send("long")
    await gate.reached()
    await first.cancel(accepted.turn_id)
    await first.die()
    second = await place.process()
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.idle()

    assert (await second.turn(accepted.turn_id)).state is TurnState.CANCELLED
    assert [message.content for message in (await second.messages())[-2:]] == [
        sentences.UNKNOWN_OUTCOME,
        sentences.not_run("cancelled"),
    ]
    assert place.shop.count("pay") == 1


async def test_a_death_right_after_a_cut_does_not_cut_again(place_for):
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate = Gate()
    first = await place.process()

    def die(point: CrashPoint) -> None:
        if point is CrashPoint.TURN_ENDED:
            first.store.dead = True
            raise Died

    first.crash = die
    accepted = await first.send("long")
    await gate.reached()
    await first.send("stop", queue_mode="interrupt")
    gate.open()
    await first.idle()
    await first.die()
    second = await place.process()
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.idle()

    assert [turn.state for turn in await second.turns()] == [TurnState.CANCELLED, TurnState.COMPLETED]
    assert (await second.turn(accepted.turn_id)).error["type"] == "interrupted"


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_a_signal_cuts_the_request_under_way(place_for, how):
    gate = Gate()
    place = place_for(Script(rules=[Rule([Say("Never said.")], when="long")], afterwards=Say("Short.")))
    process = await place.process(model=ScriptedModel(place.script, Once(gate)))
    accepted = await process.send("long", channel="web")
    await gate.reached()
    if how == "cancel":
        await process.cancel(accepted.turn_id)
    else:
        await process.send("stop", queue_mode="interrupt")
    process.runtime.signal(accepted.session_id)
    await process.idle()  # the gate stays shut: only the cut ends the request

    turn = await process.turn(accepted.turn_id)
    assert (turn.state, turn.error["type"]) == (
        TurnState.CANCELLED,
        "cancelled" if how == "cancel" else "interrupted",
    )
    (first, *_) = await process.select("SELECT * FROM model_calls ORDER BY started_at")
    assert first["state"] == "estimated"
    assert first["input"] > 0
    assert await process.answers() == ([] if how == "cancel" else ["Short."])


async def test_a_signal_that_is_not_for_this_turn_cuts_nothing(place_for):
    gate = Gate()
    place = place_for(Script([Say("Said.")]))
    process = await place.process(model=ScriptedModel(place.script, gate))
    accepted = await process.send("hello")
    await gate.reached()
    await process.send("another thing")
    looked = asyncio.Event()

    async def somebody_looked(when: str, operation: str) -> None:
        if (when, operation) == ("after", "load"):
            looked.set()

    process.store.hook = somebody_looked
    process.runtime.signal(accepted.session_id)
    process.runtime.signal(accepted.session_id)
    async with asyncio.timeout(PATIENCE_S):
        await looked.wait()
    gate.open()
    await process.idle()
    assert await process.answers() == ["Said.", "Said."]


async def test_a_signal_during_a_tool_leaves_the_tool_alone(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 2] = gate = Gate()
    process = await place.process()
    accepted = await process.send("long")
    await gate.reached()
    await process.cancel(accepted.turn_id)
    process.runtime.signal(accepted.session_id)
    await asyncio.sleep(0)  # its owner has heard, and looks at nothing
    gate.open()
    await process.idle()
    assert place.shop.count("pay") == 1
    assert (await process.turn(accepted.turn_id)).state is TurnState.CANCELLED
    results = [message.content for message in await process.messages() if message.role == "tool"]
    assert results[1] == "pay 2 done"


class Once:
    """Holds the first request only."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._held = gate, False

    async def __call__(self, *_: object) -> None:
        if not self._held:
            self._held = True
            await self._gate()
