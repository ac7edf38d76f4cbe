"""What a model said comes back from the store as it was: reasoning with its signature, and a call that was cut off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from insika.crash_points import CrashPoint
from insika.messages import ToolCall, Verbatim, assistant
from insika.ports import Stop, TextDelta
from insika.storage.rows import CallState
from insika.testing import Script
from insika.turn import sentences
from tests.actor_world import Died, Process
from tests.spoken_models import SpokenModel, finished

SIGNED = Verbatim(
    "offline/script", ({"type": "thinking", "signature": "s\u00e9"}, {"type": "text", "text": "One moment."})
)
CALL = ToolCall("c0", "pay", {"n": 1})


def dies_at(process: Process, point: CrashPoint) -> None:
    def crash(reached: CrashPoint) -> None:
        if reached is point and not process.store.dead:
            process.store.dead = True
            raise Died

    process.crash = crash


async def taken_up(place_for, *streams):
    """The turn that the first process began and died in, once its first step was written; and who ended it."""
    place, model = place_for(Script()), SpokenModel(*streams)
    dying = await place.process(model=model)
    dies_at(dying, CrashPoint.STEP_APPENDED)
    await dying.send("hello")
    await dying.idle()
    heir = await place.process(model=model)
    await heir.finish()
    return place, heir, model


async def test_reasoning_goes_back_with_its_signature_whoever_takes_the_turn_up(place_for):
    said = replace(assistant("One moment.", CALL), verbatim=SIGNED)
    place, heir, model = await taken_up(place_for, [TextDelta("One moment."), finished(said)], [finished("Done.")])

    assert [request.messages[1].verbatim for request in model.requests[1:]] == [SIGNED]
    assert model.requests[1].turn_from == 0
    assert place.shop.count("pay") == 1
    assert await heir.answers() == ["Done."]


async def test_in_the_next_turn_it_is_behind_where_the_turn_begins(place_for):
    said = replace(assistant("One moment.", CALL), verbatim=SIGNED)
    model = SpokenModel([finished(said)], [finished("Done.")], [finished("Again.")])
    process = await place_for(Script()).process(model=model)
    for text in ("one", "two"):
        await process.send(text)
        await process.idle()

    last = model.requests[-1]
    assert last.turn_from == 4
    assert [message.content for message in last.messages[last.turn_from :]] == ["two"]


@pytest.mark.parametrize("name", ["pay", "look"])
async def test_a_call_that_was_cut_off_is_not_run_by_whoever_takes_the_turn_up(place_for, name):
    cut = finished(assistant("", ToolCall("c0", name, cut_off=True)), stop=Stop.LENGTH)
    place, heir, model = await taken_up(place_for, [cut], [finished("Done.")])

    assert place.shop.ran == []
    assert model.requests[1].messages[1].tool_calls == (ToolCall("c0", name, cut_off=True),)
    assert [message.content for message in await heir.messages() if message.role == "tool"] == [sentences.CUT_OFF]
    (turn,) = await heir.turns()
    (call,) = await heir.store.real.calls(turn.id)
    assert call.state is CallState.NOT_RUN


async def test_a_cut_answer_is_told_as_cut(place_for):
    process = await place_for(Script()).process(model=SpokenModel([finished("And so", stop=Stop.LENGTH)]))
    await process.send("hello")
    await process.idle()

    (completed,) = process.events.of("turn_completed")
    assert (completed.data["cut_off"], completed.data["outcome"]) == (True, "completed")
    assert await process.answers() == ["And so"]


async def test_a_whole_answer_is_not(place_for):
    process = await place_for(Script()).process(model=SpokenModel([finished("Done.")]))
    await process.send("hello")
    await process.idle()
    assert "cut_off" not in process.events.of("turn_completed")[0].data


async def test_what_a_vendor_did_not_count_is_estimated_in_the_row(place_for):
    call = finished(assistant("", CALL), measured=False)
    process = await place_for(Script()).process(model=SpokenModel([call], [finished("Done.", measured=False)]))
    await process.send("hello")
    await process.idle()

    rows = await process.select("SELECT state, input, output FROM model_calls ORDER BY step")
    assert rows == [{"state": "estimated", "input": 10, "output": 5}] * 2
