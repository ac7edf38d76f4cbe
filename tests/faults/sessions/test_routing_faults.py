"""A turn that is sorted, handed on and sorted again, and an owner that dies, or hears nothing of its store, at any
moment of that: the next one goes on where the turn stands."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from insika.crash_points import CrashPoint
from insika.storage.rows import TurnState
from insika.testing import Call, Rule, Say, Script
from tests.actor_world import LEASE_S, Died, Gate, Process, RefusingGuard, unavailable
from tests.routed_models import front, models, orders, sorter

INNER = {"late": "is late", "lost": {"description": "is lost", "stuck": True}, "default": "late"}
CHAIN = (
    front(),
    orders(routes={**INNER, "model": "offline/second"}, tools_allow=[]),
)
OPERATIONS = {"start": 1, "route_turn": 2, "redirect_turn": 1, "commit": 1}
"""How often each is asked of the store in one such turn."""
POINTS = {
    CrashPoint.TURN_STARTED: 1,
    CrashPoint.ROUTE_FOUND: 2,
    CrashPoint.TURN_ROUTED: 2,
    CrashPoint.TURN_REDIRECTED: 1,
}


def each(times: Mapping[Any, int]) -> list[tuple[Any, int]]:
    return [(name, nth) for name, count in times.items() for nth in range(1, count + 1)]


def chain_models():
    return models(second=sorter(lost="person", late="order"))


async def judge(process: Process, turn_id: str | None, *, stuck: bool = False) -> None:
    """The turn has ended as if nothing had happened; nothing is lost, doubled or left open."""
    turn = await process.turn(turn_id)
    assert (turn.state, turn.agent, turn.depth, turn.route) == (TurnState.COMPLETED, "orders", 1, "order"), turn
    assert turn.routes == ("order", "lost" if stuck else "late")
    assert turn.outcome == ("stuck" if stuck else "completed")
    assert await process.answers() == ["is lost" if stuck else "It is on its way."]
    rows = await process.store.real.model_calls(turn.id)
    assert {row.state for row in rows} <= {"measured", "estimated"}
    measured = [(row.agent, row.purpose) for row in rows if row.state == "measured"]
    assert sorted(measured) == sorted(
        [("agent", "classify"), ("orders", "classify"), *([] if stuck else [("orders", "answer")])]
    )
    assert all(row.usage.total > 0 for row in rows)


def dies(process: Process) -> None:
    process.store.dead = True
    raise Died


@pytest.mark.parametrize("text", ["my order", "my order, by a person"])
@pytest.mark.parametrize(("point", "nth"), each(POINTS))
async def test_a_death_at_any_point_of_routing_spoils_nothing(place_for, point, nth, text) -> None:
    place, model = place_for(Script()), chain_models()
    process = await place.process(*CHAIN, model=model)
    met = itertools.count(1)

    def crash(here: CrashPoint) -> None:
        if here is point and next(met) == nth:
            dies(process)

    process.crash = crash
    accepted = await process.send(text)
    await process.idle()
    assert process.store.dead
    await process.die()
    once_more = point is CrashPoint.ROUTE_FOUND
    second = await place.process(*CHAIN, model=model)
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.finish()
    await judge(second, accepted.turn_id, stuck="person" in text)
    assert model.asked("sorter") == 1 + (once_more and nth == 1)
    assert model.asked("second") == 1 + (once_more and nth == 2)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("operation", "nth"), each(OPERATIONS))
@pytest.mark.parametrize("text", ["my order", "my order, by a person"])
async def test_a_death_around_any_write_of_routing_spoils_nothing(place_for, when, operation, nth, text) -> None:
    place, model = place_for(Script()), chain_models()
    process = await place.process(*CHAIN, model=model)
    met = itertools.count(1)

    async def hook(now: str, name: str) -> None:
        if (now, name) == (when, operation) and next(met) == nth:
            dies(process)

    process.store.hook = hook
    accepted = await process.send(text)
    await process.idle()
    assert process.store.dead
    await process.die()
    second = await place.process(*CHAIN, model=model)
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.finish()
    await judge(second, accepted.turn_id, stuck="person" in text)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("text", ["my order", "my order, by a person"])
async def test_a_write_of_routing_without_an_answer_spoils_nothing(place_for, when, operation, text) -> None:
    """The owner does not know whether it was written; no classifier whose word was kept is asked again."""
    place, model = place_for(Script()), chain_models()
    process = await place.process(*CHAIN, model=model)
    failed = itertools.count(1)

    async def hook(now: str, name: str) -> None:
        if (now, name) == (when, operation) and next(failed) == 1:
            raise unavailable()

    process.store.hook = hook
    accepted = await process.send(text)
    await process.finish()
    await judge(process, accepted.turn_id, stuck="person" in text)
    again = operation == "route_turn" and when == "before"
    assert (model.asked("sorter"), model.asked("second")) == (1 + again, 1)


async def test_a_death_while_the_classifier_talks_is_asked_again_and_both_are_booked(place_for) -> None:
    place, model = place_for(Script()), chain_models()
    model.gates["sorter"] = gate = Gate()
    process = await place.process(*CHAIN, model=model)
    accepted = await process.send("my order")
    await gate.reached()
    await process.die()
    model.gates.clear()
    second = await place.process(*CHAIN, model=model)
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.finish()
    await judge(second, accepted.turn_id)
    rows = await second.store.real.model_calls(accepted.turn_id or "")
    first = [(row.attempt, row.state) for row in rows if row.purpose == "classify" and row.agent == "agent"]
    assert sorted(first) == [(1, "estimated"), (2, "measured")]
    usage = second.events.of("turn_completed")[0].data["usage"]
    assert usage["input"] == sum(row.usage.input for row in rows)


async def test_a_cancel_that_comes_with_the_classifiers_word_ends_the_turn(place_for) -> None:
    place, model = place_for(Script()), chain_models()
    process = await place.process(*CHAIN, model=model)
    met = itertools.count(1)

    async def hook(now: str, name: str) -> None:
        if (now, name) == ("before", "redirect_turn") and next(met) == 1:
            await process.cancel((await process.row()).turn_id or "")

    process.store.hook = hook
    accepted = await process.send("my order")
    await process.finish()
    turn = await process.turn(accepted.turn_id)
    assert (turn.state, turn.routes, turn.depth) == (TurnState.CANCELLED, ("order",), 0)
    assert await process.answers() == []
    assert process.events.of("turn_cancelled")[0].data["route"] == "order"
    assert {row.state for row in await process.store.real.model_calls(turn.id)} == {"measured"}


async def test_a_refused_interrupt_costs_no_word_of_a_classifier(place_for) -> None:
    place, model = place_for(Script()), chain_models()
    process = await place.process(*CHAIN, model=model, guard=RefusingGuard())
    met = itertools.count(1)

    async def hook(now: str, name: str) -> None:
        if (now, name) == ("before", "route_turn") and next(met) == 1:
            await process.send("rude", queue_mode="interrupt")

    process.store.hook = hook
    accepted = await process.send("my order")
    await process.finish()
    await judge(process, accepted.turn_id)
    assert (model.asked("sorter"), model.asked("second")) == (1, 1)


async def test_a_delegated_turn_is_taken_up_in_the_middle_by_the_agent_that_has_it(place_for) -> None:
    script = Script(rules=[Rule([Call("look", {"n": 1}), Say("It is on its way.")])])
    place, model = place_for(Script()), models(orders=script)
    profiles = (front(), orders())
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process(*profiles, model=model)
    accepted = await process.send("my order")
    await gate.reached()
    await process.die()
    place.shop.gates.clear()
    second = await place.process(*profiles, model=model)
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.finish()
    turn = await second.turn(accepted.turn_id)
    assert (turn.outcome, turn.agent, turn.routes) == ("completed", "orders", ("order",))
    assert model.asked("sorter") == 1
    assert {request.instructions for request in model.requests[1:]} == {"You know orders."}


async def test_the_time_that_a_dead_owner_had_counts_against_the_other_agents_limit(place_for) -> None:
    place, model = place_for(Script()), models()
    profiles = (front(), orders(limits={"turn_timeout": LEASE_S}))
    process = await place.process(*profiles, model=model)

    def crash(here: CrashPoint) -> None:
        if here is CrashPoint.TURN_ROUTED:
            dies(process)

    process.crash = crash
    accepted = await process.send("my order")
    await process.idle()
    await process.die()
    second = await place.process(*profiles, model=model)
    place.clock.advance(LEASE_S + 1)
    await second.sweep()
    await second.finish()
    turn = await second.turn(accepted.turn_id)
    assert (turn.agent, turn.state, turn.error["type"]) == ("orders", TurnState.FAILED, "timeout")
    assert model.asked("orders") == 0
