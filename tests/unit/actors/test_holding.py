"""An operator's hold: a turn stops at its next boundary and goes on there, and what is asked meanwhile is settled."""

from __future__ import annotations

import pytest

from insika.clock import NEVER
from insika.storage.rows import Ended, TurnState, Verdict
from insika.testing import Call, Calls, Rule, Say, Script, ScriptedModel
from tests.actor_world import LEASE_S, Gate, profile

LONG = Script(
    rules=[
        Rule(
            [Calls([Call("pay", {"n": 1}), Call("look", {"n": 2})]), Call("look", {"n": 3}), Say("Done.")], when="long"
        )
    ],
    afterwards=Say("Short."),
)


class HeldAt(ScriptedModel):
    """Holds its nth request."""

    def __init__(self, script: Script, nth: int) -> None:
        super().__init__(script, self._hold)
        self.gate = Gate()
        self._nth = nth

    async def _hold(self, request, chunk, /):
        if len(self.requests) == self._nth:
            await self.gate()


async def held_in_a_tool(place_for, tool=("pay", 1), *profiles):
    """A turn that was held while that tool ran; its first process."""
    place = place_for(LONG)
    place.shop.gates[tool] = gate = Gate()
    process = await place.process(*profiles)
    accepted = await process.send("long")
    await gate.reached()
    await process.control.pause("s")
    gate.open()
    await process.idle()
    return place, process, accepted


@pytest.mark.parametrize("tool", [("pay", 1), ("look", 2), ("look", 3)])
@pytest.mark.parametrize("other", [True, False])
async def test_a_held_turn_goes_on_from_its_next_step_on_any_worker(place_for, tool, other):
    place, process, accepted = await held_in_a_tool(place_for, tool)
    row = await process.row()
    assert (row.lease_id, row.turn_id, row.open_calls, row.deaths) == (None, accepted.turn_id, 0, 0)
    assert (await process.turn(accepted.turn_id)).state is TurnState.RUNNING
    assert [event.turn_id for event in process.events.of("turn_held")] == [accepted.turn_id]
    assert await process.sweep() == 0
    ran, asked = list(place.shop.ran), len(process.model.requests)

    heir = await place.process() if other else process
    if other:
        await process.die()
    await heir.control.resume("s")
    await heir.idle()

    assert await heir.answers() == ["Done."]
    assert [(name, n) for name, n, _ in place.shop.ran] == [("pay", 1), ("look", 2), ("look", 3)]
    assert place.shop.ran[: len(ran)] == ran
    if other:
        assert asked + len(heir.model.requests) == 3, "a step was asked again"
    measured = await heir.select("SELECT step FROM model_calls WHERE state = 'measured' ORDER BY step")
    assert [call["step"] for call in measured] == [1, 2, 3]
    assert (await heir.turn(accepted.turn_id)).attempt == 2
    row = await heir.row()
    assert (row.lease_id, row.turn_id, row.waiting, row.deaths) == (None, None, 0, 0)
    assert row.due_at == NEVER


async def test_a_hold_lets_a_request_under_way_finish(place_for):
    place = place_for(LONG)
    model = HeldAt(LONG, 1)
    process = await place.process(model=model)
    await process.send("short")
    await model.gate.reached()
    await process.control.pause("s")
    await process.send("another")
    process.runtime.signal((await process.row()).id)
    model.gate.open()
    await process.idle()

    assert await process.answers() == ["Short."]
    assert process.events.of("turn_held") == []
    await process.control.resume("s")
    await process.idle()
    assert await process.answers() == ["Short.", "Short."]


async def test_what_the_model_announced_meanwhile_is_run_before_the_turn_is_held(place_for):
    model = HeldAt(LONG, 1)
    place = place_for(LONG)
    process = await place.process(model=model)
    await process.send("long")
    await model.gate.reached()
    await process.control.pause("s")
    model.gate.open()
    await process.idle()
    assert [name for name, _, _ in place.shop.ran] == ["pay", "look"]
    assert len(model.requests) == 1
    await process.control.resume("s")
    await process.idle()
    assert len(model.requests) == 3
    place.shop.once_each("pay", "look")


@pytest.mark.parametrize("mode", ["followup", "collect", "steer", "interrupt"])
async def test_messages_wait_while_a_session_is_held(place_for, mode):
    _, process, accepted = await held_in_a_tool(place_for, ("pay", 1), profile(limits={"queue_mode": mode}))
    sent = await process.send("more")
    await process.idle()
    claims = process.store.operations.count("claim")
    assert await process.said() == ["long"]
    assert await process.sweep() == 0
    await process.control.resume("s")
    await process.idle()

    expected = {"followup": "accepted", "collect": "accepted", "steer": "steered", "interrupt": "interrupting"}
    assert sent.verdict == expected[mode]
    assert await process.said() == ["long", "more"]
    if mode == "interrupt":
        assert (await process.turn(accepted.turn_id)).error["type"] == "interrupted"
        assert await process.answers() == ["Short."]
    elif mode == "steer":
        assert len(await process.turns()) == 1
    else:
        assert await process.answers() == ["Done.", "Short."]
    assert process.store.operations.count("claim") <= claims + 2


