"""Messages that join a turn which has not started, and how long such a turn waits for more."""

from __future__ import annotations

from datetime import timedelta

import pytest

from insika.clock import DUE_NOW
from insika.storage.rows import Ended, Verdict
from tests.store_world import World, texts


async def test_collected_messages_become_one_turn(world: World) -> None:
    first = await world.say("one", mode="collect")
    second = await world.say("two", mode="collect")
    third = await world.say("three", mode="collect")
    assert [said.verdict for said in (first, second, third)] == [Verdict.ACCEPTED, Verdict.MERGED, Verdict.MERGED]
    assert {first.turn_id, second.turn_id, third.turn_id} == {first.turn_id}
    assert len(await world.store.turns(first.session_id)) == 1
    owner = await world.own(first.session_id)
    await owner.start()
    assert texts(await world.store.messages(first.session_id)) == ["one", "two", "three"]
    assert {row.consumed_by for row in await world.store.mail(first.session_id)} == {first.turn_id}


async def test_only_messages_with_one_key_merge(world: World) -> None:
    await world.say("one", mode="collect")
    assert (await world.say("two", mode="collect", key="other")).verdict is Verdict.ACCEPTED
    assert (await world.say("three", mode="collect")).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("between", ["followup", "interrupt", "steer"])
async def test_a_message_that_does_not_merge_ends_the_merging(world: World, between: str) -> None:
    await world.say("one", mode="collect")
    assert (await world.say("two", mode=between)).verdict is Verdict.ACCEPTED
    assert (await world.say("three", mode="collect")).verdict is Verdict.ACCEPTED
    assert (await world.say("four", mode="collect")).verdict is Verdict.MERGED


async def test_a_steered_message_ends_the_merging(world: World) -> None:
    first = await world.say()
    await (await world.own(first.session_id)).start()
    collected = await world.say("one", mode="collect")
    assert (await world.say("two", mode="steer")).verdict is Verdict.STEERED
    after = await world.say("three", mode="collect")
    assert (after.verdict, after.turn_id != collected.turn_id) == (Verdict.ACCEPTED, True)


async def test_a_steer_with_a_debounce_window_that_no_turn_takes_collects(world: World) -> None:
    first = await world.say("one", mode="steer", debounce_ms=400)
    second = await world.say("two", mode="steer", debounce_ms=400)
    assert (first.verdict, second.verdict, second.turn_id) == (Verdict.ACCEPTED, Verdict.MERGED, first.turn_id)
    third = await world.say("three", mode="steer")
    assert (third.verdict, third.turn_id != first.turn_id) == (Verdict.ACCEPTED, True)


async def test_a_steer_with_a_debounce_window_still_joins_a_running_turn(world: World) -> None:
    first = await world.say()
    await (await world.own(first.session_id)).start()
    assert (await world.say("two", mode="steer", debounce_ms=400)).verdict is Verdict.STEERED
    assert (await world.session()).due_at == DUE_NOW


async def test_a_debounced_message_is_due_after_its_window_and_keeps_time_and_windows(world: World) -> None:
    said = await world.say(mode="collect", debounce_ms=400, debounce_max_ms=3000)
    due = world.clock.now() + timedelta(milliseconds=400)
    assert (await world.session()).due_at == due
    assert await world.store.next_due_at() == due
    assert await world.store.claim(said.session_id, 15) is None
    world.clock.advance(0.4)
    owner = await world.own(said.session_id)
    (mail,) = owner.loaded.mail
    assert (mail.at, mail.debounce_ms, mail.debounce_max_ms) == (due - timedelta(milliseconds=400), 400, 3000)
    assert owner.loaded.session.merge_turn == said.turn_id


async def test_a_merge_never_moves_the_due_time_later(world: World) -> None:
    await world.say(mode="collect", debounce_ms=400)
    due = (await world.session()).due_at
    world.clock.advance(0.3)
    assert (await world.say("two", mode="collect", debounce_ms=400)).verdict is Verdict.MERGED
    assert (await world.session()).due_at == due


async def test_an_owner_may_wait_on_and_the_window_still_merges(world: World) -> None:
    said = await world.say(mode="collect", debounce_ms=400)
    world.clock.advance(0.4)
    owner = await world.own(said.session_id)
    later = world.clock.now() + timedelta(seconds=1)
    assert await owner.release(later)
    assert (await world.session()).due_at == later
    assert (await world.say("two", mode="collect", debounce_ms=400)).verdict is Verdict.MERGED


async def test_starting_a_turn_that_still_merges_demands_that_nothing_came_since(world: World) -> None:
    said = await world.say("one", mode="collect")
    owner = await world.own(said.session_id)
    assert (await world.say("two", mode="collect")).verdict is Verdict.MERGED
    before = await world.everything()
    assert await owner.start() is None
    assert await world.everything() == before
    await owner.look()
    assert await owner.start() == 2
    assert [row.ended for row in await world.store.mail(said.session_id)] == [Ended.TURN, Ended.TURN]


async def test_starting_a_turn_that_no_longer_merges_does_not_mind_what_came_since(world: World) -> None:
    said = await world.say("one", mode="collect")
    await world.say("two")
    owner = await world.own(said.session_id)
    await world.say("three")
    assert await owner.start() == 1


async def test_once_started_a_turn_takes_no_merges(world: World) -> None:
    said = await world.say("one", mode="collect")
    owner = await world.own(said.session_id)
    await owner.start()
    after = await world.say("two", mode="collect")
    assert (after.verdict, after.turn_id != said.turn_id) == (Verdict.ACCEPTED, True)


async def test_a_start_clears_only_its_own_merging(world: World) -> None:
    said = await world.say("one")
    collected = await world.say("two", mode="collect")
    owner = await world.own(said.session_id)
    await owner.start()
    merged = await world.say("three", mode="collect")
    assert (merged.verdict, merged.turn_id) == (Verdict.MERGED, collected.turn_id)
