"""Faults 17, 18 and 26: two processes and one session; an owner that overslept; a turn that kills its workers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from insika.clock import ManualClock
from insika.crash_points import CrashPoint
from insika.storage.rows import TurnState
from insika.testing import Call, Calls, Rule, Say, Script
from tests.actor_world import LEASE_S, Died, Gate, Place, Process, no_hook, profile

LONG = Script([Call("pay", {"n": 1}), Calls([Call("pay", {"n": 2}), Call("look", {"n": 3})]), Say("All paid.")])
WRITES = [
    *[("load", 1), ("start", 1), ("append", 1), ("append", 2), ("start_call", 1), ("start_call", 2)],
    *[("finish_call", 1), ("finish_call", 2), ("cross_boundary", 1), ("cross_boundary", 2), ("commit", 1)],
]


async def everything(process: Process) -> dict[str, list[dict[str, Any]]]:
    tables = ("sessions", "mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")
    return {table: await process.select(f"SELECT * FROM {table}") for table in tables}


def sleeping(clock: ManualClock) -> ManualClock:
    """A clock of its own, that does not see the time pass which the process sleeps through."""
    return ManualClock(clock.now(), clock.monotonic())


@pytest.mark.parametrize(("operation", "nth"), WRITES)
@pytest.mark.parametrize("notices", [True, False], ids=["its clock went on", "its clock stood still"])
async def test_an_owner_that_overslept_its_lease_writes_and_starts_nothing(place_for, operation, nth, notices):
    """It sleeps before a write; another takes over and ends the turn; it wakes and goes on."""
    place: Place = place_for(LONG)
    stale = await place.process(clock=place.clock if notices else sleeping(place.clock))
    gate = Gate()

    async def sleep(when: str, reached: str) -> None:
        if when == "before" and reached == operation and stale.store.operations.count(operation) == nth:
            await gate()

    stale.store.hook = sleep
    await stale.send("hello", channel="web")
    await gate.reached()
    ran_before = list(place.shop.ran)
    place.clock.advance(LEASE_S + 1)
    other = await place.process()
    await other.sweep()
    await other.idle()
    done = await everything(other)
    ran_after = list(place.shop.ran)

    gate.open()
    await stale.idle()

    assert await everything(other) == done
    assert place.shop.ran == ran_after
    assert ran_after[: len(ran_before)] == ran_before
    place.shop.once_each("pay")
    assert await other.answers() == ["All paid."]
    assert len(done["outbox"]) == 1
    assert stale.deliveries_rung == 0
    assert "turn_completed" not in stale.events.types


@pytest.mark.parametrize("tool", ["look", "pay"])
async def test_an_owner_that_overslept_within_a_tool_starts_no_other(place_for, tool):
    place: Place = place_for(Script([Call(tool, {"n": 1}), Call("pay", {"n": 2}), Say("All paid.")]))
    place.shop.gates[tool, 1] = gate = Gate()
    stale = await place.process()
    await stale.send("hello", channel="web")
    await gate.reached()
    place.clock.advance(LEASE_S + 1)
    del place.shop.gates[tool, 1]
    other = await place.process()
    await other.sweep()
    await other.idle()
    ran = list(place.shop.ran)
    gate.open()
    await stale.idle()

    assert place.shop.ran == ran
    assert place.shop.count("pay") == (1 if tool == "look" else 2)
    place.shop.once_each("pay")
    assert await other.answers() == ["All paid."]


@pytest.mark.parametrize("shift", [300.0, -300.0])
async def test_a_clock_that_is_set_breaks_no_rule(place_for, shift):
    """The wall clock of one process jumps while the turn runs: at worst the session changes hands. To the turn such a
    jump is time that it has used, so here it has plenty."""
    place: Place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    patient = profile(limits={"turn_timeout": 3600})
    one = await place.process(patient, clock=sleeping(place.clock))
    two = await place.process(patient, clock=sleeping(place.clock))
    await one.send("hello", channel="web")
    await gate.reached()
    two.clock.jump(shift)
    await two.sweep()
    await two.idle()
    gate.open()
    await one.idle()
    two.clock.advance(2 * LEASE_S)
    await two.finish()

    place.shop.once_each("pay")
    assert await two.answers() == ["All paid."]
    assert len(await two.select("SELECT id FROM outbox")) == 1


async def test_while_an_owner_renews_nobody_takes_its_session(place_for):
    place: Place = place_for(LONG)
    place.shop.gates["pay", 1] = gate = Gate()
    one, two = await place.process(), await place.process()
    await one.send("hello")
    await gate.reached()
    for _ in range(10):
        place.clock.advance(LEASE_S / 3)
        one.keeper.loop_ticked()
        one.keeper.renew_once()
        two.session((await two.row()).id)
        await two.sweep()
        await two.idle()
    gate.open()
    await one.idle()

    assert [turn.attempt for turn in await one.turns()] == [1]
    assert await one.answers() == ["All paid."]
    assert (await one.row()).deaths == 0


async def test_two_processes_that_claim_at_once_are_one_owner(place_for):
    place: Place = place_for(LONG)
    processes = [await place.process() for _ in range(4)]
    accepted = await processes[0].send("hello", channel="web")
    for process in processes:
        process.session(accepted.session_id)
    await asyncio.gather(*(process.idle() for process in processes))

    assert place.shop.count("pay") == 2
    assert sum(process.events.types.count("turn_started") for process in processes) == 1


# --- deaths -----------------------------------------------------------------------------------------------------------


MURDERER = Script(
    rules=[
        Rule([Call("look", {"n": 1}), Call("put", {"n": 666}), Say("survived")], when="kill"),
        Rule([Call("look", {"n": 2}), Call("pay", {"n": 2}), Say("fine")]),
    ]
)


async def test_a_turn_that_kills_its_worker_three_times_ends_visibly_and_alone(place_for):
    place: Place = place_for(MURDERER)

    lives = 0
    for _ in range(6):
        place.clock.advance(LEASE_S + 1)
        process = await place.process()
        await process.sweep()
        if lives == 0:
            killer = await process.send("kill", "bad", channel="web")
            after = await process.send("after that", "bad", channel="web")
            for number in range(3):
                await process.send("hello", f"good-{number}", channel="web")

        async def dies(process: Process = process) -> None:
            process.store.dead = True
            raise Died

        place.shop.gates["put", 666] = dies
        await process.idle()
        lives += 1
        if not process.store.dead:
            break
        await process.die()
    await process.finish()

    turn = await process.turn(killer.turn_id)
    assert (turn.state, turn.outcome, turn.error["type"]) == (TurnState.FAILED, "failed", "worker_lost")
    assert lives == 4
    assert place.shop.count("put") == 3
    assert (await process.turn(after.turn_id)).state is TurnState.COMPLETED
    for number in range(3):
        assert await process.answers(f"good-{number}") == ["fine"]
    place.shop.once_each("pay")
    assert len(await process.select("SELECT id FROM outbox")) == 4
    (failed,) = [event for event in process.events.of("turn_failed") if event.turn_id == killer.turn_id]
    assert failed.data["error"] == "worker_lost"


@pytest.mark.parametrize("point", [CrashPoint.CLAIMED, CrashPoint.LOADED])
async def test_a_session_that_kills_before_its_turn_begins_ends_visibly_too(place_for, point):
    place: Place = place_for(Script([Say("fine")]))
    for life in range(3):
        place.clock.advance(LEASE_S + 1)
        process = await place.process()
        await process.sweep()

        def die(reached: CrashPoint, process: Process = process) -> None:
            if reached is point:
                process.store.dead = True
                raise Died

        process.crash = die
        if life == 0:
            doomed = await process.send("hello")
        await process.idle()
        assert process.store.dead
        await process.die()

    survivor = await place.process()
    later = await survivor.send("next")
    place.clock.advance(LEASE_S + 1)
    await survivor.sweep()
    await survivor.idle()

    turn = await survivor.turn(doomed.turn_id)
    assert (turn.state, turn.error["type"]) == (TurnState.FAILED, "worker_lost")
    assert (await survivor.turn(later.turn_id)).state is TurnState.COMPLETED
    assert await survivor.said() == ["hello", "next"]


async def test_only_one_suspect_runs_in_a_process_at_a_time(place_for):
    place: Place = place_for(Script([lambda scene: Call("look", {"n": int(scene.text)}), Say("fine")]))
    for life in range(2):
        place.clock.advance(LEASE_S + 1)
        process = await place.process()
        await process.sweep()
        place.shop.gates = {("look", number): Gate() for number in range(3)}
        for number in range(3):
            if life == 0:
                await process.send(str(number), f"s{number}")
        for gate in list(place.shop.gates.values()):
            await gate.reached()
        await process.die()

    survivor = await place.process()
    running = most = 0

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1

    place.shop.gates = {("look", number): count for number in range(3)}
    await survivor.finish()

    assert most == 1
    for number in range(3):
        assert await survivor.answers(f"s{number}") == ["fine"]


async def test_progress_within_a_turn_does_not_forgive_its_deaths(place_for):
    """Each life gets one step further: it is the same turn that kills."""
    place: Place = place_for(Script([Call("put", {"n": n}) for n in range(9)]))
    for life in range(3):
        place.clock.advance(LEASE_S + 1)
        process = await place.process()
        await process.sweep()

        async def dies(process: Process = process) -> None:
            process.store.dead = True
            raise Died

        place.shop.gates = {("put", life): dies}
        if life == 0:
            accepted = await process.send("hello")
        await process.idle()
        await process.die()
    survivor = await place.process()
    place.shop.gates = {}
    await survivor.finish()

    turn = await survivor.turn(accepted.turn_id)
    assert turn.error["type"] == "worker_lost"
    assert turn.attempt == 4
    assert "tool" in {message.role for message in await survivor.messages()}


async def test_an_actor_that_fails_by_a_defect_concerns_nobody_else_and_counts_as_a_death(place_for):
    place: Place = place_for(MURDERER)
    process = await place.process()

    async def breaks(when: str, operation: str) -> None:
        if (when, operation) == ("before", "start_call"):
            raise RuntimeError("a defect")

    good = await process.send("hello", "good")
    await process.idle()
    process.store.hook = breaks
    bad = await process.send("kill", "bad")
    await process.idle()
    process.store.hook = no_hook
    other = await process.send("hello", "good")
    await process.finish()

    for turn_id in (good.turn_id, bad.turn_id, other.turn_id):
        assert (await process.turn(turn_id)).state is TurnState.COMPLETED
    assert (await process.turn(bad.turn_id)).attempt == 2


async def test_an_owner_that_overslept_between_two_harmless_calls_does_not_start_the_second(place_for):
    """Nothing is written between them, so only the lease itself can tell."""
    place: Place = place_for(Script([Calls([Call("look", {"n": 1}), Call("look", {"n": 2})]), Say("Seen.")]))
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process()
    stored: list[str] = []

    async def asleep(when: str, operation: str) -> None:
        if (when, operation) == ("after", "finish_call"):
            stored.append(operation)
        if when == "after" and operation in ("finish_call", "confirm"):
            place.clock.advance(LEASE_S + 1)  # nobody renews

    process.store.hook = asleep
    await process.send("hello")
    await gate.reached()
    gate.open()
    await process.idle()

    assert stored == ["finish_call"]
    assert place.shop.count("look") == 1
