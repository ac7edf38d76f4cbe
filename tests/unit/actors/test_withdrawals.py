"""Messages that are taken back: in time, each with what it was part of; too late, with nothing."""

from __future__ import annotations

import pytest

from insika.storage.rows import Ended, TurnState, Verdict
from insika.testing import Call, Rule, Say, Script, ScriptedModel
from tests.actor_world import Gate, profile

LONG = Script(
    rules=[Rule([Call("look", {"n": 1}), Call("look", {"n": 2}), Say("Done.")], when="long")], afterwards=Say("Short.")
)


def rules(mode: str, debounce_ms: int = 0) -> dict:
    return profile(limits={"queue_mode": mode, "debounce_ms": debounce_ms})


async def in_a_tool(place_for, *profiles, model=None):
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process(*profiles, model=model)
    accepted = await process.send("long", id="long")
    await gate.reached()
    return process, accepted, gate


async def ended(process) -> dict[str, Ended | None]:
    return {row.job_id: row.ended for row in await process.mail() if row.verdict is not Verdict.CONTROL}


async def nothing_is_left(process) -> None:
    assert all(row.ended is not None for row in await process.mail())
    row = await process.row()
    assert (row.waiting, row.turn_id, row.merge_turn, row.lease_id) == (0, None, None, None)
    assert not [turn for turn in await process.turns() if turn.state in (TurnState.QUEUED, TurnState.RUNNING)]


async def test_a_waiting_message_is_taken_back_with_its_turn(place_for):
    process, _, gate = await in_a_tool(place_for)
    doomed = await process.send("doomed", id="doomed")
    last = await process.send("last")
    await process.withdraw("doomed")
    gate.open()
    await process.idle()

    assert await process.said() == ["long", "last"]
    assert (await process.turn(doomed.turn_id)).state is TurnState.CANCELLED
    assert (await process.turn(last.turn_id)).state is TurnState.COMPLETED
    (event,) = process.events.of("message_withdrawn")
    assert (event.turn_id, event.data) == (doomed.turn_id, {"message_id": "doomed", "position": 2})
    assert [event.turn_id for event in process.events.of("turn_cancelled")] == [doomed.turn_id]
    await nothing_is_left(process)


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_one_of_several_merged_texts_leaves_the_others(place_for, which):
    process, _, gate = await in_a_tool(place_for, rules("collect"))
    sent = [await process.send(f"text {n}", id=f"text-{n}") for n in range(3)]
    await process.withdraw(f"text-{which}")
    gate.open()
    await process.idle()

    assert [each.verdict for each in sent] == [Verdict.ACCEPTED, Verdict.MERGED, Verdict.MERGED]
    left = [f"text {n}" for n in range(3) if n != which]
    assert await process.said() == ["long", *left]
    assert (await process.turn(sent[0].turn_id)).state is TurnState.COMPLETED
    assert len(await process.turns()) == 2
    assert process.events.of("turn_cancelled") == []
    await nothing_is_left(process)


async def test_the_others_are_still_merged_into_after_one_was_taken_back(place_for):
    process = await place_for(LONG).process(rules("collect", 5_000))
    first = await process.send("one", id="one")
    await process.send("two")
    await process.withdraw("one")
    await process.idle()
    third = await process.send("three")
    assert (third.verdict, third.turn_id) == (Verdict.MERGED, first.turn_id)
    process.clock.advance(5)
    await process.sweep()
    await process.idle()

    assert await process.said() == ["two", "three"]
    await nothing_is_left(process)


async def test_the_only_text_of_a_turn_that_waits_for_quiet_ends_it(place_for):
    process = await place_for(LONG).process(rules("collect", 5_000))
    doomed = await process.send("doomed", id="doomed")
    await process.idle()
    await process.withdraw("doomed")
    await process.idle()
    assert (await process.turn(doomed.turn_id)).state is TurnState.CANCELLED
    await nothing_is_left(process)

    next_one = await process.send("next")
    assert (next_one.verdict, next_one.turn_id != doomed.turn_id) == (Verdict.ACCEPTED, True)
    process.clock.advance(5)
    await process.sweep()
    await process.idle()
    assert await process.said() == ["next"]


async def test_a_text_that_merges_just_before_the_only_one_is_taken_back_keeps_the_turn(place_for):
    process = await place_for(LONG).process(rules("collect", 5_000))
    first = await process.send("one", id="one")
    await process.idle()

    async def merge(when: str, operation: str) -> None:
        if (when, operation) == ("before", "settle_mail") and process.store.operations.count("settle_mail") == 1:
            await process.send("two")

    process.store.hook = merge
    await process.withdraw("one")
    await process.idle()
    process.clock.advance(5)
    await process.sweep()
    await process.idle()

    assert await process.said() == ["two"]
    assert (await process.turn(first.turn_id)).state is TurnState.COMPLETED


