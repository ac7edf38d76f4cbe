"""Following a session in a real store, whoever runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actors.cli.chat.follower import Follower
from insika.clock import ManualClock
from insika.storage.operations import SettleMail
from insika.storage.rows import ApprovalDecision, Ended, TurnState
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import Owner, Rows, World, done


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    migrate(tmp_path / "insika.db", clock.now)
    store = SqliteStore.open(tmp_path / "insika.db", clock.now)

    async def peek(_: str) -> Rows:
        return []

    yield World(store, clock, peek)
    await store.close()


async def following(world: World, session: str = "s") -> Follower:
    follower = Follower(world.store, session)
    await follower.begin()
    return follower


async def test_a_session_that_does_not_exist_is_quiet_and_has_no_news(world: World) -> None:
    follower = await following(world)
    news = await follower.look()
    assert (follower.quiet, follower.seen, news.entries, news.ended) == (True, 0, (), ())


async def test_a_turn_is_heard_from_its_first_message_to_its_end(world: World) -> None:
    follower = await following(world)
    accepted = await world.say("hello")
    follower.expect(accepted)
    assert not follower.quiet
    owner = await world.own(accepted.session_id)
    await owner.start()
    first = await follower.look()
    assert [entry.message.content for entry in first.entries] == ["hello"]
    await owner.append("c1")
    assert [entry.message.content for entry in (await follower.look()).entries] == ["let me see"]
    assert (await follower.look()).entries == ()
    await owner.start_call()
    await owner.finish_call(done(0, "c1"))
    await owner.cross(done(0, "c1"))
    await owner.commit(2)
    last = await follower.look()
    assert [entry.message.content for entry in last.entries] == ["ok", "the answer"]
    assert [turn.state for turn in last.ended] == [TurnState.COMPLETED]
    assert follower.quiet
    assert (await follower.look()).ended == []


async def test_a_turn_that_began_and_ended_between_two_looks_ends_once_and_after_its_words(world: World) -> None:
    follower = await following(world)
    accepted = await world.say("hello")
    follower.expect(accepted)
    await (await world.own(accepted.session_id)).run_turn()
    looks = [await follower.look() for _ in range(3)]
    assert [len(look.entries) for look in looks] == [4, 0, 0]
    assert [turn.id for look in looks for turn in look.ended] == [accepted.turn_id]
    assert follower.quiet


async def test_what_was_said_before_is_not_news(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.run_turn()
    follower = await following(world)
    news = await follower.look()
    assert (follower.seen, follower.quiet, news.entries, news.ended) == (4, True, (), [])


async def test_a_turn_that_another_process_left_is_heard_to_its_end(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    follower = await following(world)
    assert not follower.quiet
    heir = await world.take_over(owner.fence.session_id)
    await heir.commit()
    news = await follower.look()
    assert [entry.message.content for entry in news.entries] == ["the answer"]
    assert [turn.id for turn in news.ended] == [owner.turn_id]
    assert follower.quiet


async def test_a_message_that_waits_is_not_forgotten_when_the_turn_it_should_join_ends(world: World) -> None:
    follower = await following(world)
    owner = await world.own((await world.say("one", mode="steer")).session_id)
    await owner.start()
    steered = await world.say("two", mode="steer")
    assert steered.turn_id == owner.turn_id
    follower.expect(steered)
    await owner.look()
    await owner.commit()
    await follower.look()
    await follower.look()
    assert not follower.quiet
    await owner.look()
    await owner.start(turn_id="released")
    await owner.commit()
    news = await follower.look()
    assert [entry.message.content for entry in news.entries] == ["two", "the answer"]
    await follower.look()
    assert follower.quiet


async def test_a_turn_that_is_withdrawn_before_it_began_is_told_as_ended(world: World) -> None:
    follower = await following(world)
    accepted = await world.say()
    follower.expect(accepted)
    assert accepted.turn_id is not None
    await world.store.cancel(accepted.turn_id, request_id="r")
    owner = await world.own(accepted.session_id)
    settled = await world.store.settle_mail(
        owner.fence, owner.seen, SettleMail((1,), Ended.WITHDRAWN, accepted.turn_id, TurnState.CANCELLED, control=(2,))
    )
    assert settled
    news = await follower.look()
    assert [turn.state for turn in news.ended] == [TurnState.CANCELLED]
    assert follower.quiet


async def test_a_message_that_was_heard_of_before_its_verdict_is_not_waited_for(world: World) -> None:
    follower = await following(world)
    accepted = await world.say()
    owner = await world.own(accepted.session_id)
    await owner.start()
    await owner.commit()
    await follower.look()
    follower.expect(accepted)
    await follower.look()
    assert follower.quiet


async def test_a_duplicate_is_not_waited_for(world: World) -> None:
    owner = await world.own((await world.say(job_id="m1")).session_id)
    await owner.run_turn()
    follower = await following(world)
    follower.expect(await world.say(job_id="m1"))
    assert follower.quiet


async def test_a_hold_is_seen(world: World) -> None:
    await world.say()
    follower = await following(world)
    await world.store.set_paused("s", True)
    await follower.look()
    assert (follower.paused, follower.quiet) == (True, False)


async def asking(world: World, *call_ids: str) -> Owner:
    """The owner of a turn that waits for a person about these calls."""
    accepted = await world.say("hello")
    owner = await world.own(accepted.session_id)
    await owner.start()
    await owner.append(*call_ids)
    assert await owner.ask(*call_ids)
    assert await owner.suspend()
    return owner


async def test_a_turn_that_waits_for_a_person_asks_once_and_is_quiet(world: World) -> None:
    follower = await following(world)
    owner = await asking(world, "c1", "c2")
    looks = [await follower.look() for _ in range(2)]
    assert [[each.approval.call_id for each in look.asked] for look in looks] == [["c1", "c2"], []]
    assert [each.approval.call_id for each in follower.questions] == ["c1", "c2"]
    assert follower.quiet
    first = owner.approval("c1").id
    await world.store.decide(first, ApprovalDecision.APPROVED, by="ann")
    follower.decided(first)
    assert [each.approval.call_id for each in follower.questions] == ["c2"]
    assert (await follower.look()).asked == []
    assert [each.approval.call_id for each in follower.questions] == ["c2"]


async def test_once_all_is_decided_the_turn_is_waited_for(world: World) -> None:
    follower = await following(world)
    owner = await asking(world, "c1")
    await follower.look()
    await world.store.decide(owner.approval("c1").id, ApprovalDecision.REJECTED, by="ann")
    assert (await follower.look()).asked == []
    assert (follower.questions, follower.quiet) == ([], False)


async def test_a_question_that_stands_already_is_news_to_who_comes(world: World) -> None:
    await asking(world, "c1")
    follower = await following(world)
    assert [each.approval.call_id for each in (await follower.look()).asked] == ["c1"]


async def test_a_question_is_news_while_other_calls_of_the_turn_run_and_the_session_is_not_quiet(world: World) -> None:
    follower = await following(world)
    accepted = await world.say("hello")
    owner = await world.own(accepted.session_id)
    await owner.start()
    await owner.append("c1")
    assert await owner.ask("c1")
    assert [each.approval.call_id for each in (await follower.look()).asked] == ["c1"]
    assert not follower.quiet
    assert await owner.suspend()
    assert (await follower.look()).asked == []
    assert follower.quiet


async def test_a_question_that_is_settled_elsewhere_is_news_once(world: World) -> None:
    follower = await following(world)
    owner = await asking(world, "c1", "c2")
    assert (await follower.look()).settled == []
    await world.store.decide(owner.approval("c1").id, ApprovalDecision.REJECTED, by="ann")
    (gone,) = (await follower.look()).settled
    assert (gone.approval.call_id, gone.approval.decided_by) == ("c1", "ann")
    assert (await follower.look()).settled == []
    world.clock.advance(601)
    (gone,) = (await follower.look()).settled
    assert (gone.approval.call_id, gone.approval.decision) == ("c2", None)


async def test_a_message_that_waits_behind_a_question_is_quiet_and_an_interrupt_is_not(world: World) -> None:
    follower = await following(world)
    await asking(world, "c1")
    await follower.look()
    follower.expect(await world.say("and then"))
    await follower.look()
    assert follower.quiet
    follower.expect(await world.say("stop", mode="interrupt"))
    await follower.look()
    assert not follower.quiet
