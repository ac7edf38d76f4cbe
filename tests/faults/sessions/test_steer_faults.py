"""Faults 1 to 3 and 5: what people write while their turn runs enters it at a boundary, or becomes the next turn;
once, whenever it comes."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from insika.storage.rows import TurnState, Verdict
from insika.testing import Call, Calls, Fail, Rule, Say, Script, ScriptedModel
from tests.actor_world import LEASE_S, Gate, profile

STEER = profile(limits={"queue_mode": "steer"})


def batch(size: int) -> Calls:
    return Calls([Call("look", {"n": index}) for index in range(size)])


class HeldModel(ScriptedModel):
    """Holds its nth request: a test stands between the last boundary and the end of the turn."""

    def __init__(self, script: Script, nth: int) -> None:
        super().__init__(script, self._hold)
        self.gate = Gate()
        self._nth = nth

    async def _hold(self, request, chunk, /):
        if len(self.requests) == self._nth:
            await self.gate()


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("concurrency", [1, 8])
async def test_a_steer_never_parts_a_call_from_its_result(place_for, size, concurrency):
    """Fault 1: a steered text was stored between a call and its result; then reloaded elsewhere, and two more turns."""
    place = place_for(
        Script(rules=[Rule([batch(size), Say("First.")], when="first|no, "), Rule([batch(2), Say("Ok.")])])
    )
    limits = {"queue_mode": "steer", "tool_concurrency": concurrency}
    process = await place.process(profile(limits=limits))
    place.shop.gates["look", 0] = gate = Gate()
    await process.send("first")
    await gate.reached()
    steer = await process.send("no, the other one")
    gate.open()
    await process.idle()
    place.shop.gates.clear()

    assert steer.verdict is Verdict.STEERED
    messages = await process.messages()  # read strictly
    assert [message.content for message in messages][size + 2] == "no, the other one"

    another = await place.process(profile(limits=limits))
    for text in ("second", "third"):
        await another.send(text)
        await another.idle()
    assert await another.said() == ["first", "no, the other one", "second", "third"]
    assert await another.answers() == ["First.", "Ok.", "Ok."]
    assert len(await another.turns()) == 3


@pytest.mark.parametrize("count", [1, 3, 7])
async def test_steers_between_the_last_boundary_and_the_end_each_appear_once(place_for, count):
    """Fault 3: an acknowledged steer vanished, or ran twice."""
    script = Script(rules=[Rule([batch(1), Say("Done.")], when="^hello"), Rule([Say("And that.")])])
    model = HeldModel(script, nth=2)
    process = await place_for(script).process(STEER, model=model)
    await process.send("hello")
    await model.gate.reached()

    verdicts = [(await process.send(f"steer {number}")).verdict for number in range(count)]
    model.gate.open()
    await process.idle()

    assert verdicts == [Verdict.STEERED] * count
    assert Counter(await process.said()) == Counter(["hello", *(f"steer {number}" for number in range(count))])
    first, second = await process.turns()
    assert (first.state, second.state) == (TurnState.COMPLETED, TurnState.COMPLETED)
    (released,) = process.events.of("turn_steer_released")
    assert released.data == {"released_as": second.id, "count": count}
    assert await process.answers() == ["Done.", "And that."]


async def test_steers_that_arrive_at_every_instant_of_a_turn_each_appear_once(place_for):
    """One before and one after each operation of the store once the turn has begun."""
    place = place_for(Script(rules=[Rule([batch(2), batch(1), Say("Done.")], restarts=True)]))
    process = await place.process(profile(limits={"queue_mode": "steer", "steer_max_messages": 1000}))
    sent: list[str] = []
    sending = False

    async def somebody_writes(when: str, operation: str) -> None:
        nonlocal sending
        began = "start" in process.store.operations
        too_early = not began or (when, operation) == ("before", "start")
        if sending or too_early or len(sent) >= 30 or operation == "accept":
            return
        sending = True
        text = f"{len(sent)} {when} {operation}"
        sent.append(text)
        await process.send(text)
        sending = False

    process.store.hook = somebody_writes
    await process.send("hello")
    await process.idle()

    assert await process.said() == ["hello", *sent]
    assert (await process.row()).waiting == 0


async def test_a_steer_beyond_what_a_turn_takes_becomes_the_next_turn(place_for):
    place = place_for(Script(rules=[Rule([batch(1), batch(2), Say("Done.")]), Rule([Say("And that.")])]))
    process = await place.process(profile(limits={"queue_mode": "steer", "steer_max_messages": 2}))
    place.shop.gates["look", 0] = gate = Gate()
    await process.send("hello")
    await gate.reached()
    early = [(await process.send(text)).verdict for text in ("1", "2", "3")]
    late: list[Verdict] = []

    async def once_more(when: str, operation: str) -> None:
        second_batch = (when, operation) == ("after", "append") and process.store.operations.count("append") == 2
        if second_batch:
            late.append((await process.send("4")).verdict)

    process.store.hook = once_more
    gate.open()
    await process.idle()

    assert early == [Verdict.STEERED] * 3
    assert late == [Verdict.ACCEPTED]
    assert await process.said() == ["hello", "1", "2", "3", "4"]
    first, released, last = [turn.id for turn in await process.turns()]
    spoken_in = [entry.turn_id for entry in await process.log() if entry.position]
    assert spoken_in == [first, first, first, released, last]


async def test_steers_of_a_turn_that_fails_become_a_turn(place_for):
    place = place_for(Script(rules=[Rule([batch(1), Fail("closed", fatal=True)], when="hello"), Rule([Say("Ok.")])]))
    process = await place.process(STEER)

    async def somebody_writes(when: str, operation: str) -> None:
        if (when, operation) == ("before", "end"):
            await process.send("still there?")

    process.store.hook = somebody_writes
    await process.send("hello")
    await process.idle()

    assert [turn.state for turn in await process.turns()] == [TurnState.FAILED, TurnState.COMPLETED]
    assert await process.said() == ["hello", "still there?"]


async def test_a_message_to_somebody_else_does_not_steer(place_for):
    place = place_for(Script([batch(1), Say("Done.")]))
    place.shop.gates["look", 0] = gate = Gate()
    process = await place.process(STEER)
    await process.send("hello", recipient="ana")
    await gate.reached()
    other = await process.send("hello", recipient="ben")
    gate.open()
    await process.idle()

    assert other.verdict is Verdict.ACCEPTED
    assert len(await process.turns()) == 2


@pytest.mark.parametrize("origin", ["engine", "scheduled"])
async def test_what_a_timer_says_never_joins_or_cuts_a_person_s_turn(place_for, origin):
    place = place_for(Script([batch(1), Say("Done.")]))
    place.shop.gates["look", 0] = gate = Gate()
    process = await place.process(STEER)
    await process.send("hello")
    await gate.reached()
    verdicts = [(await process.send("tick", origin=origin, queue_mode=mode)).verdict for mode in ("steer", "interrupt")]
    gate.open()
    await process.idle()

    assert verdicts == [Verdict.ACCEPTED] * 2
    assert [turn.state for turn in await process.turns()] == [TurnState.COMPLETED] * 3


async def test_somebody_who_never_stops_writing_neither_holds_up_the_turn_nor_hides_an_interrupt(place_for):
    place = place_for(Script(rules=[Rule([batch(1), Say("Done.")], when="hello|more")], afterwards=Say("Stopped.")))
    process = await place.process(profile(limits={"queue_mode": "steer", "steer_max_messages": 100}))
    tries = 0

    async def more_and_more(when: str, operation: str) -> None:
        nonlocal tries
        if (when, operation) == ("before", "cross_boundary"):
            tries += 1
            await process.send("stop" if tries == 6 else "more", queue_mode="interrupt" if tries == 6 else "steer")

    process.store.hook = more_and_more
    accepted = await process.send("hello")
    await process.idle()

    assert tries >= 6
    assert (await process.turn(accepted.turn_id)).error["type"] == "interrupted"
    assert Counter(await process.said()) == Counter({"hello": 1, "more": tries - 1, "stop": 1})


async def test_a_turn_that_dies_after_absorbing_a_steer_does_not_absorb_it_again(place_for):
    place = place_for(Script(rules=[Rule([batch(1), batch(2), Say("Done.")])]))
    limits = {"queue_mode": "steer", "steer_max_messages": 2, "steer_join": "added: %{message}"}
    first = await place.process(profile(limits=limits))
    place.shop.gates["look", 0] = gate = Gate()
    place.shop.gates["look", 1] = second_batch = Gate()
    await first.send("hello")
    await gate.reached()
    await first.send("one")
    gate.open()
    await second_batch.reached()
    await first.send("two")
    await first.send("three")
    await first.die()
    place.shop.gates.clear()
    second = await place.process(profile(limits=limits))
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.idle()

    texts = [message.content for message in await second.messages() if message.role == "user"]
    assert texts == ["hello", "added: one", "added: two", "three"]
    assert len(await second.turns()) == 2


async def test_messages_raced_into_a_session_from_many_sides_each_appear_once(place_for):
    place = place_for(Script([batch(1), Say("Done.")]))
    processes = [await place.process(STEER) for _ in range(3)]

    async def writes(number: int) -> None:
        for nth in range(8):
            await processes[number].send(f"{number}.{nth}")
            await asyncio.sleep(0)

    await asyncio.gather(*(writes(number) for number in range(3)))
    for _ in range(6):
        for process in processes:
            await process.idle()
            await process.sweep()

    entries = [entry for entry in await processes[0].log() if entry.position is not None]
    assert Counter(entry.message.content for entry in entries) == Counter(
        f"{number}.{nth}" for number in range(3) for nth in range(8)
    )
    for turn in await processes[0].turns():
        positions = [entry.position for entry in entries if entry.turn_id == turn.id]
        assert positions == sorted(positions)
    opened = [next(entry.position for entry in entries if entry.turn_id == id) for id in _in_order(entries)]
    assert opened == sorted(opened)


def _in_order(entries) -> list[str]:
    return list(dict.fromkeys(entry.turn_id for entry in entries))
