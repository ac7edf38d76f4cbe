"""Faults 2 and 4 to 8: where what people write may stand, how long it waits and who is told, and what is kept out."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from insika.storage.rows import Ended, TurnState, Verdict
from insika.testing import Call, Calls, Rule, Say, Script
from tests.actor_world import Gate, RefusingGuard, profile
from tests.strict import check_anthropic, check_openai


def rules(mode: str, **limits) -> dict:
    return profile(limits={"queue_mode": mode, **limits})


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("steers", [0, 1, 3])
async def test_notices_and_steers_stand_behind_all_results_of_their_batch(place_for, size, steers):
    """Fault 2: engine notices or steered texts before or between results. Budget and repetition both speak here, at
    every boundary, and every request is read as strictly as the vendors read it."""
    batch = Calls([Call("look", {"n": 1}), *(Call("put", {"n": index}) for index in range(1, size))])
    place = place_for(Script(rules=[Rule([batch, batch, batch, Say("Done.")], when="hello|steer")]))
    process = await place.process(rules("steer", max_tool_calls=3 * size, max_tool_repeat=4, steer_max_messages=50))
    place.shop.gates["look", 1] = gate = Gate()
    await process.send("hello")
    await gate.reached()
    for number in range(steers):
        assert (await process.send(f"steer {number}")).verdict is Verdict.STEERED
    gate.open()
    await process.idle()

    for request in process.model.requests:
        check_anthropic(request.messages, sent=True)
        check_openai(request.messages, sent=True)
    messages = await process.messages()
    assert any(message.content.startswith("[insika]") for message in messages), "nobody had anything to say"
    for place_of_batch, message in enumerate(messages):
        if message.tool_calls:
            behind = messages[place_of_batch + 1 :][: len(message.tool_calls)]
            assert [each.tool_call_id for each in behind] == [call.id for call in message.tool_calls]
    first_boundary = messages[2 + size :]
    said = [each.content for each in first_boundary[: [bool(m.tool_calls) for m in first_boundary].index(True)]]
    assert [text for text in said if text.startswith("steer")] == [f"steer {number}" for number in range(steers)]
    assert said == sorted(said, key=lambda text: text.startswith("steer")), "a person's text before the engine's"


async def test_a_steer_that_waits_for_a_slow_tool_is_told_so_and_an_interrupt_does_not_wait_for_the_rest(place_for):
    """Fault 4: a steer waited minutes behind one slow tool, and nobody could tell. The receipt says at once that it
    waits and for which turn; an interrupt lets the tool end and nothing after it begin."""
    batch = Calls([Call("pay", {"n": 1}), Call("pay", {"n": 2})])
    place = place_for(Script(rules=[Rule([batch, Say("Done.")], when="hello")], afterwards=Say("Ok.")))
    process = await place.process(rules("steer"))
    place.shop.gates["pay", 1] = slow = Gate()
    running = await process.send("hello")
    await slow.reached()
    steer = await process.send("the other one")
    receipt = process.events.of("turn_accepted")[-1]
    assert (steer.verdict, steer.turn_id) == (Verdict.STEERED, running.turn_id)
    assert (receipt.turn_id, receipt.data["verdict"]) == (running.turn_id, "steered")
    assert await process.said() == ["hello"]

    interrupt = await process.send("stop", queue_mode="interrupt")
    assert interrupt.verdict is Verdict.INTERRUPTING
    slow.open()
    await process.idle()
    assert [(name, n) for name, n, _ in place.shop.ran] == [("pay", 1)]
    assert "pay 1 done" in [message.content for message in await process.messages()]
    assert (await process.turn(running.turn_id)).error["type"] == "interrupted"
    assert await process.said() == ["hello", "the other one", "stop"]
    (released,) = process.events.of("turn_steer_released")
    assert released.data["released_as"] == (await process.turns())[1].id


async def test_what_a_timer_says_races_a_person_a_thousand_times_and_never_enters_their_turn(place_for):
    """Fault 5: a background "start" became a steer into a person's turn."""
    place = place_for(Script([Call("look", {"n": 1}), Say("Done.")]))
    process = await place.process(rules("steer", mailbox_max=5_000))
    place.shop.gates["look", 1] = gate = Gate()
    await process.send("hello")
    await gate.reached()
    verdicts: Counter[tuple[str, str]] = Counter()

    async def says(who: str, mode: str) -> None:
        verdicts[who, (await process.send(who, origin=who, queue_mode=mode)).verdict] += 1

    for number in range(1_000):
        mode = ("steer", "interrupt", "collect", "followup")[number % 4]
        pair = [says("scheduled", mode), says("customer", "steer")]
        await asyncio.gather(*(pair if number % 2 else reversed(pair)))

    assert verdicts == {("scheduled", "accepted"): 1_000, ("customer", "steered"): 1_000}


