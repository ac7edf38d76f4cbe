"""What an operator's commands ask of a store: a part of a conversation, a session by its row, and a wake for all."""

from __future__ import annotations

from tests.store_world import LEASE_S, World


async def test_a_conversation_can_be_read_from_behind_a_place(world: World) -> None:
    session_id = (await world.say()).session_id
    await (await world.own(session_id)).run_turn()
    whole = await world.store.messages(session_id)
    assert len(whole) == 4
    assert list(await world.store.messages(session_id, after=2)) == list(whole[2:])
    assert list(await world.store.messages(session_id, after=4)) == []


async def test_a_session_is_found_by_its_row(world: World) -> None:
    session_id = (await world.say(session="ana", tenant="acme")).session_id
    found = await world.store.session_by_id(session_id)
    assert found == await world.store.session("ana", tenant="acme")
    assert await world.store.session_by_id(session_id + 1) is None


async def test_a_message_tells_whose_customer_wrote_it(world: World) -> None:
    session_id = (await world.say(customer="c-1")).session_id
    assert [row.customer for row in await world.store.mail(session_id)] == ["c-1"]


async def test_waking_what_is_due_makes_nudged_sessions_findable_at_once(world: World) -> None:
    first, second = [(await world.say(session=name)).session_id for name in ("a", "b")]
    assert set(await world.store.due_sessions()) == {first, second}
    assert await world.store.due_sessions() == ()
    assert await world.store.wake_due() == 2
    assert set(await world.store.due_sessions()) == {first, second}


async def test_neither_owned_nor_paused_nor_finished_sessions_are_woken(world: World) -> None:
    owned, paused, finished = [(await world.say(session=name)).session_id for name in ("owned", "paused", "finished")]
    await world.store.set_paused("paused", True)
    done = await world.own(finished)
    await done.run_turn()
    assert await done.release()
    await world.own(owned)
    assert await world.store.wake_due() == 0
    world.clock.advance(LEASE_S + 1)
    assert await world.store.wake_due() == 1
    assert await world.store.due_sessions() == (owned,)
    assert paused not in await world.store.due_sessions()
