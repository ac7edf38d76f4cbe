"""Faults 9, 17, 20, 25 and 31: order, repeats, rows that grow, and what a repeat of a failed job is told."""

from __future__ import annotations

import asyncio

import pytest

from insika.storage.rows import TurnState, Verdict
from insika.testing import Call, Calls, Fail, Rule, Say, Script
from tests.actor_world import LEASE_S, Gate, Place

ECHO = Script([lambda scene: Say(f"re {scene.text}")])
LOOKS = Script([Call("look", {"n": 1}), lambda scene: Say(f"re {scene.text}")])


async def test_messages_that_come_during_a_turn_are_each_run_in_order(place_for):
    """Fault 9: several messages came during one turn, and only the first was ever run."""
    place = place_for(Script(rules=[Rule([Call("look", {"n": 1}), Say("re 0")], when="^0$"), *_echo()]))
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    await process.send("0")
    await gate.reached()
    for number in range(1, 6):
        assert (await process.send(str(number))).verdict is Verdict.ACCEPTED
    gate.open()
    await process.idle()

    assert await process.answers() == [f"re {number}" for number in range(6)]
    assert [turn.state for turn in await process.turns()] == [TurnState.COMPLETED] * 6


def _echo() -> list[Rule]:
    return [Rule([lambda scene: Say(f"re {scene.text}")])]


async def test_twenty_numbered_jobs_of_one_session_are_twenty_turns_in_order_over_two_processes(place_for):
    place = place_for(LOOKS)
    one, two = await place.process(), await place.process()
    for number in range(20):
        await (one, two)[number % 2].send(str(number))
    for _ in range(3):
        await asyncio.gather(one.idle(), two.idle())
        await one.sweep()
        await two.sweep()
    await asyncio.gather(one.idle(), two.idle())

    assert await one.said() == [str(number) for number in range(20)]
    assert await one.answers() == [f"re {number}" for number in range(20)]
    assert place.shop.count("look") == 20
    assert len({turn.id for turn in await one.turns()}) == 20


async def test_two_sessions_run_at_once(place_for):
    place = place_for(Script([lambda scene: Call("look", {"n": int(scene.text)}), Say("Done.")]))
    gates = [Gate(), Gate()]
    place.shop.gates = {("look", number): gate for number, gate in enumerate(gates)}
    process = await place.process()
    await process.send("0", "ana")
    await process.send("1", "ben")
    for gate in gates:
        await gate.reached()
    for gate in gates:
        gate.open()
    await process.idle()

    assert await process.answers("ana") == await process.answers("ben") == ["Done."]


async def test_only_so_many_sessions_run_at_once_as_there_are_slots_and_none_is_forgotten(place_for):
    place = place_for(Script([lambda scene: Call("look", {"n": 1}), Say("Done.")]))
    process = await place.process(slots=2)
    running = most = 0

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1

    place.shop.gates["look", 1] = count
    for number in range(7):
        await process.send("hello", f"s{number}")
    await process.idle()

    assert most <= 2
    for number in range(7):
        assert await process.answers(f"s{number}") == ["Done."]


async def test_a_job_and_a_wake_that_come_again_while_the_first_still_runs_change_nothing(place_for):
    place = place_for(LOOKS)
    place.shop.gates["look", 1] = gate = Gate()
    one, two = await place.process(), await place.process()
    first = await one.send("hello", id="job")
    await gate.reached()
    for process in (one, two, one, two):
        again = await process.send("hello", id="job")
        assert (again.verdict, again.turn_id, again.turn_state) == ("duplicate", first.turn_id, TurnState.RUNNING)
        process.session(first.session_id)
    await two.idle()
    gate.open()
    await one.idle()
    await two.idle()

    assert await one.answers() == ["re hello"]
    assert place.shop.count("look") == 1
    assert [turn.attempt for turn in await one.turns()] == [1]