async def test_somebody_who_writes_faster_than_the_debounce_is_answered_all_the_same(place_for):
    """Fault 6: messages faster than the debounce were never answered, and the batch grew without end."""
    place = place_for(Script([lambda scene: Say(f"re {scene.text}")]))
    process = await place.process(rules("collect", debounce_ms=1_000, debounce_max_ms=3_000))
    for number in range(46):  # every half second, for twenty seconds, and a little quiet
        if number < 40:
            await process.send(str(number))
            await process.idle()
        place.clock.advance(0.5)
        await process.sweep()
        await process.idle()

    assert await process.said() == [str(number) for number in range(40)]
    turns = await process.turns()
    entries = [entry for entry in await process.log() if entry.position is not None]
    together = [sum(1 for entry in entries if entry.turn_id == turn.id) for turn in turns]
    assert all(turn.state is TurnState.COMPLETED for turn in turns)
    assert max(together) <= 7
    assert all((turn.started_at - turn.created_at).total_seconds() <= 3.0 for turn in turns)


async def test_the_message_beyond_the_limit_is_refused_aloud_and_kept(place_for):
    """Fault 7: the 21st waiting message was dropped without a word."""
    place = place_for(Script([lambda scene: Call("look", {"n": 1}), Say("Done.")]))
    process = await place.process(rules("followup", mailbox_max=20))
    place.shop.gates["look", 1] = gate = Gate()
    await process.send("running")
    await gate.reached()
    for number in range(20):
        assert (await process.send(f"waiting {number}", id=f"waiting-{number}")).verdict is Verdict.ACCEPTED
    refused = [await process.send(f"beyond {mode}", queue_mode=mode) for mode in ("followup", "steer", "interrupt")]

    assert [each.verdict for each in refused] == [Verdict.REJECTED] * 3
    kept = [await process.store.real.rejected_job(each.rejected_job) for each in refused]
    assert [b"beyond" in job.raw for job in kept] == [True] * 3
    told = [event.data["verdict"] for event in process.events.of("turn_accepted")]
    assert told[-3:] == ["rejected"] * 3
    assert await process.withdraw("waiting-0") is not None, "a full mailbox can be asked to give one back"
    place.shop.gates.clear()
    gate.open()
    await process.idle()
    assert await process.said() == ["running", *(f"waiting {number}" for number in range(1, 20))]


@pytest.mark.parametrize("mode", ["collect", "steer"])
@pytest.mark.parametrize("which", [0, 1, 2])
async def test_no_text_passes_the_guard_behind_or_before_another(place_for, mode, which):
    """Fault 8: collected or steered text got past the guard, because only the last message was checked."""
    batch = Call("look", {"n": 1})
    place = place_for(Script(rules=[Rule([batch, Say("Done.")], when="hello")], afterwards=Say("Ok.")))
    place.shop.gates["look", 1] = gate = Gate()
    guard = RefusingGuard()
    process = await place.process(rules(mode), guard=guard)
    await process.send("hello")
    await gate.reached()
    texts = [f"{'rude' if number == which else 'kind'} {number}" for number in range(3)]
    for text in texts:
        await process.send(text)
    gate.open()
    await process.idle()
    await process.send("afterwards")
    await process.idle()

    assert await process.said() == ["hello", *(text for text in texts if "kind" in text), "afterwards"]
    for request in process.model.requests:
        assert not [message for message in request.messages if "rude" in message.content]
    assert [row.ended for row in await process.mail() if "rude" in row.text] == [Ended.REFUSED]
    assert {text for asked in guard.asked for text in asked} == {"hello", *texts, "afterwards"}
