"""Whom a turn asks: its route, said once by each of its agents; the agent it is handed to; models that screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from insika.messages import Usage
from insika.storage.operations import ModelCallKey, RedirectTurn, RouteTurn, SettledModelCall, SettleMail
from insika.storage.rows import ModelCallRow, TurnRow, TurnState
from tests.store_world import (
    ESTIMATE,
    MEASURED,
    Owner,
    World,
    answer_call,
    classifier_call,
    delivery,
    done,
    measured,
)


async def classifying(world: World) -> Owner:
    """The owner of a turn whose classifier has been asked."""
    owner = await world.own((await world.say()).session_id)
    await owner.start(model_call=classifier_call())
    return owner


async def turn_of(owner: Owner) -> TurnRow:
    turn = await owner.store.turn(owner.turn_id)
    assert turn is not None
    assert turn == owner.loaded.turn
    return turn


async def asked(owner: Owner) -> list[tuple[ModelCallKey, str, Usage]]:
    return [(key_of(row), row.state, row.usage) for row in await owner.store.model_calls(owner.turn_id)]


def key_of(row: ModelCallRow) -> ModelCallKey:
    return ModelCallKey(row.step, row.attempt, row.purpose, row.model)


# --- route_turn


async def test_what_the_classifier_said_is_kept_and_what_it_cost_and_the_next_one_asked(world: World) -> None:
    owner = await classifying(world)
    assert (await turn_of(owner)).routes == ()
    assert await owner.route("order")
    turn = await turn_of(owner)
    assert (turn.route, turn.routes, turn.depth) == ("order", ("order",), 0)
    assert await asked(owner) == [(answer_call(1), "open", Usage()), (classifier_call(), "measured", MEASURED)]


async def test_a_turn_is_routed_once(world: World) -> None:
    owner = await classifying(world)
    await owner.route("order")
    before = await world.everything()
    assert await owner.route("human", next_call=answer_call(1, 2)) is False
    assert await world.everything() == before


async def test_a_classifier_that_failed_leaves_the_turn_unrouted_and_is_not_asked_again(world: World) -> None:
    owner = await classifying(world)
    assert await owner.route(None, model_call=SettledModelCall(classifier_call(), ESTIMATE, "estimated"))
    turn = await turn_of(owner)
    assert (turn.route, turn.routes) == (None, (None,))
    assert await asked(owner) == [(answer_call(1), "open", Usage()), (classifier_call(), "estimated", ESTIMATE)]
    assert await owner.route("order") is False


async def test_a_route_that_ends_the_turn_opens_nothing(world: World) -> None:
    owner = await classifying(world)
    assert await owner.route("human", next_call=None)
    assert await asked(owner) == [(classifier_call(), "measured", MEASURED)]
    assert await owner.commit(outcome="stuck", model_call=None, answer="a person will help you") is not None
    turn = await world.store.turn(owner.loaded.turn.id if owner.loaded.turn else "")
    assert turn is not None
    assert (turn.outcome, turn.route) == ("stuck", "human")


async def test_a_next_request_that_was_opened_before_routes_nothing(world: World) -> None:
    owner = await classifying(world)
    before = await world.everything()
    assert await owner.route(next_call=classifier_call()) is False
    assert await world.everything() == before


async def test_nothing_is_routed_or_redirected_inside_a_batch(world: World) -> None:
    owner = await classifying(world)
    await owner.append("a")
    await owner.look()
    before = await world.everything()
    assert await owner.route(next_call=answer_call(2)) is False
    assert await owner.redirect() is False
    assert await world.everything() == before


async def test_a_turn_that_does_not_run_is_not_routed_or_redirected(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    before = await world.everything()
    turn = said.turn_id or ""
    routing = RouteTurn(turn, "order", SettledModelCall(classifier_call(), MEASURED), answer_call(1))
    redirecting = RedirectTurn(turn, "orders", "r2", {}, 1, answer_call(1))
    assert await world.store.route_turn(owner.fence, owner.seen, routing) is False
    assert await world.store.redirect_turn(owner.fence, owner.seen, redirecting) is False
    assert await world.everything() == before


async def test_a_commit_keeps_the_route_or_says_its_own(world: World) -> None:
    for route, expected in ((None, "order"), ("by hand", "by hand")):
        said = await world.say(session=expected)
        owner = await world.own(said.session_id)
        await owner.start(model_call=classifier_call())
        await owner.route("order")
        await owner.commit(route=route)
        turn = await world.store.turn(said.turn_id or "")
        assert turn is not None
        assert turn.route == expected


async def test_a_turn_that_fails_keeps_its_route(world: World) -> None:
    owner = await classifying(world)
    await owner.route("order")
    await owner.fail()
    assert (await world.store.turns(owner.fence.session_id))[0].route == "order"


# --- redirect_turn


async def test_a_turn_is_another_agent_s_for_its_rest(world: World) -> None:
    owner = await classifying(world)
    await owner.route("order", next_call=None)
    session, address = await world.session(), (await turn_of(owner)).recipient
    assert await owner.redirect(model_call=answer_call(1))
    turn = await turn_of(owner)
    assert (turn.agent, turn.profile_revision, turn.limits) == ("orders", "r2", {"max_tool_calls": 9})
    assert (turn.depth, turn.route, turn.routes, turn.recipient) == (1, "order", ("order",), address)
    assert await world.session() == session, "who may steer, and where the session stands, is as it was"
    await owner.append("a")
    await owner.cross(done(0, "a"))
    agents = await world.peek("SELECT agent, purpose FROM model_calls ORDER BY step, purpose")
    assert [(row["agent"], row["purpose"]) for row in agents] == [
        ("orders", "answer"),
        ("shop", "classify"),
        ("orders", "answer"),
    ]
    (mail,) = await world.store.mail(owner.fence.session_id)
    assert mail.agent == "shop", "whom the person asked stays known"


async def test_a_turn_is_handed_on_once_to_each_depth(world: World) -> None:
    owner = await classifying(world)
    assert await owner.redirect(model_call=answer_call(1))
    before = await world.everything()
    for depth in (1, 3, 0):
        assert await owner.redirect(agent="third", depth=depth, model_call=answer_call(1, 2)) is False
        assert await world.everything() == before
    assert await owner.redirect(agent="third", depth=2, model_call=answer_call(1, 2))
    assert (await turn_of(owner)).agent == "third"


async def test_each_agent_of_a_turn_routes_it_once(world: World) -> None:
    owner = await classifying(world)
    await owner.route(None, next_call=None)
    assert await owner.route("late", next_call=None) is False
    again = classifier_call(1, 2)
    await owner.redirect(model_call=again)
    assert await owner.route("refund", model_call=SettledModelCall(again, MEASURED))
    assert await owner.route("other", next_call=None) is False
    turn = await turn_of(owner)
    assert (turn.route, turn.routes) == ("refund", (None, "refund"))


async def test_the_first_route_speaks_for_the_turn(world: World) -> None:
    owner = await classifying(world)
    await owner.route("order", next_call=None)
    again = classifier_call(1, 2)
    await owner.redirect(model_call=again)
    await owner.route("refund", model_call=SettledModelCall(again, MEASURED))
    turn = await turn_of(owner)
    assert (turn.route, turn.routes) == ("order", ("order", "refund"))


async def test_a_redirect_whose_request_was_opened_before_changes_nothing(world: World) -> None:
    owner = await classifying(world)
    before = await world.everything()
    assert await owner.redirect(model_call=classifier_call()) is False
    assert await world.everything() == before


async def test_a_redirected_turn_is_taken_over_as_it_is(world: World) -> None:
    owner = await classifying(world)
    await owner.route("order", next_call=None)
    await owner.redirect(model_call=answer_call(1))
    taken = await world.take_over(owner.fence.session_id)
    turn = taken.loaded.turn
    assert turn is not None
    assert (turn.agent, turn.depth, turn.routes) == ("orders", 1, ("order",))


# --- which model speaks


async def test_the_model_that_answered_stays(world: World) -> None:
    owner = await classifying(world)
    assert (await turn_of(owner)).model is None, "a classifier is not the one that answers"
    await owner.route("order")
    assert (await turn_of(owner)).model == "offline/demo"
    spare = ModelCallKey(1, 2, "answer", "offline/spare")
    await world.store.retry_model(owner.fence, owner.seen, owner.turn_id, spare, estimate=ESTIMATE)
    await owner.look()
    assert (await turn_of(owner)).model == "offline/demo", "it has not answered"
    await owner.append("a", model_call=SettledModelCall(spare, MEASURED))
    await owner.look()
    assert (await turn_of(owner)).model == "offline/spare"
    assert (await turn_of(await world.take_over(owner.fence.session_id))).model == "offline/spare"


async def test_the_model_that_ended_a_turn_is_known(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert (await turn_of(owner)).model == "offline/demo"
    spare = ModelCallKey(1, 2, "answer", "offline/spare")
    await world.store.retry_model(owner.fence, owner.seen, owner.turn_id, spare, estimate=ESTIMATE)
    await owner.commit(model_call=SettledModelCall(spare, MEASURED))
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert turn.model == "offline/spare"


async def test_who_is_handed_a_turn_answers_by_its_own_model(world: World) -> None:
    owner = await classifying(world)
    await owner.route("order")
    await owner.redirect(model_call=ModelCallKey(1, 2, "answer", "offline/orders"))
    assert (await turn_of(owner)).model == "offline/orders"
    again = classifier_call(1, 2)
    await owner.redirect(depth=2, model_call=again)
    assert (await turn_of(owner)).model is None


# --- screening


async def test_what_is_said_is_screened_before_its_turn_begins(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    key = await owner.screen(said.turn_id or "")
    assert key == ModelCallKey(0, 1, "moderate", "offline/moderator")
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert turn.state is TurnState.QUEUED
    assert await world.store.settle_model_call(turn.id, SettledModelCall(key, MEASURED))
    await owner.start()
    assert [(key.purpose, state, usage) for key, state, usage in await asked(owner)] == [
        ("moderate", "measured", MEASURED),
        ("answer", "open", Usage()),
    ]
    await owner.screen(owner.turn_id, purpose="classify")
    assert len(await asked(owner)) == 3


async def test_text_of_a_released_steer_is_screened_on_behalf_of_the_turn_it_was_said_to(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("also", mode="steer")
    await owner.look()
    await owner.commit()
    await owner.look()
    assert await owner.screen(said.turn_id or "") == ModelCallKey(0, 1, "moderate", "offline/moderator")


async def test_an_attempt_that_somebody_left_open_is_estimated_by_the_next(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    turn_id = said.turn_id or ""
    await owner.screen(turn_id)
    taken = await world.take_over(said.session_id)
    assert await taken.screen(turn_id) == ModelCallKey(0, 2, "moderate", "offline/moderator")
    rows = await world.store.model_calls(turn_id)
    assert [(row.attempt, row.state, row.usage) for row in rows] == [(1, "estimated", ESTIMATE), (2, "open", Usage())]
    other = await taken.screen(turn_id, purpose="classify")
    assert other is not None
    assert other.attempt == 1
    assert [row.state for row in await world.store.model_calls(turn_id)] == ["open", "estimated", "open"]


async def test_no_other_session_s_turn_is_screened(world: World) -> None:
    other = await world.say(session="other")
    owner = await world.own((await world.say()).session_id)
    before = await world.everything()
    assert await owner.screen(other.turn_id or "") is None
    assert await owner.screen("no such turn") is None
    assert await world.everything() == before


@pytest.mark.parametrize("ending", ["failed", "limited", "withdrawn"])
async def test_what_ends_a_turn_at_once_settles_what_was_asked_on_its_behalf(world: World, ending: str) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    turn_id = said.turn_id or ""
    await owner.screen(turn_id)
    spent = Usage(3, 0, 0, 0)
    if ending == "failed":
        assert await world.store.fail_queued(owner.fence, owner.seen, owner.giving_up(estimate=spent))
    elif ending == "limited":
        assert await world.store.finish_at_once(owner.fence, owner.seen, owner.finishing(estimate=spent))
    else:
        withdrawn = SettleMail((1,), "withdrawn", turn_id, TurnState.CANCELLED, estimate=spent)
        assert await world.store.settle_mail(owner.fence, owner.seen, withdrawn)
    (row,) = await world.store.model_calls(turn_id)
    assert (row.state, row.usage) == ("estimated", spent)


# --- settle_model_call


async def test_a_cost_is_booked_whoever_holds_the_session_and_when_its_turn_has_ended(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    turn_id = said.turn_id or ""
    await owner.start()
    await owner.fail()
    (row,) = await world.store.model_calls(turn_id)
    assert (row.state, row.usage) == ("estimated", ESTIMATE)
    assert await world.store.settle_model_call(turn_id, measured(1))
    (row,) = await world.store.model_calls(turn_id)
    assert (row.state, row.usage) == ("measured", MEASURED)


async def test_a_cost_is_measured_once_and_no_estimate_replaces_what_is_known(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    turn_id = said.turn_id or ""
    key = await owner.screen(turn_id)
    assert key is not None
    guess, other_guess = (SettledModelCall(key, Usage(n), "estimated") for n in (1, 2))
    first, second = (SettledModelCall(key, Usage(n)) for n in (3, 4))
    booked = []
    for call in (guess, other_guess, first, second, guess):
        written = await world.store.settle_model_call(turn_id, call)
        (row,) = await world.store.model_calls(turn_id)
        booked.append((written, row.state, row.usage.input))
    assert booked == [
        (True, "estimated", 1),
        (False, "estimated", 1),
        (True, "measured", 3),
        (False, "measured", 3),
        (False, "measured", 3),
    ]
    unknown = SettledModelCall(replace(key, attempt=9), MEASURED)
    assert await world.store.settle_model_call(turn_id, unknown) is False
    assert await world.store.settle_model_call("no such turn", first) is False


async def test_deliveries_of_a_redirected_turn_go_where_its_answer_was_to_go(world: World) -> None:
    owner = await classifying(world)
    await owner.redirect(model_call=answer_call(1))
    assert await owner.commit(deliveries=(delivery("lane"),)) is not None
    (row,) = await world.deliveries()
    assert (row["lane_pos"], row["turn_id"]) == (1, (await world.store.turns(owner.fence.session_id))[0].id)
