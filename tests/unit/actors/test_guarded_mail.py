"""The input guard as an owner asks it: of exactly the texts it is about to take, and nothing refused is ever said."""

from __future__ import annotations

import pytest

from insika.storage.rows import Ended, TurnState, Verdict
from insika.testing import Call, Rule, Say, Script, ScriptedModel
from tests.actor_world import LEASE_S, Gate, RefusingGuard, profile

LONG = Script(
    rules=[Rule([Call("look", {"n": 1}), Call("look", {"n": 2}), Say("Done.")], when="long|kind [123]")],
    afterwards=Say("Short."),
)


def rules(mode: str, **limits) -> dict:
    return profile(limits={"queue_mode": mode, **limits})


async def guarded(place_for, *profiles, model=None, gate=None):
    guard = RefusingGuard()
    place = place_for(LONG)
    if gate is not None:
        place.shop.gates["look", 1] = gate
    return await place.process(*profiles, guard=guard, model=model), guard


async def nothing_rude_was_said(process) -> None:
    assert not [text for text in await process.said() if "rude" in text]
    for request in process.model.requests:
        assert not [message for message in request.messages if "rude" in message.content]
    row = await process.row()
    assert (row.waiting, row.turn_id, row.lease_id) == (0, None, None)
    assert all(row.ended is not None for row in await process.mail())


async def test_a_message_that_is_refused_ends_its_turn_before_it_began(place_for):
    process, guard = await guarded(place_for)
    accepted = await process.send("rude", channel="web")
    await process.idle()

    assert (await process.turn(accepted.turn_id)).state is TurnState.REFUSED
    assert [row.ended for row in await process.mail()] == [Ended.REFUSED]
    assert process.model.requests == []
    (event,) = process.events.of("guardrail_blocked")
    assert (event.turn_id, event.data) == (accepted.turn_id, {"reason": "rudeness", "count": 1})
    assert guard.asked == [["rude"]]
    await nothing_rude_was_said(process)


@pytest.mark.parametrize("refused", [{0}, {1}, {2}, {0, 1}, {0, 2}])
async def test_some_of_three_collected_texts_are_refused(place_for, refused):
    process, _ = await guarded(place_for, rules("collect", debounce_ms=1_000))
    texts = [f"{'rude' if n in refused else 'kind'} {n}" for n in range(3)]
    sent = [await process.send(text) for text in texts]
    await process.idle()
    process.clock.advance(2)
    await process.sweep()
    await process.idle()

    assert await process.said() == [text for n, text in enumerate(texts) if n not in refused]
    assert (await process.turn(sent[0].turn_id)).state is TurnState.COMPLETED
    assert process.events.of("guardrail_blocked")[0].data == {"reason": "rudeness", "count": len(refused)}
    await nothing_rude_was_said(process)


async def test_all_of_a_turn_s_texts_are_refused(place_for):
    process, _ = await guarded(place_for, rules("collect", debounce_ms=1_000))
    first = await process.send("rude 0")
    await process.send("rude 1")
    await process.idle()
    process.clock.advance(2)
    await process.sweep()
    await process.idle()

    assert (await process.turn(first.turn_id)).state is TurnState.REFUSED
    assert (await process.row()).merge_turn is None
    assert (await process.send("kind")).verdict is Verdict.ACCEPTED
    process.clock.advance(2)
    await process.sweep()
    await process.idle()
    assert await process.said() == ["kind"]
    await nothing_rude_was_said(process)


async def test_a_steered_text_is_refused_at_its_boundary_and_the_others_join(place_for):
    gate = Gate()
    process, guard = await guarded(place_for, rules("steer"), gate=gate)
    await process.send("long")
    await gate.reached()
    for text in ("kind 1", "rude 2", "kind 3"):
        assert (await process.send(text)).verdict is Verdict.STEERED
    gate.open()
    await process.idle()

    assert await process.said() == ["long", "kind 1", "kind 3"]
    assert len(await process.turns()) == 1
    assert guard.asked == [["long"], ["kind 1", "rude 2", "kind 3"], ["kind 1", "kind 3"]]
    assert [event.data["count"] for event in process.events.of("guardrail_blocked")] == [1]
    assert len(process.model.requests) == 3
    await nothing_rude_was_said(process)


async def test_only_what_has_room_to_join_is_asked_about(place_for):
    gate = Gate()
    process, guard = await guarded(place_for, rules("steer", steer_max_messages=1), gate=gate)
    await process.send("long")
    await gate.reached()
    for text in ("rude 1", "kind 2", "kind 3"):
        await process.send(text)
    gate.open()
    await process.idle()

    assert guard.asked[:3] == [["long"], ["rude 1"], ["kind 2"]]
    assert await process.said() == ["long", "kind 2", "kind 3"]
    await nothing_rude_was_said(process)


