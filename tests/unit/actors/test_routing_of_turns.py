"""Turns that are told apart before they are answered, from the job to the row, the events and the delivery."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from insika.messages import Role
from insika.providers.script import Call, Say
from insika.storage.rows import Mail, TurnState
from insika.testing import Fail, Script
from insika.turn.input_guard import Refusal
from tests.actor_world import CHANNEL, Gate, Process, RefusingGuard
from tests.routed_models import FAILING, ROUTES, front, models, orders


def told(process: Process, type: str) -> list[Mapping[str, Any]]:
    return [event.data for event in process.events.of(type)]


async def say(process: Process, text: str, **fields: Any) -> Any:
    accepted = await process.send(text, **fields)
    await process.idle()
    return await process.turn(accepted.turn_id)


async def payloads(process: Process, kind: str = "answer") -> list[dict[str, Any]]:
    rows = await process.select(f"SELECT payload FROM outbox WHERE kind = '{kind}'")
    return [json.loads(row["payload"]) for row in rows]


async def calls(process: Process, turn: Any) -> list[tuple[Any, ...]]:
    rows = await process.store.real.model_calls(turn.id)
    return sorted((row.step, row.attempt, row.purpose, row.model, row.state, row.agent) for row in rows)


# --- labels -----------------------------------------------------------------------------------------------------------


async def test_a_label_is_told_and_the_agent_answers(place_for) -> None:
    model = models()
    process = await place_for(Script()).process(front(), orders(), model=model)
    turn = await say(process, "a book, please", channel=CHANNEL)
    assert (turn.state, turn.outcome, turn.route, turn.routes) == (
        TurnState.COMPLETED,
        "completed",
        "shopping",
        ("shopping",),
    )
    assert await process.answers() == ["Look around."]
    (payload,) = await payloads(process)
    assert (payload["route"], payload["agent"], payload["outcome"]) == ("shopping", "agent", "completed")
    assert told(process, "route_classified") == [{"route": "shopping", "model": "offline/sorter", "defaulted": False}]
    (completed,) = told(process, "turn_completed")
    assert completed["route"] == "shopping"
    assert await calls(process, turn) == [
        (1, 1, "answer", "offline/front", "measured", "agent"),
        (1, 1, "classify", "offline/sorter", "measured", "agent"),
    ]


async def test_the_tokens_of_the_classifier_count(place_for) -> None:
    process = await place_for(Script()).process(front(), orders(), model=models())
    turn = await say(process, "a book, please")
    rows = await process.store.real.model_calls(turn.id)
    assert told(process, "turn_completed")[0]["usage"]["input"] == sum(row.usage.input for row in rows)
    assert all(row.usage.input > 0 for row in rows)


async def test_the_question_is_made_of_the_descriptions_and_has_nothing_of_the_conversation(place_for) -> None:
    model = models()
    process = await place_for(Script()).process(front(), orders(), model=model)
    await say(process, "a book, please")
    await say(process, "another book")
    question, answer = model.requests[2:]
    assert all(text in question.instructions for text in ("shopping: wants to browse", "order: asks about an order"))
    assert [json.loads(message.content) for message in question.messages] == [["another book"]]
    assert question.tools == ()
    first = model.requests[1]
    assert answer.instructions == first.instructions
    assert answer.messages[: len(first.messages)] == first.messages
    assert answer.tools == first.tools


async def test_an_answer_that_names_no_route_is_the_default(place_for) -> None:
    process = await place_for(Script()).process(front(), orders(), model=models())
    turn = await say(process, "hm")
    assert turn.route == "shopping"
    assert told(process, "route_classified") == [{"route": "shopping", "model": "offline/sorter", "defaulted": True}]


async def test_without_a_model_of_its_own_the_agents_sorts(place_for) -> None:
    routes = {name: value for name, value in ROUTES.items() if name != "model"}
    process = await place_for(Script()).process(front(routes=routes), orders(), model=models())
    turn = await say(process, "hm")
    assert told(process, "route_classified") == [{"route": "shopping", "model": "offline/front", "defaulted": True}]
    assert turn.outcome == "completed"


@pytest.mark.parametrize("failing", [FAILING, Script(afterwards=Fail("no", fatal=True))])
async def test_a_classifier_that_fails_leaves_the_turn_unrouted(place_for, failing) -> None:
    process = await place_for(Script()).process(front(), orders(), model=models(sorter=failing))
    turn = await say(process, "where is my order?", channel=CHANNEL)
    assert (turn.outcome, turn.route, turn.routes) == ("completed", None, (None,))
    assert await process.answers() == ["Look around."]
    assert told(process, "route_classified") == []
    (failure,) = told(process, "provider_failure")
    assert (failure["purpose"], failure["model"]) == ("classify", "offline/sorter")
    assert "route" not in (await payloads(process))[0]
    assert "route" not in told(process, "turn_completed")[0]
    assert await calls(process, turn) == [
        (1, 1, "answer", "offline/front", "measured", "agent"),
        (1, 1, "classify", "offline/sorter", "estimated", "agent"),
    ]


async def test_a_classifier_that_is_not_here_leaves_the_turn_unrouted(place_for) -> None:
    process = await place_for(Script()).process(
        front(routes={**ROUTES, "model": "elsewhere/sorter"}), orders(), model=models()
    )
    assert (await say(process, "where is my order?")).route is None


async def test_a_turn_of_an_agent_without_routes_is_not_classified(place_for) -> None:
    model = models()
    process = await place_for(Script()).process(front(routes=None), orders(), model=model)
    turn = await say(process, "where is my order?")
    assert (turn.route, turn.routes, model.asked("sorter")) == (None, (), 0)
    assert await calls(process, turn) == [(1, 1, "answer", "offline/front", "measured", "agent")]


async def test_all_that_opened_the_turn_is_classified_and_nothing_else(place_for) -> None:
    model = models()
    process = await place_for(Script()).process(front(limits={"queue_mode": "collect"}), orders(), model=model)
    process.deaf = True
    accepted = await process.send("hello", queue_mode="collect")
    await process.send("where is my order?", queue_mode="collect")
    process.deaf = False
    await process.sweep()
    await process.idle()
    assert (await process.turn(accepted.turn_id)).route == "order"
    assert json.loads(model.requests[0].messages[0].content) == ["hello", "where is my order?"]


# --- stuck ------------------------------------------------------------------------------------------------------------


async def test_stuck_ends_the_turn_with_its_message_and_no_other_request(place_for) -> None:
    model = models()
    process = await place_for(Script()).process(front(), orders(), model=model)
    turn = await say(process, "a person, please", channel=CHANNEL)
    assert (turn.state, turn.outcome, turn.route) == (TurnState.COMPLETED, "stuck", "human")
    assert await process.answers() == ["A person will help you."]
    (payload,) = await payloads(process)
    assert (payload["outcome"], payload["route"], payload["content"]) == ("stuck", "human", "A person will help you.")
    assert process.deliveries_rung == 1
    assert told(process, "turn_stuck") == [{"route": "human"}]
    (completed,) = told(process, "turn_completed")
    assert (completed["outcome"], completed["route"]) == ("stuck", "human")
    assert [row[2] for row in await calls(process, turn)] == ["classify"]
    assert model.asked("front") == 0


async def test_stuck_without_a_message_says_the_description(place_for) -> None:
    routes = {**ROUTES, "human": {"description": "Wants a person.", "stuck": True}}
    process = await place_for(Script()).process(front(routes=routes), orders(), model=models())
    await say(process, "a person, please")
    assert await process.answers() == ["Wants a person."]


async def test_the_next_turn_of_a_session_goes_on_after_a_stuck_one(place_for) -> None:
    process = await place_for(Script()).process(front(), orders(), model=models())
    await say(process, "a person, please")
    assert (await say(process, "a book")).route == "shopping"
    assert [message.role for message in await process.messages()] == [Role.USER, Role.ASSISTANT] * 2


# --- delegation -------------------------------------------------------------------------------------------------------


async def test_delegate_hands_the_turn_to_the_other_agent_for_its_rest(place_for) -> None:
    model = models(orders=Script([Call("look", {"n": 1}), Say("It is on its way.")]))
    place = place_for(Script())
    process = await place.process(front(tools_allow=[]), orders(tools_allow=["look"]), model=model)
    turn = await say(process, "where is my order?", channel=CHANNEL)
    assert (turn.agent, turn.depth, turn.outcome, turn.route, turn.routes) == (
        "orders",
        1,
        "completed",
        "order",
        ("order",),
    )
    assert await process.answers() == ["It is on its way."]
    assert place.shop.count("look") == 1
    assert model.asked("front") == 0
    request = model.requests[-1]
    assert request.instructions == "You know orders."
    assert [tool.name for tool in request.tools] == ["look"]
    (payload,) = await payloads(process)
    assert (payload["agent"], payload["route"]) == ("orders", "order")
    assert await calls(process, turn) == [
        (1, 1, "answer", "offline/orders", "measured", "orders"),
        (1, 1, "classify", "offline/sorter", "measured", "agent"),
        (2, 1, "answer", "offline/orders", "measured", "orders"),
    ]
    assert process.events.of("turn_started")[0].agent == "agent"
    assert process.events.of("turn_completed")[0].agent == "orders"


async def test_the_other_agent_sorts_once_more_where_it_has_routes(place_for) -> None:
    inner = {"late": "the order is late", "lost": {"description": "is lost", "stuck": True}, "default": "late"}
    model = models(orders=Script(afterwards=lambda scene: Say("lost" if scene.text.startswith("[") else "Sorry.")))
    process = await place_for(Script()).process(front(), orders(routes=inner), model=model)
    turn = await say(process, "where is my order?")
    assert (turn.outcome, turn.route, turn.routes, turn.agent) == ("stuck", "order", ("order", "lost"), "orders")
    assert await process.answers() == ["is lost"]
    assert [each["route"] for each in told(process, "route_classified")] == ["order", "lost"]
    assert await calls(process, turn) == [
        (1, 1, "classify", "offline/sorter", "measured", "agent"),
        (1, 2, "classify", "offline/orders", "measured", "orders"),
    ]


async def test_the_other_agents_approvals_and_time_hold(place_for) -> None:
    model = models(orders=Script([Call("pay", {"n": 1}), Say("Paid.")]))
    process = await place_for(Script()).process(
        front(), orders(approvals_required=["pay"], limits={"turn_timeout": 100}), model=model
    )
    turn = await say(process, "pay my order")
    assert turn.state is TurnState.WAITING
    assert turn.limits["turn_timeout_s"] == 100
    await process.approve()
    await process.sweep()
    await process.idle()
    assert await process.answers() == ["Paid."]


async def test_time_that_the_turn_has_had_counts_against_the_other_agents_limit(place_for) -> None:
    place = place_for(Script())
    model = models()
    model.gates["sorter"] = gate = Gate()
    process = await place.process(front(), orders(limits={"turn_timeout": 10}), model=model)
    accepted = await process.send("where is my order?")
    await gate.reached()
    place.clock.advance(11)
    gate.open()
    await process.idle()
    turn = await process.turn(accepted.turn_id)
    assert (turn.agent, turn.state, turn.error["type"]) == ("orders", TurnState.FAILED, "timeout")
    assert model.asked("orders") == 0


async def test_an_agent_that_is_not_there_fails_the_turn_and_says_what_to_mend(place_for) -> None:
    process = await place_for(Script()).process(front(), model=models())
    turn = await say(process, "where is my order?")
    assert (turn.state, turn.error["type"], turn.error["field"]) == (
        TurnState.FAILED,
        "unknown_agent",
        "routes.order.delegate",
    )
    assert all(word in turn.error["message"] for word in ("'orders'", "'order'", "'agent'"))
    (failed,) = told(process, "turn_failed")
    assert (failed["route"], failed["error"]) == ("order", "unknown_agent")
    assert (await say(process, "a book")).outcome == "completed"


async def test_agents_that_hand_a_turn_to_each_other_stop_at_the_cap(place_for) -> None:
    back = {"back": {"description": "orders", "delegate": "agent"}, "default": "back", "model": "offline/sorter"}
    model = models(sorter=Script(afterwards=Say("order")))
    process = await place_for(Script()).process(front(), orders(routes=back), model=model)
    turn = await say(process, "where is my order?")
    assert (turn.state, turn.error["type"], turn.depth) == (TurnState.FAILED, "delegation_depth", 5)
    assert turn.routes == ("order", "back", "order", "back", "order", "back")
    assert model.asked("sorter") == 6
    assert "INSIKA_SUBAGENT_DEPTH_CAP" in turn.error["message"]
    assert {row[4] for row in await calls(process, turn)} == {"measured"}


# --- both agents' limits ----------------------------------------------------------------------------------------------


async def test_the_other_agents_ceiling_is_answered_in_its_place(place_for) -> None:
    model = models(orders=Script(afterwards=Say("x" * 4_000)))
    process = await place_for(Script()).process(front(), orders(limits={"agent_token_ceiling": 900}), model=model)
    assert (await say(process, "where is my order?")).outcome == "completed"
    turn = await say(process, "and my order now?", session="b", channel=CHANNEL)
    assert (turn.outcome, turn.agent, turn.route) == ("limited", "agent", "order")
    assert model.asked("orders") == 1
    (payload,) = await payloads(process)
    assert (payload["outcome"], payload["route"]) == ("limited", "order")
    assert [each["kind"] for each in told(process, "limit_breached")] == ["agent_token_ceiling"]
    assert (await say(process, "a book", session="c")).outcome == "completed"


async def test_the_first_agents_ceiling_counts_what_its_classifier_costs(place_for) -> None:
    process = await place_for(Script()).process(front(limits={"agent_token_ceiling": 10}), orders(), model=models())
    assert (await say(process, "where is my order?", session="a")).outcome == "completed"
    assert (await say(process, "where is my order?", session="b")).outcome == "limited"


async def test_a_turn_is_counted_once_in_the_window_of_its_session(place_for) -> None:
    process = await place_for(Script()).process(
        front(limits={"chat_rate_limit": 2}), orders(limits={"chat_rate_limit": 2}), model=models()
    )
    outcomes = [(await say(process, "where is my order?")).outcome for _ in range(3)]
    assert outcomes == ["completed", "completed", "limited"]


async def test_the_other_agents_used_up_budget_fails_the_turn_and_is_told(place_for) -> None:
    webhook = "https://ops.example.com/insika"
    model = models(orders=Script(afterwards=Say("x" * 400)))
    process = await place_for(Script()).process(
        front(), orders(budget={"daily": 100}, alerts={"webhook": webhook}), model=model
    )
    assert (await say(process, "where is my order?")).outcome == "completed"
    turn = await say(process, "where is my order?")
    assert (turn.state, turn.error["type"], turn.route) == (TurnState.FAILED, "budget_exceeded", "order")
    assert turn.error["retry_after"] > 0
    warned = process.events.of("budget_warning")
    assert [(event.agent, event.data["level"]) for event in warned] == [("orders", "alert"), ("orders", "cap")]
    assert [alert["data"]["level"] for alert in await payloads(process, "alert")] == ["alert", "cap"]
    await say(process, "where is my order?")
    assert len(process.events.of("budget_warning")) == 2


async def test_the_other_agents_soft_budget_is_told_to_its_model(place_for) -> None:
    model = models(orders=Script(afterwards=Say("x" * 400)))
    process = await place_for(Script()).process(front(), orders(budget={"daily": 100, "soft": True}), model=model)
    await say(process, "where is my order?")
    assert (await say(process, "where is my order?")).outcome == "completed"
    assert [bool(request.note) for request in model.requests] == [False, False, False, True]
    assert (await process.select("SELECT DISTINCT kind FROM outbox")) == []


async def test_spend_is_booked_to_the_agent_that_asks(place_for) -> None:
    model = models(orders=Script(afterwards=Say("x" * 400)))
    process = await place_for(Script()).process(front(budget={"daily": 100_000}), orders(), model=model)
    turn = await say(process, "where is my order?")
    rows = await process.store.real.model_calls(turn.id)
    by = {row.agent: row.usage.total for row in rows}
    midnight = process.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for agent, tokens in by.items():
        assert (await process.store.real.spend("", agent, midnight, midnight.replace(day=1))).day == tokens
    assert set(by) == {"agent", "orders"}


# --- interrupts, cancels, guards --------------------------------------------------------------------------------------


async def test_an_interrupt_cuts_the_classifier_and_nothing_is_published(place_for) -> None:
    model = models()
    model.gates["sorter"] = gate = Gate()
    process = await place_for(Script()).process(front(), orders(), model=model)
    first = await process.send("where is my order?", channel=CHANNEL)
    await gate.reached()
    second = await process.send("a book", queue_mode="interrupt", channel=CHANNEL)
    del model.gates["sorter"]
    process.runtime.signal((await process.row()).id)
    await process.idle()
    cut = await process.turn(first.turn_id)
    assert (cut.state, cut.error["type"], cut.routes) == (TurnState.CANCELLED, "interrupted", ())
    assert [row[2:5] for row in await calls(process, cut)] == [("classify", "offline/sorter", "estimated")]
    assert (await process.turn(second.turn_id)).route == "shopping"
    assert [payload["turn_id"] for payload in await payloads(process)] == [second.turn_id]


async def test_a_refused_text_is_not_classified(place_for) -> None:
    model = models()
    process = await place_for(Script()).process(front(), orders(), model=model, guard=RefusingGuard())
    await say(process, "a rude order")
    assert model.requests == []


class OrdersGuard:
    """Refuses "rude" where the agent `orders` hears it."""

    async def refusals(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        return {row.position: Refusal("rudeness") for row in mail if row.agent == "orders" and "rude" in row.text}


@pytest.mark.parametrize("dies", [False, True])
async def test_what_joins_a_turn_that_was_handed_on_passes_the_other_agents_guard(place_for, dies) -> None:
    place, gate = place_for(Script()), Gate()
    place.shop.gates["look", 1] = gate
    model = models(orders=Script([Call("look", {"n": 1}), Say("It is on its way.")]))
    process = await place.process(front(), orders(), model=model, guard=OrdersGuard())
    first = await process.send("an order", queue_mode="steer")
    await gate.reached()
    if dies:
        await process.die()
        place.shop.gates.clear()
        process = await place.process(front(), orders(), model=model, guard=OrdersGuard())
        process.deaf = True
    steered = [await process.send(text, queue_mode="steer") for text in ("rude again", "thank you")]
    assert {accepted.turn_id for accepted in steered} == {first.turn_id}
    process.deaf = False
    gate.open()
    await process.finish()
    assert await process.said() == ["an order", "thank you"]
    assert (await process.turn(first.turn_id)).outcome == "completed"


async def test_a_turn_that_was_handed_on_takes_as_many_steers_as_the_other_agent_lets_it(place_for) -> None:
    place, gate = place_for(Script()), Gate()
    place.shop.gates["look", 1] = gate
    model = models(orders=Script([Call("look", {"n": 1}), Say("It is on its way.")]))
    process = await place.process(front(), orders(limits={"steer_max_messages": 1}), model=model)
    first = await process.send("my order", queue_mode="steer")
    await gate.reached()
    for text in ("book one", "book two"):
        await process.send(text, queue_mode="steer")
    gate.open()
    await process.finish()
    said = [entry for entry in await process.log() if entry.position is not None and entry.turn_id == first.turn_id]
    assert [entry.message.content for entry in said] == ["my order", "book one"]
    assert await process.said() == ["my order", "book one", "book two"]


# --- reliability, time, prefixes --------------------------------------------------------------------------------------


async def test_the_classifiers_failures_count_in_its_circuit_and_an_open_one_is_left_alone(place_for) -> None:
    reliability = {"fallback": ["offline/orders"], "circuit_breaker": {"after": 1, "within": 60, "cooldown": 300}}
    model = models(sorter=FAILING)
    place = place_for(Script())
    process = await place.process(front(reliability=reliability), orders(), model=model)
    outcomes = [(await say(process, "a book")).outcome for _ in range(2)]
    assert outcomes == ["completed", "completed"]
    assert [each["model"] for each in told(process, "breaker_open")] == ["offline/sorter"]
    assert (model.asked("sorter"), model.asked("orders")) == (1, 0)
    assert [each["purpose"] for each in told(process, "provider_failure")] == ["classify", "classify"]


async def test_the_time_of_the_classifier_is_told_apart(place_for) -> None:
    place = place_for(Script())
    model = models()
    model.gates["sorter"] = gate = Gate()
    process = await place.process(front(), orders(), model=model, timing=True)
    accepted = await process.send("a book")
    await gate.reached()
    place.clock.advance(2)
    gate.open()
    await process.idle()
    timing = (await process.turn(accepted.turn_id)).timing
    assert (timing["routing_ms"], timing["total_ms"], timing["prepare_ms"]) == (2_000, 2_000, 2_000)
    assert [step["step"] for step in timing["model"]] == [1]


async def test_within_an_agent_each_request_is_a_prefix_of_the_next(place_for) -> None:
    model = models(orders=Script([Call("look", {"n": 1}), Call("look", {"n": 2})], afterwards=Say("On its way.")))
    process = await place_for(Script()).process(front(), orders(), model=model)
    for _ in range(2):
        await say(process, "where is my order?")
    asked = [request for request in model.requests if request.model == "orders"]
    assert len(asked) == 6
    for earlier, later in pairwise(asked):
        assert (later.instructions, later.tools) == (earlier.instructions, earlier.tools)
        assert list(later.messages[: len(earlier.messages)]) == list(earlier.messages)