async def test_a_steered_text_is_taken_back_before_its_boundary(place_for):
    process, accepted, gate = await in_a_tool(place_for, rules("steer"))
    steers = [await process.send(f"steer {n}", id=f"steer-{n}") for n in range(2)]
    await process.withdraw("steer-0")
    gate.open()
    await process.idle()

    assert [each.verdict for each in steers] == [Verdict.STEERED] * 2
    assert await process.said() == ["long", "steer 1"]
    assert [turn.id for turn in await process.turns()] == [accepted.turn_id]
    assert await ended(process) == {"long": Ended.TURN, "steer-0": Ended.WITHDRAWN, "steer-1": Ended.TURN}
    assert len(process.events.of("message_withdrawn")) == 1
    await nothing_is_left(process)


async def test_a_withdrawal_neither_cuts_nor_repeats_anything(place_for):
    process, accepted, gate = await in_a_tool(place_for, rules("steer"))
    await process.send("steer", id="steer")
    await process.withdraw("steer")
    process.runtime.signal(accepted.session_id)
    gate.open()
    await process.idle()

    assert len(process.model.requests) == 3
    assert process.place.shop.count("look") == 2
    assert (await process.turn(accepted.turn_id)).attempt == 1
    assert process.signalled == []


async def test_an_interrupt_that_has_cut_and_not_begun_is_taken_back_and_the_cut_stays(place_for):
    process, accepted, gate = await in_a_tool(place_for)
    interrupt = await process.send("stop", id="stop", queue_mode="interrupt")
    await process.withdraw("stop")
    gate.open()
    await process.idle()

    assert interrupt.verdict is Verdict.INTERRUPTING
    assert (await process.turn(accepted.turn_id)).error["type"] == "interrupted"
    assert (await process.turn(interrupt.turn_id)).state is TurnState.CANCELLED
    assert await process.said() == ["long"]
    await nothing_is_left(process)


async def test_what_was_said_already_cannot_be_taken_back(place_for):
    process, accepted, gate = await in_a_tool(place_for)
    asked = await process.withdraw("long")
    assert (asked.control, asked.ended, asked.consumed_by) == (None, Ended.TURN, accepted.turn_id)
    gate.open()
    await process.idle()
    assert await process.answers() == ["Done."]


async def test_what_is_said_before_the_owner_looks_cannot_be_taken_back(place_for):
    """The turn begins between the withdrawal's write and the owner's look: the message's row tells, and nothing is
    left of the request."""
    process = await place_for(LONG).process()

    async def withdraw(when: str, operation: str) -> None:
        if (when, operation) == ("before", "start"):
            process.store.hook = _nothing
            asked.append(await process.withdraw("short"))

    asked: list = []
    process.store.hook = withdraw
    accepted = await process.send("short", id="short")
    await process.idle()

    assert (asked[0].control, asked[0].ended) == (2, None)
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED
    assert [row.ended for row in await process.mail()] == [Ended.TURN, Ended.CONTROL]
    assert process.events.of("message_withdrawn") == []
    await nothing_is_left(process)


async def test_a_withdrawal_at_every_instant_ends_its_message_once_or_comes_too_late(place_for):
    """Before and after each operation of the store, each time of a message that was just steered."""
    place = place_for(
        Script(rules=[Rule([Call("look", {"n": 1}), Call("look", {"n": 2}), Say("Done.")], restarts=True)])
    )
    process = await place.process(profile(limits={"queue_mode": "steer", "steer_max_messages": 1000}))
    sent: list[str] = []
    acting = False

    async def somebody_changes_his_mind(when: str, operation: str) -> None:
        nonlocal acting
        if acting or "start" not in process.store.operations or len(sent) >= 12 or operation in ("accept", "withdraw"):
            return
        acting = True
        id = f"{len(sent)}-{when}-{operation}"
        sent.append(id)
        await process.send(id, id=id)
        await process.withdraw(id)
        acting = False

    process.store.hook = somebody_changes_his_mind
    await process.send("hello", id="hello")
    await process.idle()

    how = await ended(process)
    said = set(await process.said())
    assert {id for id in sent if how[id] == Ended.TURN} == said - {"hello"}
    assert all(how[id] in (Ended.TURN, Ended.WITHDRAWN) for id in sent)
    assert Ended.WITHDRAWN in how.values()
    await nothing_is_left(process)


async def test_a_cancel_of_a_queued_turn_does_not_cost_the_running_one_its_answer(place_for):
    gate = Gate()
    process = await place_for(LONG).process(model=ScriptedModel(LONG, gate))
    await process.send("short")
    await gate.reached()
    queued = await process.send("doomed")
    await process.cancel(queued.turn_id)
    gate.open()
    await process.idle()

    assert len(process.model.requests) == 1
    assert await process.answers() == ["Short."]
    assert (await process.turn(queued.turn_id)).state is TurnState.CANCELLED
    await nothing_is_left(process)


async def test_twenty_messages_are_taken_back_by_one_owner(place_for):
    """Each is a write of its own that changes neither the log nor the mail counted, and none of them is in vain."""
    process = await place_for(LONG).process()
    process.deaf = True
    for number in range(20):
        await process.send(f"text {number}", id=f"text-{number}")
        await process.withdraw(f"text-{number}")
    process.deaf = False
    await process.sweep()
    await process.idle()

    assert set((await ended(process)).values()) == {Ended.WITHDRAWN}
    assert process.store.operations.count("claim") == 1
    await nothing_is_left(process)


async def _nothing(when: str, operation: str) -> None:
    return None
