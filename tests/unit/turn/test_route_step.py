from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.agents.routes import Routes
from insika.errors import DelegationDepth
from insika.messages import NO_USAGE
from insika.storage.rows import ModelCallRow
from insika.turn.route_step import (
    AnswerHere,
    Classify,
    HandOn,
    StopStuck,
    answers_here,
    next_route_step,
    question_of,
    route_of_turn,
)
from insika.turn.state import state_from_log

ROUTES = Routes.model_validate(
    {
        "shopping": "wants to browse",
        "order": {"description": "asks about an order", "delegate": "order-agent"},
        "human": {"description": "asks for a person", "stuck": True, "message": "A person will help you."},
        "silent": {"description": "Says nothing.", "stuck": True},
        "default": "shopping",
    }
)


@dataclass(frozen=True)
class Agent:
    id: str = "front"
    model: str = "openai/gpt-5"
    routes: Routes | None = ROUTES


@pytest.mark.parametrize(
    ("found", "depth", "step"),
    [
        ((), 0, Classify(ROUTES, "openai/gpt-5")),
        (("shopping",), 0, AnswerHere()),
        ((None,), 0, AnswerHere()),
        (("order",), 0, HandOn("order-agent", "order", 1)),
        (("human",), 0, StopStuck("human", "A person will help you.")),
        (("silent",), 0, StopStuck("silent", "Says nothing.")),
        (("gone",), 0, AnswerHere()),
        (("order",), 1, Classify(ROUTES, "openai/gpt-5")),
        ((None,), 1, Classify(ROUTES, "openai/gpt-5")),
        (("order", "shopping"), 1, AnswerHere()),
        (("shopping", "order"), 1, HandOn("order-agent", "order", 2)),
    ],
)
def test_what_comes_next_follows_from_what_was_found(found, depth, step) -> None:
    assert next_route_step(Agent(), found, depth, cap=5) == step


def test_the_routes_may_name_a_model_of_their_own() -> None:
    routes = Routes.model_validate({"a": "x", "default": "a", "model": "openai/gpt-5-mini"})
    step = next_route_step(Agent(routes=routes), (), 0, cap=5)
    assert step == Classify(routes, "openai/gpt-5-mini")


def test_an_agent_without_routes_answers() -> None:
    assert next_route_step(Agent(routes=None), ("order",), 1, cap=5) == AnswerHere()


@pytest.mark.parametrize("cap", [0, 1, 5])
def test_a_turn_is_handed_on_as_often_as_the_cap_says(cap) -> None:
    found = ("order",) * (cap + 1)
    for depth in range(cap):
        assert next_route_step(Agent(), found[: depth + 1], depth, cap) == HandOn("order-agent", "order", depth + 1)
    with pytest.raises(DelegationDepth) as raised:
        next_route_step(Agent(), found, cap, cap)
    assert raised.value.field == "routes.order.delegate"
    assert "INSIKA_SUBAGENT_DEPTH_CAP" in raised.value.message


@pytest.mark.parametrize(
    ("name", "here"), [(None, True), ("shopping", True), ("order", False), ("human", False), ("gone", True)]
)
def test_only_a_label_is_answered_by_the_agent_that_sorted(name, here) -> None:
    assert answers_here(ROUTES, name) is here


@given(st.lists(st.none() | st.sampled_from(["a", "b"]), max_size=6))
def test_the_first_route_speaks_for_the_turn(found) -> None:
    assert route_of_turn(found) == next(iter([name for name in found if name]), None)


def test_the_question_names_its_model_and_offers_no_tool() -> None:
    request = question_of(Classify(ROUTES, "openai/gpt/mini"), ["hello"], max_tokens=50)
    assert (request.reference, request.model, request.max_tokens) == ("openai/gpt/mini", "gpt/mini", 50)
    assert (request.callable, request.note, request.turn_from) == (False, "", 0)


def test_requests_beside_the_conversation_count_their_attempts_apart() -> None:
    rows = [ModelCallRow("t", 1, attempt, "classify", "m", "measured", NO_USAGE) for attempt in (1, 2, 3)]
    rows.append(ModelCallRow("t", 1, 1, "answer", "m", "open", NO_USAGE))
    assert state_from_log("t", (), (), rows, fresh=False).attempt == 2
