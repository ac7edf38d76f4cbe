"""Turns that begin and end in one write: given up before a model was asked, or answered without one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from insika.messages import Role
from insika.storage.rows import Begun, Committed, Ended, TurnState, Verdict
from tests.store_world import World, alert, assert_valid_conversation, delivery, texts


async def test_a_turn_that_finishes_at_once_says_its_answer_and_asks_nobody(world: World) -> None:
    said = await world.say("one", mode="collect")
    await world.say("two", mode="collect")
    owner = await world.own(said.session_id)
    world.clock.advance(3)
    finishing = owner.finishing(timing={"total_ms": 1})
    assert await world.store.finish_at_once(owner.fence, owner.seen, finishing) == Begun(3)
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome, turn.error) == (TurnState.COMPLETED, "limited", None)
    assert (turn.profile_revision, turn.limits, turn.timing) == ("r1", {"max_tool_calls": 50}, {"total_ms": 1})
    assert (turn.started_at, turn.ended_at, turn.started_seq) == (world.clock.now(), world.clock.now(), 1)
    assert await world.store.model_calls(turn.id) == ()
    log = await world.store.messages(said.session_id)
    assert_valid_conversation(log)
    assert texts(log) == ["one", "two"]
    assert texts(log, Role.ASSISTANT) == ["come back later"]
    assert [(entry.step, entry.position) for entry in log] == [(0, 1), (0, 2), (1, None)]
    assert [row.ended for row in await world.store.mail(said.session_id)] == [Ended.TURN, Ended.TURN]
    (row,) = await world.deliveries()
    assert (row["session_id"], row["turn_id"], row["lane_pos"], row["state"]) == (
        said.session_id,
        turn.id,
        1,
        "pending",
    )
    session = await world.session()
    assert (session.waiting, session.turn_id, session.turn_key, session.merge_turn) == (0, None, None, None)
    assert session.lease_id == owner.fence.lease_id, "the lease is kept"


async def test_a_session_goes_on_behind_a_turn_that_finished_at_once(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await world.store.finish_at_once(owner.fence, owner.seen, owner.finishing())
    await world.say("two")
    await owner.look()
    assert await owner.start() == 3
    assert await owner.commit() == Committed(released=False)
    assert_valid_conversation(await world.store.messages(said.session_id))
    assert [row["lane_pos"] for row in await world.deliveries()] == [1, 2]


async def test_nothing_to_say_is_not_said(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    silent = owner.finishing(answer="", deliveries=())
    assert await world.store.finish_at_once(owner.fence, owner.seen, silent) == Begun(1)
    assert texts(await world.store.messages(said.session_id), Role.ASSISTANT) == []
    assert await world.deliveries() == []


async def test_an_answer_in_pieces_is_listed_in_its_order(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    pieces = tuple(delivery("lane", f"piece {n}") for n in range(3))
    await world.store.finish_at_once(owner.fence, owner.seen, owner.finishing(deliveries=pieces))
    assert [
        (row["lane_pos"], f"piece {row['lane_pos'] - 1}" in str(row["payload"])) for row in await world.deliveries()
    ] == [
        (1, True),
        (2, True),
        (3, True),
    ]


async def test_some_of_what_merged_may_be_refused(world: World) -> None:
    for text in ("one", "rude", "three"):
        said = await world.say(text, mode="collect")
    owner = await world.own(said.session_id)
    finishing = owner.finishing(positions=(1, 3), refused=(2,))
    assert await world.store.finish_at_once(owner.fence, owner.seen, finishing) == Begun(3)
    assert texts(await world.store.messages(said.session_id)) == ["one", "three"]
    assert [row.ended for row in await world.store.mail(said.session_id)] == [Ended.TURN, Ended.REFUSED, Ended.TURN]
    assert (await world.session()).waiting == 0


async def test_a_released_steer_may_finish_at_once(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("two", mode="steer")
    await owner.look()
    await owner.commit()
    await owner.look()
    finishing = owner.finishing(turn_id="fresh", positions=(2,))
    assert await world.store.finish_at_once(owner.fence, owner.seen, finishing) == Begun(4)
    turn = await world.store.turn("fresh")
    assert turn is not None
    assert (turn.state, turn.position) == (TurnState.COMPLETED, 2)


async def test_nothing_finishes_at_once_while_the_session_is_held(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await world.store.set_paused("s", True)
    before = await world.everything()
    assert await world.store.finish_at_once(owner.fence, owner.seen, owner.finishing()) is None
    assert await world.everything() == before


async def test_what_still_merges_demands_that_nothing_came_since(world: World) -> None:
    said = await world.say("one", mode="collect")
    owner = await world.own(said.session_id)
    assert (await world.say("two", mode="collect")).verdict is Verdict.MERGED
    before = await world.everything()
    assert await world.store.finish_at_once(owner.fence, owner.seen, owner.finishing(positions=(1,))) is None
    assert await world.everything() == before


@pytest.mark.parametrize("changes", [{"positions": (9,)}, {"positions": (1,), "refused": (9,)}, {"turn_id": "other"}])
async def test_what_is_not_there_to_be_taken_undoes_all_of_it(world: World, changes: dict[str, object]) -> None:
    other = await world.say("other", session="other")
    said = await world.say("one")
    await world.say("two")
    owner = await world.own(said.session_id)
    values = {**changes, "turn_id": other.turn_id} if "turn_id" in changes else changes
    finishing = owner.finishing(alerts=(alert("k"),), **values)
    before = await world.everything()
    assert await world.store.finish_at_once(owner.fence, owner.seen, finishing) is None
    assert await world.everything() == before


async def test_a_turn_that_has_ended_is_not_finished_again(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    finishing = owner.finishing()
    assert await world.store.finish_at_once(owner.fence, owner.seen, finishing) is not None
    await world.say("two")
    await owner.look()
    before = await world.everything()
    for positions in ((1,), (2,)):
        again = replace(finishing, positions=positions)
        assert await world.store.finish_at_once(owner.fence, owner.seen, again) is None
    assert await world.everything() == before


async def test_a_turn_that_is_given_up_tells_when_to_come_back(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    error = {"type": "budget_exceeded", "message": "the day's budget is spent", "retry_after": 3599.75}
    giving_up = owner.giving_up(error=error)
    assert await world.store.fail_queued(owner.fence, owner.seen, giving_up) == Begun(1)
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert turn.error == error
