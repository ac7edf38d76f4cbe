from __future__ import annotations

import asyncio
import threading

import pytest

from insika.messages import user
from insika.storage.operations import AcceptJob
from insika.storage.rows import TurnState
from insika.testing import Call, Calls, Fail, Say, Script, ScriptedModel
from insika.tools.python_tools import tool
from insika.turn import sentences
from insika.turn.estimate import estimate_usage
from tests.actor_world import LEASE_S, Died, Gate, unavailable
from tests.store_world import job


def agent_job(text: str, session: str = "s") -> AcceptJob:
    return job(text, session=session, agent="agent", channel=None)


LONG = Script([Call("pay", {"n": 1}), Calls([Call("pay", {"n": 2}), Call("look", {"n": 3})]), Say("All paid.")])


async def test_a_drain_lets_the_turn_come_to_its_boundary_and_hands_it_over(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    leaver, other = await place.process(), await place.process()
    accepted = await leaver.send("hello", channel="web")
    await gate.reached()
    draining = asyncio.create_task(leaver.runtime.drain(20))
    await asyncio.sleep(0)
    gate.open()
    await draining

    row = await leaver.row()
    assert (row.lease_id, row.turn_id, row.deaths) == (None, accepted.turn_id, 0)
    assert place.shop.count("pay") == 1
    await other.sweep()
    await other.idle()
    assert await other.answers() == ["All paid."]
    assert place.shop.count("pay") == 2
    place.shop.once_each("pay", "look")
    assert (await other.row()).deaths == 0
    models = await other.select("SELECT step, attempt, state, input FROM model_calls ORDER BY step, attempt")
    assert [(row["step"], row["attempt"], row["state"]) for row in models] == [
        (1, 1, "measured"),
        (2, 1, "estimated"),
        (2, 2, "measured"),
        (3, 1, "measured"),
    ]
    assert models[1]["input"] == 0  # its row was opened by the boundary, and nobody asked


async def test_a_turn_that_is_about_to_answer_ends_within_the_drain(place_for):
    gate = Gate()
    script = Script([Say("Done.")])
    process = await place_for(script).process(model=ScriptedModel(script, gate))
    await process.send("hello")
    await gate.reached()
    draining = asyncio.create_task(process.runtime.drain(20))
    await asyncio.sleep(0)
    gate.open()
    await draining

    assert await process.answers() == ["Done."]
    assert (await process.row()).lease_id is None


async def test_at_the_end_of_the_drain_a_running_side_effect_is_unknown_and_the_session_free(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    leaver, other = await place.process(), await place.process()
    await leaver.send("hello", channel="web")
    await gate.reached()
    await leaver.runtime.drain(0)

    row = await leaver.row()
    assert (row.lease_id, row.deaths) == (None, 0)
    await other.sweep()
    await other.idle()
    assert (await other.messages())[2].content == sentences.UNKNOWN_OUTCOME
    assert place.shop.count("pay") == 2
    place.shop.once_each("pay")
    assert await other.answers() == ["All paid."]
    assert (await other.row()).deaths == 0


async def test_at_the_end_of_the_drain_an_open_request_is_booked_at_what_it_may_have_cost(place_for):
    gate = Gate()

    async def after_the_first_word(request, chunk, /):
        if chunk == 1:
            await gate()

    script = Script([Say("Well then, done.")])
    place = place_for(script)
    process = await place.process(model=ScriptedModel(script, after_the_first_word))
    await process.send("hello")
    await gate.reached()
    await process.runtime.drain(0)

    (row,) = await process.select("SELECT state, input, output FROM model_calls")
    (asked,) = process.model.requests
    owed = estimate_usage("You keep a shop.", [user("hello")], len("Well"), asked.tools)
    assert row == {"state": "estimated", "input": owed.input, "output": 1}


async def test_a_session_with_a_call_still_in_a_thread_is_left_to_expire(place_for):
    inside, leave = threading.Event(), threading.Event()

    @tool(side_effect=True)
    def stuck() -> str:
        inside.set()
        leave.wait(20)
        return "done"

    place = place_for(Script([Call("stuck"), Say("All done.")]))
    leaver = await place.process(tools=[stuck])
    await leaver.send("hello")
    await asyncio.to_thread(inside.wait, 20)
    await leaver.runtime.drain(0)
    row = await leaver.row()
    leave.set()

    assert row.lease_id is not None
    other = await place.process(tools=[stuck])
    assert await other.sweep() == 0
    place.clock.advance(LEASE_S + 1)
    await other.sweep()
    await other.idle()
    assert (await other.messages())[2].content == sentences.UNKNOWN_OUTCOME
    assert await other.answers() == ["All done."]


async def test_a_drain_while_a_claim_is_under_way_leaves_the_session_free(place_for):
    place = place_for(LONG)
    process = await place.process()
    claimed = Gate()

    async def hold_the_claim(when: str, operation: str) -> None:
        if (when, operation) == ("after", "claim"):
            await claimed()

    process.store.hook = hold_the_claim
    await process.send("hello")
    await claimed.reached()
    draining = asyncio.create_task(process.runtime.drain(0))
    for _ in range(20):
        await asyncio.sleep(0)
    claimed.open()
    await draining

    row = await process.row()
    assert (row.lease_id, row.deaths, row.waiting) == (None, 0, 1)


async def test_after_a_drain_nothing_is_taken(place_for):
    process = await place_for(LONG).process()
    await process.runtime.drain(0)
    await process.send("hello")
    await process.idle()

    assert (await process.row()).lease_id is None
    assert process.store.operations.count("claim") == 0


async def test_a_store_that_is_away_at_the_hand_over_costs_time_and_nothing_else(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    leaver = await place.process()
    await leaver.send("hello")
    await gate.reached()

    async def away(when: str, operation: str) -> None:
        raise unavailable()

    leaver.store.hook = away
    await leaver.runtime.drain(0)
    other = await place.process()
    await other.finish()

    assert await other.answers() == ["All paid."]
    place.shop.once_each("pay")


async def test_for_one_lease_after_an_outage_nothing_expired_is_taken(place_for):
    """Its owner lives: it could only not say so."""
    place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    owner, other = await place.process(), await place.process()
    await owner.send("hello")
    await gate.reached()
    place.shop.gates.clear()
    place.clock.advance(LEASE_S + 1)
    other.keeper.outage.noticed(unavailable())
    await other.sweep()
    await other.idle()
    assert (await other.row()).epoch == 1

    fresh = await other.send("hi", "another")
    await other.idle()
    assert (await other.turn(fresh.turn_id)).state is TurnState.COMPLETED

    place.clock.advance(LEASE_S)
    await other.sweep()
    await other.idle()
    assert (await other.row()).epoch == 2
    gate.open()
    await owner.idle()
    place.shop.once_each("pay")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_claim_that_got_no_answer_is_made_again_by_whoever_made_it(place_for, monkeypatch, when):
    """Nobody else will soon: its wake is forgotten, and it may have taken the session."""
    monkeypatch.setattr("actors.runtime.CLAIM_PAUSE_S", 0.0)
    process = await place_for(Script([Say("fine")])).process()
    answers = iter([unavailable(), unavailable()])

    async def away(instant: str, operation: str) -> None:
        if (instant, operation) == (when, "claim") and (error := next(answers, None)) is not None:
            raise error

    process.store.hook = away
    await process.send("hello")
    await process.idle()

    assert await process.answers() == ["fine"]
    row = await process.row()
    assert (row.epoch, row.deaths) == (1, 0)


async def test_who_leaves_does_not_wait_for_the_answer_to_a_claim(place_for):
    process = await place_for(LONG).process()
    asked = Gate()

    async def away(when: str, operation: str) -> None:
        if operation == "claim":
            asked._reached.set()
            raise unavailable()

    process.store.hook = away
    await process.send("hello")
    await asked.reached()
    async with asyncio.timeout(20):
        await process.runtime.drain(0)
    assert not process.runtime.busy


async def test_a_claim_that_got_no_answer_is_an_outage(place_for, monkeypatch):
    monkeypatch.setattr("actors.runtime.CLAIM_PAUSE_S", 0.0)
    process = await place_for(LONG).process()

    async def away(when: str, operation: str) -> None:
        if operation == "claim":
            raise unavailable()

    process.store.hook = away
    await process.send("hello")
    await process.idle()

    assert process.keeper.outage.just_over


async def test_suspects_that_were_turned_away_come_one_after_another_without_a_sweeper(place_for):
    place = place_for(Script([lambda scene: Call("look", {"n": int(scene.text)}), Say("fine")]))
    for life in range(2):
        place.clock.advance(LEASE_S + 1)
        process = await place.process()
        place.shop.gates = {("look", number): Gate() for number in range(4)}
        await process.sweep()
        if life == 0:
            for number in range(4):
                await process.send(str(number), f"s{number}")
        for gate in list(place.shop.gates.values()):
            await gate.reached()
        await process.die()

    place.shop.gates = {}
    place.clock.advance(LEASE_S + 1)
    survivor = await place.process()
    assert await survivor.sweep() == 4
    await survivor.idle()

    for number in range(4):
        assert await survivor.answers(f"s{number}") == ["fine"]


async def test_a_death_of_one_actor_gives_its_slot_back(place_for):
    place = place_for(Script([Fail("closed")]))
    process = await place.process(slots=1)

    async def breaks(when: str, operation: str) -> None:
        if (when, operation) == ("before", "start") and process.store.operations.count("start") == 1:
            raise Died

    process.store.hook = breaks
    await process.send("hello", "one")
    other = await process.send("hello", "two")
    await process.idle()

    assert (await process.turn(other.turn_id)).state is TurnState.FAILED
    assert not process.runtime.busy


async def test_a_session_that_is_paused_is_not_taken_and_goes_on_when_it_may(place_for):
    process = await place_for(Script([Say("Done.")])).process()
    await process.send("one")
    await process.idle()
    await process.store.set_paused("s", True)
    await process.send("two")
    await process.idle()
    assert await process.answers() == ["Done."]

    await process.store.set_paused("s", False)
    await process.sweep()
    await process.idle()
    assert await process.answers() == ["Done.", "Done."]


async def test_an_actor_that_is_cancelled_outside_a_drain_has_died(place_for):
    """Whatever ends the loop cancels its tasks: a tool that takes its process along must not look like a clean exit."""
    place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    process, heir = await place.process(), await place.process()
    await process.send("hello")
    await gate.reached()
    (running,) = process.runtime._running.values()
    running.cancel()
    await asyncio.wait({running})

    assert (await process.row()).lease_id is not None
    gate.open()
    place.clock.advance(LEASE_S + 1)
    place.shop.gates["pay", 2] = gate = Gate()
    await heir.sweep()
    await gate.reached()
    assert (await heir.row()).deaths == 1
    gate.open()
    await heir.idle()
    assert await heir.answers() == ["All paid."]


async def test_a_wake_from_elsewhere_is_answered_once_the_claim_is_decided(place_for):
    place = place_for(LONG)
    process = await place.process()
    place.shop.gates["pay", 1] = gate = Gate()
    accepted = await process.store.accept(agent_job("hello"))
    assert await process.runtime.take(accepted.session_id)
    assert (await process.row()).lease_id is not None
    await gate.reached()
    assert await process.runtime.take(accepted.session_id)  # it runs here already
    gate.open()
    await process.idle()
    assert await process.answers() == ["All paid."]


async def test_a_wake_from_elsewhere_is_refused_where_no_slot_is_free(place_for):
    place = place_for(LONG)
    room: list[bool] = []
    process = await place.process(slots=1, room=room.append)
    place.shop.gates["pay", 1] = gate = Gate()
    first = await process.store.accept(agent_job("hello"))
    second = await process.store.accept(agent_job("hello", session="other"))
    assert await process.runtime.take(first.session_id)
    await gate.reached()
    assert not await process.runtime.take(second.session_id)
    assert (await process.row("other")).lease_id is None
    assert room == [False]
    gate.open()
    await process.idle()
    assert room == [False, True]
    assert await process.runtime.take(second.session_id)
    await process.idle()
    assert await process.answers("other") == ["All paid."]


async def test_a_process_that_leaves_takes_no_wake(place_for):
    process = await place_for(LONG).process()
    accepted = await process.store.accept(agent_job("hello"))
    await process.runtime.drain(0)
    assert not await process.runtime.take(accepted.session_id)
    assert (await process.row()).lease_id is None
