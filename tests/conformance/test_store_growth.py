"""The store grows by what happened: nothing is saved twice, however often it is tried, resumed or asked for."""

from __future__ import annotations

from tests.store_world import ESTIMATE, World, answer_call, assert_valid_conversation, done

COUNTED = ("sessions", "job_ids", "mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")


async def counts(world: World) -> dict[str, int]:
    everything = await world.everything()
    return {table: len(everything[table]) for table in COUNTED}


async def test_each_turn_adds_its_own_rows_and_no_others(world: World) -> None:
    said = await world.say("message 1")
    owner = await world.own(said.session_id)
    for turn in range(1, 21):
        await owner.run_turn()
        assert await counts(world) == {
            "sessions": 1,
            "job_ids": turn,
            "mailbox": turn,
            "turns": turn,
            "messages": 4 * turn,
            "tool_calls": turn,
            "model_calls": 2 * turn,
            "outbox": turn,
        }
        await world.say(f"message {turn + 1}")
        await owner.look()
    assert_valid_conversation(await world.store.messages(said.session_id))


async def test_retries_resumes_and_repeats_save_nothing_again(world: World) -> None:
    said = await world.say("hello", job_id="j")
    owner = await world.own(said.session_id)
    for _ in range(5):
        await world.say("hello", job_id="j")
        owner = await world.take_over(said.session_id)
    opening = owner.opening()
    await owner.start()
    for attempt in (2, 3):
        await world.store.retry_model(
            owner.fence, owner.seen, owner.turn_id, answer_call(1, attempt), estimate=ESTIMATE
        )
        assert await world.store.start(owner.fence, owner.seen, opening) is None
        owner = await world.take_over(said.session_id)
    await owner.append("a", "b")
    for _ in range(3):
        assert await owner.append("a", "b") is None
        await owner.start_call()
        owner = await world.take_over(said.session_id)
        await owner.finish_call(done(0, "a"))
    results = (done(0, "a"), done(1, "b"))
    await owner.cross(*results)
    assert await owner.cross(*results) is None
    owner = await world.take_over(said.session_id)
    ending = owner.ending(2)
    assert await world.store.commit(owner.fence, owner.seen, ending) is not None
    assert await world.store.commit(owner.fence, owner.seen, ending) is None
    assert await counts(world) == {
        "sessions": 1,
        "job_ids": 1,
        "mailbox": 1,
        "turns": 1,
        "messages": 5,
        "tool_calls": 2,
        "model_calls": 4,
        "outbox": 1,
    }
    assert_valid_conversation(await world.store.messages(said.session_id))


async def test_there_is_one_row_for_every_model_call_begun_whatever_became_of_it(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    turn_id = owner.turn_id
    await world.store.retry_model(owner.fence, owner.seen, turn_id, answer_call(1, 2), estimate=ESTIMATE)
    owner = await world.take_over(said.session_id)
    await world.store.retry_model(owner.fence, owner.seen, turn_id, answer_call(1, 3), estimate=ESTIMATE)
    await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
    owner = await world.own(said.session_id)
    await world.store.retry_model(owner.fence, owner.seen, turn_id, answer_call(1, 4), estimate=ESTIMATE)
    await owner.fail()
    calls = await world.store.model_calls(turn_id)
    assert [(call.attempt, call.state, call.usage) for call in calls] == [
        (attempt, "estimated", ESTIMATE) for attempt in (1, 2, 3, 4)
    ]