async def test_a_message_that_comes_while_its_session_is_just_being_released_is_run_at_once(place_for):
    """No sweeper is needed for it: its wake found the actor still there and was not forgotten."""
    place = place_for(ECHO)
    process = await place.process()

    async def another_one_comes(when: str, operation: str) -> None:
        if (when, operation) == ("after", "commit") and process.store.operations.count("commit") == 1:
            await process.send("two")

    process.store.hook = another_one_comes
    await process.send("one")
    await process.idle()

    assert await process.answers() == ["re one", "re two"]


@pytest.mark.parametrize("operation", ["load", "commit", "start"])
async def test_a_message_that_comes_just_before_a_write_is_not_forgotten(place_for, operation):
    place = place_for(ECHO)
    process = await place.process()

    async def another_one_comes(when: str, reached: str) -> None:
        if (when, reached) == ("before", operation) and process.store.operations.count(operation) == 1:
            await process.send("two")

    process.store.hook = another_one_comes
    await process.send("one")
    await process.idle()

    assert await process.answers() == ["re one", "re two"]


async def test_the_same_id_with_other_words_is_refused_and_names_the_field(place_for):
    process = await place_for(ECHO).process()
    await process.send("hello", id="job")
    await process.idle()
    refused = await process.send("goodbye", id="job")

    assert (refused.verdict, refused.field) == (Verdict.REJECTED, "id")
    assert await process.said() == ["hello"]


async def test_a_repeat_of_a_failed_job_is_told_which_turn_it_was_and_that_it_failed(place_for):
    process = await place_for(Script([Fail("closed", fatal=True)])).process()
    first = await process.send("hello", id="job")
    await process.idle()
    again = await process.send("hello", id="job")

    assert (again.verdict, again.turn_id, again.turn_state) == ("duplicate", first.turn_id, TurnState.FAILED)
    assert process.events.of("turn_accepted")[-1].data["turn_state"] == "failed"
    assert len(await process.turns()) == 1


async def test_rows_grow_by_what_was_said_and_by_nothing_else(place_for):
    """A turn with two calls: five messages, two calls, two requests, one turn, one mail; the same each time."""
    place = place_for(Script([Calls([Call("look", {"n": 1}), Call("pay", {"n": 1})]), Say("Done.")]))
    process = await place.process()
    each = {"messages": 5, "tool_calls": 2, "model_calls": 2, "turns": 1, "mailbox": 1, "outbox": 1}
    for number in range(1, 8):
        await process.send(f"message {number}", channel="web")
        await process.idle()
        assert await process.counts() == {table: number * rows for table, rows in each.items()}


async def test_a_resume_adds_an_attempt_at_the_model_and_nothing_else(place_for):
    place = place_for(Script([Calls([Call("look", {"n": 1}), Call("pay", {"n": 1})]), Say("Done.")]))
    process = await place.process()
    for number in range(1, 4):
        place.shop.gates["look", 1] = gate = Gate()
        await process.send(f"message {number}", channel="web")
        await gate.reached()
        await process.die()
        place.shop.gates.clear()
        process = await place.process()
        place.clock.advance(LEASE_S + 1)
        await process.sweep()
        await process.idle()
        counts = await process.counts()
        assert counts == {
            "messages": 5 * number,
            "tool_calls": 2 * number,
            "model_calls": 2 * number,
            "turns": number,
            "mailbox": number,
            "outbox": number,
        }


async def test_after_a_restart_in_the_middle_the_session_is_free_and_its_answer_there(place_for):
    """Fault 19: neither busy for ever, nor silent."""
    place: Place = place_for(LOOKS)
    place.shop.gates["look", 1] = gate = Gate()
    first = await place.process()
    await first.send("hello", channel="web")
    await gate.reached()
    await first.die()
    place.shop.gates.clear()

    second = await place.process()
    assert await second.sweep() == 0  # until the lease has run out it might live
    await second.send("next", channel="web")
    await second.idle()
    assert await second.answers() == []
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.idle()

    assert await second.answers() == ["re hello", "re next"]
    assert [row["state"] for row in await second.select("SELECT state FROM outbox")] == ["pending", "pending"]
    row = await second.row()
    assert (row.turn_id, row.lease_id, row.waiting) == (None, None, 0)