async def test_steers_that_became_a_turn_are_asked_about_as_that_turn_begins(place_for):
    gate = Gate()
    process, _ = await guarded(place_for, rules("steer"), model=ScriptedModel(LONG, gate))
    await process.send("short")
    await gate.reached()
    for text in ("rude 1", "kind 2"):
        assert (await process.send(text)).verdict is Verdict.STEERED
    gate.open()
    await process.idle()

    assert await process.said() == ["short", "kind 2"]
    await nothing_rude_was_said(process)


@pytest.mark.parametrize("signalled", [True, False])
@pytest.mark.parametrize("moment", ["a tool", "the model", "commit"])
async def test_a_refused_interrupt_does_not_interrupt(place_for, moment, signalled):
    gate = Gate()
    model = ScriptedModel(LONG, gate) if moment == "the model" else ScriptedModel(LONG)
    process, _ = await guarded(place_for, rules("steer"), model=model, gate=gate if moment == "a tool" else None)

    async def interrupt(when: str = "before", operation: str = "commit") -> None:
        if (when, operation) == ("before", "commit") and not interrupts:
            interrupts.append(await process.send("rude", queue_mode="interrupt"))
            if signalled:
                process.runtime.signal(accepted.session_id)

    interrupts: list = []
    if moment == "commit":
        process.store.hook = interrupt
    accepted = await process.send("long")
    if moment != "commit":
        await gate.reached()
        await interrupt()
        gate.open()
    await process.idle()

    assert [each.verdict for each in interrupts] == [Verdict.INTERRUPTING]
    assert await process.answers() == ["Done."]
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED
    assert (await process.turn(interrupts[0].turn_id)).state is TurnState.REFUSED
    assert len(model.requests) == 3, "a request was made twice"
    assert process.events.of("turn_interrupted") == []
    await nothing_rude_was_said(process)


async def test_a_turn_takes_steers_again_after_an_interrupt_was_refused(place_for):
    gate, second = Gate(), Gate()
    process, _ = await guarded(place_for, rules("steer"), gate=gate)
    process.place.shop.gates["look", 2] = second
    await process.send("long")
    await gate.reached()
    await process.send("rude", queue_mode="interrupt")
    during = await process.send("kind 1")
    gate.open()
    await second.reached()
    after = await process.send("kind 2")
    second.open()
    await process.idle()

    assert (during.verdict, after.verdict) == (Verdict.ACCEPTED, Verdict.STEERED)
    assert await process.said() == ["long", "kind 2", "kind 1"]
    await nothing_rude_was_said(process)


async def test_an_interrupt_that_is_not_refused_interrupts_beside_one_that_is(place_for):
    gate = Gate()
    process, _ = await guarded(place_for, gate=gate)
    accepted = await process.send("long")
    await gate.reached()
    await process.send("rude", queue_mode="interrupt")
    await process.send("stop", queue_mode="interrupt")
    gate.open()
    await process.idle()

    assert (await process.turn(accepted.turn_id)).error["type"] == "interrupted"
    assert await process.said() == ["long", "stop"]
    await nothing_rude_was_said(process)


class DeadlyGuard:
    """Its process dies whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def refusals(self, mail):
        self.asked += 1
        raise RuntimeError("the guard is broken")


async def test_a_text_at_which_the_guard_breaks_time_after_time_is_refused(place_for):
    """Its turn could not be given up either: for that, too, the guard would have to let its text through."""
    guard = DeadlyGuard()
    process = await place_for(LONG).process(guard=guard)
    accepted = await process.send("hello")
    await process.finish()

    assert guard.asked == 4
    assert (await process.turn(accepted.turn_id)).state is TurnState.REFUSED
    assert await process.said() == []
    (event,) = process.events.of("guardrail_blocked")
    assert event.data == {"reason": "guard_lost", "count": 1}
    await nothing_rude_was_said(process)


async def test_a_turn_that_is_cancelled_and_rudely_interrupted_is_cancelled(place_for):
    """By the person who cancelled it: the interrupt beside that was refused, and cut nothing."""
    gate = Gate()
    place = place_for(LONG)
    place.shop.gates["look", 1] = gate
    process = await place.process(guard=RefusingGuard())
    running = await process.send("long")
    await gate.reached()
    rude = await process.send("rude", queue_mode="interrupt")
    await process.cancel(running.turn_id)
    await process.die()
    place.clock.advance(LEASE_S + 1)
    heir = await place.process(guard=RefusingGuard())
    await heir.sweep()
    await heir.idle()

    turn = await heir.turn(running.turn_id)
    assert (turn.state, turn.error["type"]) == (TurnState.CANCELLED, "cancelled")
    assert heir.events.of("turn_interrupted") == []
    assert (await heir.turn(rude.turn_id)).state is TurnState.REFUSED
    await nothing_rude_was_said(heir)