@pytest.mark.parametrize("what", ["the turn", "a queued one"])
async def test_a_cancel_in_a_held_session_is_settled_while_it_stays_held(place_for, what):
    _, process, accepted = await held_in_a_tool(place_for)
    queued = await process.send("short")
    await process.idle()
    target = accepted if what == "the turn" else queued
    await process.cancel(target.turn_id)
    await process.idle()

    assert (await process.turn(target.turn_id)).state is TurnState.CANCELLED
    row = await process.row()
    assert (row.paused, row.lease_id, row.deaths) == (True, None, 0)
    assert await process.sweep() == 0
    await process.control.resume("s")
    await process.idle()
    assert await process.answers() == (["Short."] if what == "the turn" else ["Done."])


async def test_a_withdrawal_in_a_held_session_is_settled_while_it_stays_held(place_for):
    _, process, _ = await held_in_a_tool(place_for)
    doomed = await process.send("short", id="doomed")
    await process.withdraw("doomed")
    await process.idle()

    assert (await process.turn(doomed.turn_id)).state is TurnState.CANCELLED
    assert [row.ended for row in await process.mail()] == [Ended.TURN, Ended.WITHDRAWN, Ended.CONTROL]
    assert (await process.row()).paused
    assert await process.sweep() == 0


async def test_an_idle_session_that_is_held_begins_nothing(place_for):
    process = await place_for(LONG).process()
    await process.send("short")
    await process.idle()
    await process.control.pause("s")
    accepted = await process.send("short")
    await process.send("doomed", id="doomed")
    await process.withdraw("doomed")
    await process.idle()

    assert accepted.verdict is Verdict.ACCEPTED
    assert (await process.turn(accepted.turn_id)).state is TurnState.QUEUED
    assert await process.sweep() == 0
    await process.control.resume("s")
    await process.idle()
    assert await process.said() == ["short", "short"]


async def test_a_hold_that_comes_just_before_the_turn_begins_keeps_it_from_beginning(place_for):
    process = await place_for(LONG).process()

    async def hold(when: str, operation: str) -> None:
        if (when, operation) == ("before", "start") and process.store.operations.count("start") == 1:
            await process.control.pause("s")

    process.store.hook = hold
    accepted = await process.send("short")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.QUEUED
    assert (await process.row()).lease_id is None


async def test_a_hold_of_a_turn_whose_owner_dies_is_found_by_nobody_until_it_ends(place_for):
    place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    first = await place.process()
    await first.send("long")
    await gate.reached()
    await first.control.pause("s")
    await first.die()
    place.shop.gates.clear()
    second = await place.process()
    place.clock.advance(LEASE_S + 1)
    assert await second.sweep() == 0
    await second.control.resume("s")
    await second.idle()

    assert await second.answers() == ["Done."]
    assert place.shop.count("pay") == 1


async def test_ten_holds_count_no_death_and_make_no_suspect(place_for):
    calls = [Call("look", {"n": n}) for n in range(10)]
    place = place_for(Script(rules=[Rule([*calls, Say("Done.")], when="long")]))
    process = await place.process()

    async def hold(when: str, operation: str) -> None:
        if (when, operation) == ("before", "cross_boundary"):
            await process.control.pause("s")

    process.store.hook = hold
    accepted = await process.send("long")
    for _ in range(10):
        await process.idle()
        assert (await process.row()).deaths == 0
        await process.control.resume("s")
    await process.idle()

    assert await process.answers() == ["Done."]
    assert len(process.model.requests) == 11
    assert len(place.shop.ran) == 10
    assert (await process.turn(accepted.turn_id)).attempt == 11


async def test_a_hold_that_comes_while_a_batch_still_runs_that_will_wait_for_a_person(place_for):
    place = place_for(LONG)
    place.shop.gates["look", 2] = gate = Gate()
    process = await place.process(profile(approvals_required=["pay"]))
    accepted = await process.send("long")
    await gate.reached()
    await process.control.pause("s")
    gate.open()
    await process.idle()
    assert (await process.row()).lease_id is None
    assert await process.sweep() == 0

    await process.control.resume("s")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.WAITING
    await process.approve()
    await process.idle()
    assert await process.answers() == ["Done."]
    assert len(process.events.of("approval_requested")) == 1
    place.shop.once_each("pay", "look")
    assert place.shop.count("look") == 2
