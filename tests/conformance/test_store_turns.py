"""A turn from its start to its answer: what is written at each step, and that the conversation is always valid."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from insika.messages import Role, ToolCall, Usage, assistant
from insika.storage.operations import AnnouncedCall, AppendStep, ModelCallKey, SettledModelCall
from insika.storage.port import StoreRefused
from insika.storage.rows import CallStart, CallState, Committed, Ended, TurnState, Verdict
from tests.store_world import (
    ESTIMATE,
    MEASURED,
    World,
    answer_call,
    assert_resumable,
    assert_valid_conversation,
    delivery,
    done,
    measured,
    texts,
)


async def test_a_start_writes_the_messages_the_turn_and_the_model_call(world: World) -> None:
    said = await world.say("hello", origin="customer")
    owner = await world.own(said.session_id)
    world.clock.advance(1)
    assert await owner.start() == 1
    (entry,) = await world.store.messages(said.session_id)
    assert (entry.message.role, entry.message.content, entry.step, entry.epoch) == (Role.USER, "hello", 0, 1)
    assert (entry.turn_id, entry.position) == (said.turn_id, 1)
    turn = owner.loaded.turn
    assert turn is not None
    assert (turn.state, turn.profile_revision, turn.limits) == (TurnState.RUNNING, "r1", {"max_tool_calls": 50})
    assert turn.started_at == world.clock.now() == turn.created_at + timedelta(seconds=1)
    (call,) = await world.store.model_calls(turn.id)
    assert (call.step, call.attempt, call.purpose, call.state) == (1, 1, "answer", "open")
    (mail,) = await world.store.mail(said.session_id)
    assert (mail.ended, mail.consumed_by) == (Ended.TURN, said.turn_id)
    session = await world.session()
    assert (session.waiting, session.turn_id, session.log_seq) == (0, said.turn_id, 1)


async def test_messages_enter_in_the_order_of_their_positions(world: World) -> None:
    for text in ("one", "two", "three"):
        said = await world.say(text, mode="collect")
    owner = await world.own(said.session_id)
    assert await owner.start() == 3
    log = await world.store.messages(said.session_id)
    assert [(entry.message.content, entry.position) for entry in log] == [("one", 1), ("two", 2), ("three", 3)]


async def test_a_start_may_refuse_some_of_what_merged(world: World) -> None:
    for text in ("one", "rude", "three"):
        said = await world.say(text, mode="collect")
    owner = await world.own(said.session_id)
    assert await owner.start(positions=(1, 3), refused=(2,)) == 2
    assert texts(await world.store.messages(said.session_id)) == ["one", "three"]
    assert [row.ended for row in await world.store.mail(said.session_id)] == [Ended.TURN, Ended.REFUSED, Ended.TURN]
    assert (await world.session()).waiting == 0


async def test_a_released_steer_becomes_a_turn_of_its_own(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    steers = [await world.say(text, mode="steer") for text in ("two", "three")]
    assert {steer.turn_id for steer in steers} == {said.turn_id}
    await owner.look()
    await owner.commit()
    await owner.look()
    assert await owner.start(turn_id="fresh", positions=(2, 3)) == 4
    turn = await world.store.turn("fresh")
    assert turn is not None
    assert (turn.state, turn.position, turn.agent) == (TurnState.RUNNING, 2, "shop")
    assert texts(await world.store.messages(said.session_id)) == ["one", "two", "three"]


async def test_a_step_announces_its_calls_and_settles_what_it_cost(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await owner.append("a", "b") == 2
    calls = await world.store.calls(owner.turn_id)
    assert [(call.index, call.call_id, call.state, call.side_effect) for call in calls] == [
        (0, "a", CallState.ANNOUNCED, True),
        (1, "b", CallState.ANNOUNCED, True),
    ]
    assert calls[0].arguments == {"n": 1}
    (model_call,) = await world.store.model_calls(owner.turn_id)
    assert (model_call.state, model_call.usage) == ("measured", MEASURED)
    (_, entry) = await world.store.messages(said.session_id)
    assert [call.id for call in entry.message.tool_calls] == ["a", "b"]
    assert (await world.session()).open_calls == 2


async def test_what_the_model_wrote_comes_back_as_it_was(world: World) -> None:
    """To the order of its names: a request begins with the same bytes each time."""
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    arguments = {
        "z": [1.5, 1e300, 2**70, None, True, {}],
        "a": '100 % \\ " \u20ac \U0001f600 %s %(x)s {0}',
        "é": {"b": 1, "a": 2},
    }
    call = ToolCall("a", "look_up", arguments)
    announced = (AnnouncedCall("a", "look_up", arguments, side_effect=False),)
    await world.store.append(owner.fence, AppendStep(owner.turn_id, 1, assistant("", call), announced, measured(1)))
    loaded = (await owner.look()).loaded
    (read,) = await world.store.calls(owner.turn_id)
    for written in (loaded.log[-1].message.tool_calls[0].arguments, loaded.calls[0].arguments, read.arguments):
        assert json.dumps(written) == json.dumps(arguments)


async def test_a_malformed_call_keeps_what_the_model_wrote(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    call = ToolCall("a", "look_up", malformed='{"n": 1')
    announced = (AnnouncedCall("a", "look_up", {}, side_effect=False),)
    await world.store.append(owner.fence, AppendStep(owner.turn_id, 1, assistant("", call), announced, measured(1)))
    (_, entry) = await world.store.messages(said.session_id)
    assert entry.message.tool_calls == (call,)


async def test_a_call_starts_once_and_ends_once(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    assert await owner.start_call() == CallStart(held=True, moved=True)
    assert await owner.start_call() == CallStart(held=True, moved=False)
    assert await owner.finish_call(done(0, "a", "first")) == CallStart(held=True, moved=True)
    assert await owner.finish_call(done(0, "a", "second")) == CallStart(held=True, moved=False)
    assert await owner.start_call() == CallStart(held=True, moved=False)
    (call,) = await world.store.calls(owner.turn_id)
    assert (call.state, call.result) == (CallState.DONE, "first")


@pytest.mark.parametrize("state", [CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN])
async def test_a_call_without_side_effect_may_end_without_having_been_started(world: World, state: CallState) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a", side_effect=False)
    result = done(0, "a", "why", state=state, is_error=True, halts=True)
    assert await owner.finish_call(result) == CallStart(held=True, moved=True)
    (call,) = await world.store.calls(owner.turn_id)
    assert (call.state, call.result, call.is_error, call.halts) == (state, "why", True, True)


async def test_a_result_is_for_the_call_of_that_id(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a", "b")
    assert await owner.finish_call(done(0, "b")) == CallStart(held=True, moved=False)
    assert await owner.finish_call(done(5, "f")) == CallStart(held=True, moved=False)


@pytest.mark.parametrize("calls", [1, 2, 8])
@pytest.mark.parametrize("recorded", ["none", "some", "all"])
async def test_the_boundary_writes_results_in_announced_order_then_notices_then_steers(
    world: World, calls: int, recorded: str
) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    ids = [f"c{n}" for n in range(calls)]
    await owner.append(*ids)
    results = [done(n, call_id, f"result {n}") for n, call_id in enumerate(ids)]
    some = {"none": [], "some": results[-1:], "all": results}[recorded]
    for result in reversed(some):
        await owner.finish_call(result)
    await world.say("two", mode="steer")
    await world.say("three", mode="steer")
    await owner.look()
    assert_resumable(await world.store.messages(said.session_id), owner.loaded.calls)
    absorbed = owner.absorbing(2, 3)
    seq = await owner.cross(*results, notices=("notice 1", "notice 2"), absorbed=absorbed)
    assert seq == 2 + calls + 4
    log = await world.store.messages(said.session_id)
    assert_valid_conversation(log)
    assert [entry.message.content for entry in log[2:]] == [
        *(f"result {n}" for n in range(calls)),
        "notice 1",
        "notice 2",
        "two",
        "three",
    ]
    assert [entry.message.tool_call_id for entry in log[2 : 2 + calls]] == ids
    assert [entry.position for entry in log[-4:]] == [None, None, 2, 3]
    assert all(call.state is CallState.DONE for call in await world.store.calls(owner.turn_id))
    assert [row.consumed_by for row in await world.store.mail(said.session_id)] == [said.turn_id] * 3
    session = await world.session()
    assert (session.open_calls, session.waiting) == (0, 0)


async def test_what_was_recorded_first_is_what_the_model_is_told(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.finish_call(done(0, "a", "recorded", is_error=True))
    await owner.cross(done(0, "a", "something else"))
    (*_, entry) = await world.store.messages(said.session_id)
    assert (entry.message.content, entry.message.is_error) == ("recorded", True)


async def test_absorbed_texts_enter_as_the_owner_frames_them(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await world.say("two", mode="steer")
    await owner.look()
    (steer,) = owner.absorbing(2)
    framed = (type(steer)(steer.position, f"[the customer adds] {steer.content}"),)
    await owner.cross(done(0, "a"), absorbed=framed)
    (*_, entry) = await world.store.messages(said.session_id)
    assert entry.message.content == "[the customer adds] two"


async def test_a_boundary_may_refuse_a_steer_and_close_the_turn_to_more(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await world.say("rude", mode="steer")
    await owner.look()
    assert await owner.cross(done(0, "a"), refused=(2,), takes_steers=False) == 3
    assert [row.ended for row in await world.store.mail(said.session_id)] == [Ended.TURN, Ended.REFUSED]
    assert (await world.say("more", mode="steer")).verdict is Verdict.ACCEPTED
    assert (await world.session()).waiting == 1


@pytest.mark.parametrize("results", [[], [0], [0, 1, 2]], ids=["none", "too few", "too many"])
async def test_a_boundary_needs_every_result_and_no_more(world: World, results: list[int]) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1")
    before = await world.everything()
    assert await owner.cross(*(done(n, f"c{n}") for n in results)) is None
    assert await world.everything() == before


async def test_a_boundary_with_a_result_for_the_wrong_call_writes_nothing(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1")
    before = await world.everything()
    with pytest.raises(ValueError, match="c1"):
        await owner.cross(done(0, "c0"), done(1, "other"))
    assert await world.everything() == before


async def test_a_boundary_that_absorbs_what_is_gone_writes_nothing(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await world.say("two", mode="steer")
    await owner.look()
    absorbed = owner.absorbing(2)
    before = await world.everything()
    assert await owner.cross(done(0, "a"), absorbed=(*absorbed, *absorbed)) is None
    assert await world.everything() == before


async def test_the_next_model_call_is_opened_by_what_leads_to_it(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.cross(done(0, "a"), next_call=ModelCallKey(2, 1, "synthesis", "offline/demo"))
    calls = await world.store.model_calls(owner.turn_id)
    assert [(call.step, call.purpose, call.state) for call in calls] == [
        (1, "answer", "measured"),
        (2, "synthesis", "open"),
    ]


async def test_a_retry_settles_the_attempt_before_as_estimated(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    for attempt in (2, 3):
        assert await world.store.retry_model(
            owner.fence, owner.seen, owner.turn_id, answer_call(1, attempt), estimate=ESTIMATE
        )
    calls = await world.store.model_calls(owner.turn_id)
    assert [(call.attempt, call.state, call.usage) for call in calls] == [
        (1, "estimated", ESTIMATE),
        (2, "estimated", ESTIMATE),
        (3, "open", Usage()),
    ]


async def test_what_was_estimated_may_still_be_measured_once(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await world.store.retry_model(owner.fence, owner.seen, owner.turn_id, answer_call(1, 2), estimate=ESTIMATE)
    late = SettledModelCall(answer_call(1, 1), MEASURED)
    await owner.commit(model_call=late)
    calls = await world.store.model_calls(said.turn_id or "")
    assert [(call.attempt, call.state, call.usage) for call in calls] == [
        (1, "measured", MEASURED),
        (2, "estimated", Usage()),
    ]


async def test_what_was_measured_stays_as_it_is(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.cross(done(0, "a"))
    assert await owner.commit(2, model_call=SettledModelCall(answer_call(1), Usage(99, 99)))
    calls = await world.store.model_calls(said.turn_id or "")
    assert [(call.step, call.state, call.usage) for call in calls] == [
        (1, "measured", MEASURED),
        (2, "estimated", Usage()),
    ]


async def test_a_model_call_is_opened_once(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    before = await world.everything()
    with pytest.raises(StoreRefused):
        await owner.cross(done(0, "a"), next_call=answer_call(1))
    assert await world.everything() == before


async def test_a_commit_ends_the_turn_and_writes_answer_cost_and_deliveries(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    world.clock.advance(2)
    lane = f"{said.session_id}/web"
    committed = await owner.commit(
        outcome="limited",
        synthesized=True,
        route="orders",
        timing={"total_ms": 12},
        deliveries=(delivery(lane, "part 1"), delivery(lane, "part 2", guarantee="at_least_once", timeout_s=3.5)),
    )
    assert committed == Committed(released=False)
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome, turn.synthesized, turn.route) == (TurnState.COMPLETED, "limited", True, "orders")
    assert (turn.timing, turn.error, turn.ended_at) == ({"total_ms": 12}, None, world.clock.now())
    log = await world.store.messages(said.session_id)
    assert [entry.message.content for entry in log] == ["hello", "the answer"]
    (call,) = await world.store.model_calls(turn.id)
    assert (call.state, call.usage) == ("measured", MEASURED)
    first, second = await world.deliveries()
    assert (first["state"], first["turn_id"], first["lane"], first["lane_pos"]) == ("pending", turn.id, lane, 1)
    assert (second["guarantee"], second["timeout_s"], second["lane_pos"]) == ("at_least_once", 3.5, 2)
    assert first["id"] != second["id"]
    session = await world.session()
    assert (session.turn_id, session.turn_key, session.deaths) == (None, None, 0)


async def test_lane_positions_go_on_from_turn_to_turn(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    for _ in range(3):
        await owner.start()
        await owner.commit()
        await world.say()
        await owner.look()
    assert [row["lane_pos"] for row in await world.deliveries()] == [1, 2, 3]


async def test_a_delivery_with_a_unique_key_is_written_once(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    for _ in range(2):
        await owner.start()
        await owner.commit(deliveries=(delivery("alerts", unique_key="budget|2030-01-01"),))
        await world.say()
        await owner.look()
    assert len(await world.deliveries()) == 1


async def test_an_empty_answer_writes_no_message(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await owner.commit(answer="", deliveries=()) is not None
    assert len(await world.store.messages(said.session_id)) == 1


@pytest.mark.parametrize("late", [0, 1, 2, 3])
async def test_a_halted_batch_is_closed_by_the_commit(world: World, late: int) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1", "c2")
    results = tuple(done(n, f"c{n}", f"result {n}", halts=n == 1) for n in range(3))
    for result in results[late:]:
        await owner.finish_call(result)
    committed = await owner.commit(answer="result 1", results=results, model_call=None, outcome="halted")
    assert committed is not None
    log = await world.store.messages(said.session_id)
    assert_valid_conversation(log)
    assert [entry.message.content for entry in log[2:]] == ["result 0", "result 1", "result 2", "result 1"]
    assert [call.halts for call in await world.store.calls(said.turn_id or "")] == [False, True, False]


async def test_a_commit_may_leave_the_closing_to_what_is_recorded(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1")
    for n in range(2):
        await owner.finish_call(done(n, f"c{n}", f"result {n}"))
    assert await owner.commit(model_call=None) is not None
    log = await world.store.messages(said.session_id)
    assert_valid_conversation(log)
    assert [entry.message.content for entry in log[2:]] == ["result 0", "result 1", "the answer"]


async def test_a_commit_with_results_for_a_batch_that_is_closed_writes_nothing(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.cross(done(0, "a"))
    before = await world.everything()
    assert await owner.commit(2, results=(done(0, "a"),)) is None
    assert await world.everything() == before


async def test_the_conversation_is_valid_at_every_instant(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)

    async def check() -> None:
        log = await world.store.messages(said.session_id)
        turns = [row.id for row in await world.store.turns(said.session_id)]
        assert_resumable(log, await world.store.calls(turns[-1]))
        assert (await world.session()).log_seq == len(log)

    await owner.start()
    await check()
    for step, count in ((1, 3), (2, 1), (3, 8)):
        ids = [f"{step}.{n}" for n in range(count)]
        await owner.append(*ids, step=step)
        await check()
        for n, call_id in enumerate(ids):
            await owner.start_call(n, step)
            await check()
            await owner.finish_call(done(n, call_id), step)
            await check()
        await world.say(f"steer {step}", mode="steer")
        await owner.look()
        waiting = [row.position for row in owner.loaded.mail]
        await owner.cross(
            *(done(n, call_id) for n, call_id in enumerate(ids)), step=step, absorbed=owner.absorbing(*waiting)
        )
        await check()
    await owner.append("last", step=4)
    await check()
    await owner.fail(done(0, "last", state=CallState.UNKNOWN), step=4)
    await check()
    assert_valid_conversation(await world.store.messages(said.session_id))


async def test_what_the_model_announced_comes_back_in_the_order_in_which_it_was_said(world: World) -> None:
    """The next request repeats it, and must begin with the same bytes."""
    arguments = {"zip": "1010", "count": 1.0, "address": {"street": "é\x01\t", "city": None, "b": [], "a": {}}}
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    call = ToolCall("c", "look_up", arguments)
    announced = (AnnouncedCall("c", "look_up", arguments, side_effect=False),)
    step = AppendStep(owner.turn_id, 1, assistant("", call), announced, measured(1))
    assert await world.store.append(owner.fence, step) is not None
    await owner.look()
    assert json.dumps(owner.loaded.log[-1].message.tool_calls[0].arguments) == json.dumps(arguments)
    assert json.dumps(owner.loaded.calls[0].arguments) == json.dumps(arguments)
    (stored,) = await world.store.calls(owner.turn_id)
    assert json.dumps(stored.arguments) == json.dumps(arguments)
