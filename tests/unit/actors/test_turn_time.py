"""The time a turn has: what its owners worked, by the clock of the store, and neither what it waited for a person nor
what an operator held it for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from actors.stage import worked_s
from insika.storage.rows import SessionRow, TurnRow, TurnState
from insika.testing import Call, Rule, Say, Script
from tests.actor_world import LEASE_S, Gate, profile

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SCRIPT = Script(rules=[Rule([Call("pay", {"n": 1}), Call("look", {"n": 2}), Say("Done.")])])


def timed(seconds: float, **values) -> dict:
    return profile(limits={"turn_timeout": seconds, "tool_timeout": 600}, **values)


async def test_the_wait_for_a_person_does_not_count(place_for):
    place = place_for(SCRIPT)
    process = await place.process(timed(60, approvals_required=["pay"]))
    accepted = await process.send("hello")
    await process.idle()
    place.clock.advance(1_000)
    await process.send("still there?")  # an idle claim ends one wait and begins another
    await process.idle()
    place.clock.advance(1_000)
    await process.approve()
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED


async def test_an_operator_s_hold_does_not_count(place_for):
    place = place_for(SCRIPT)
    place.shop.gates["pay", 1] = gate = Gate()
    process = await place.process(timed(60))
    accepted = await process.send("hello")
    await gate.reached()
    await process.control.pause("s")
    gate.open()
    await process.idle()
    place.clock.advance(10_000)
    await process.control.resume("s")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).state is TurnState.COMPLETED


@pytest.mark.parametrize(("worked", "ends"), [((20, 20), TurnState.COMPLETED), ((40, 40), TurnState.FAILED)])
async def test_work_counts_over_several_owners_and_waits(place_for, worked, ends):
    place = place_for(SCRIPT)
    held = timed(60)
    process = await place.process(held)
    for (tool, n), seconds in zip((("pay", 1), ("look", 2)), worked, strict=True):

        async def work(seconds: float = seconds) -> None:
            place.clock.advance(seconds)
            process.keeper.renew_once()
            await process.control.pause("s")

        place.shop.gates[tool, n] = work
    accepted = await process.send("hello")
    for _ in range(2):
        await process.idle()
        place.clock.advance(5_000)
        await process.die()
        process = await place.process(held)
        await process.control.resume("s")
    await process.idle()

    turn = await process.turn(accepted.turn_id)
    assert turn.state is ends
    if ends is TurnState.FAILED:
        assert turn.error["type"] == "timeout"
        assert "60 s" in turn.error["message"]


async def test_the_time_between_a_death_and_the_takeover_counts(place_for):
    """Nobody let the turn go: whether its owner worked until then, nobody knows."""
    place = place_for(SCRIPT)
    place.shop.gates["pay", 1] = gate = Gate()
    first = await place.process(timed(60))
    accepted = await first.send("hello")
    await gate.reached()
    await first.die()
    place.shop.gates.clear()
    second = await place.process(timed(60))
    place.clock.advance(LEASE_S + 60)
    await second.sweep()
    await second.idle()
    assert (await second.turn(accepted.turn_id)).error["type"] == "timeout"


async def test_a_drain_does_not_count(place_for):
    place = place_for(SCRIPT)
    place.shop.gates["pay", 1] = gate = Gate()
    first = await place.process(timed(60))
    accepted = await first.send("hello")
    await gate.reached()
    first.runtime._leaving = True
    gate.open()
    await first.idle()
    await first.die()
    place.clock.advance(1_000)
    second = await place.process(timed(60))
    await second.sweep()
    await second.idle()
    assert (await second.turn(accepted.turn_id)).state is TurnState.COMPLETED


def rows(started_s_ago: float | None, parked_ms: int) -> tuple[SessionRow, TurnRow]:
    times = (NOW, NOW, 1, 0, 1, 0, 0)
    session = SessionRow(1, "", "s", 1, None, None, NOW, False, *times[2:], "t", None, None, None, 0, 0)
    started = None if started_s_ago is None else NOW - timedelta(seconds=started_s_ago)
    address = ("agent", None, "someone", "customer")
    turn = TurnRow(
        "t", 1, 1, TurnState.RUNNING, None, 1, *address, "r", {}, False, None, {}, None, 1, NOW, started, None
    )
    return SessionRow(**{**{name: getattr(session, name) for name in session.__slots__}, "parked_ms": parked_ms}), turn


@pytest.mark.parametrize(
    ("started_s_ago", "parked_ms", "worked"), [(None, 0, 0), (10, 0, 10), (10, 4_000, 6), (10, 11_000, 0), (-5, 0, 0)]
)
def test_what_was_worked_is_what_was_not_parked_and_never_less_than_nothing(started_s_ago, parked_ms, worked):
    assert worked_s(*rows(started_s_ago, parked_ms), NOW) == worked
