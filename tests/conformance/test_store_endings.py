"""Every other way a turn or a message ends, and how a lease goes with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.messages import Usage
from insika.storage.operations import FailQueued, SettleMail
from insika.storage.port import StoreRefused
from insika.storage.rows import CallState, Committed, Ended, TurnState, Verdict
from tests.store_world import ESTIMATE, LEASE_S, MEASURED, World, assert_valid_conversation, delivery, done, texts

ERROR = {"type": "worker_lost", "message": "its workers died"}


# --- end


async def test_ending_a_turn_writes_its_error_and_settles_what_is_open(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await owner.fail(timing={"total_ms": 3})
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome, turn.timing) == (TurnState.FAILED, "failed", {"total_ms": 3})
    assert turn.error == {"type": "timeout", "message": "the turn took too long"}
    (call,) = await world.store.model_calls(turn.id)
    assert (call.state, call.usage) == ("estimated", ESTIMATE)
    session = await world.session()
    assert (session.turn_id, session.turn_key, session.open_calls, session.deaths) == (None, None, 0, 0)
    assert session.lease_id == owner.fence.lease_id, "ending a turn keeps the lease"
    assert await world.deliveries() == []


async def test_what_a_person_said_stays_whatever_became_of_the_turn(world: World) -> None:
    said = await world.say("hello")
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.fail()
    assert texts(await world.store.messages(said.session_id)) == ["hello"]
    await world.say("again")
    await owner.look()
    assert await owner.start() == 2


async def test_ending_a_turn_answers_the_rest_of_its_open_batch(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1", "c2")
    await owner.finish_call(done(0, "c0", "was done"))
    await owner.start_call(1)
    left = (
        done(1, "c1", "nobody knows", state=CallState.UNKNOWN, is_error=True),
        done(2, "c2", "was not run", state=CallState.NOT_RUN, is_error=True),
    )
    assert await owner.fail(*left, state=TurnState.CANCELLED, outcome="cancelled")
    log = await world.store.messages(said.session_id)
    assert_valid_conversation(log)
    assert [(entry.message.content, entry.message.is_error) for entry in log[2:]] == [
        ("was done", False),
        ("nobody knows", True),
        ("was not run", True),
    ]
    assert [call.state for call in await world.store.calls(said.turn_id or "")] == [
        CallState.DONE,
        CallState.UNKNOWN,
        CallState.NOT_RUN,
    ]
    (call,) = await world.store.model_calls(said.turn_id or "")
    assert (call.state, call.usage) == ("measured", MEASURED)


async def test_ending_a_turn_without_an_answer_to_every_call_writes_nothing(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1")
    before = await world.everything()
    with pytest.raises(ValueError, match="c1"):
        await owner.fail(done(0, "c0"))
    assert await world.everything() == before


async def test_an_ending_may_deliver(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await owner.fail(deliveries=(delivery("alerts", kind="delivery_failed"),))
    (row,) = await world.deliveries()
    assert (row["kind"], row["lane_pos"]) == ("delivery_failed", 1)


async def test_honouring_a_control_message_that_is_gone_writes_nothing(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    before = await world.everything()
    assert await owner.fail(control=(1,)) is False, "a person's message is no control message"
    assert await owner.fail(control=(9,)) is False
    assert await world.everything() == before


async def test_a_turn_ends_once(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    ending = owner.failing()
    assert await world.store.end(owner.fence, ending)
    await world.say("two")
    await owner.look()
    await owner.start()
    before = await world.everything()
    assert await world.store.end(owner.fence, ending) is False
    assert await world.everything() == before


# --- fail_queued, settle_mail


async def test_a_queued_turn_that_is_given_up_keeps_what_the_person_said(world: World) -> None:
    said = await world.say("one", mode="collect")
    await world.say("two", mode="collect")
    owner = await world.own(said.session_id)
    lost = FailQueued(said.turn_id or "", (1, 2), "shop", "web", "bob", "customer", ERROR, merging=True)
    assert await world.store.fail_queued(owner.fence, owner.seen, lost)
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome, turn.error) == (TurnState.FAILED, "failed", ERROR)
    assert texts(await world.store.messages(said.session_id)) == ["one", "two"]
    assert await world.store.model_calls(turn.id) == ()
    session = await world.session()
    assert (session.waiting, session.turn_id, session.merge_turn, session.deaths) == (0, None, None, 0)
    assert (await world.say("three", mode="collect")).verdict is Verdict.ACCEPTED


async def test_giving_up_a_queued_turn_that_still_merges_demands_that_nothing_came_since(world: World) -> None:
    said = await world.say("one", mode="collect")
    owner = await world.own(said.session_id)
    await world.say("two", mode="collect")
    before = await world.everything()
    lost = FailQueued(said.turn_id or "", (1,), "shop", "web", "bob", "customer", ERROR, merging=True)
    assert await world.store.fail_queued(owner.fence, owner.seen, lost) is None
    assert await world.everything() == before


async def test_giving_up_a_released_steer_makes_its_turn(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("two", mode="steer")
    await owner.look()
    await owner.commit()
    lost = FailQueued("fresh", (2,), "shop", "web", "bob", "customer", ERROR)
    assert await world.store.fail_queued(owner.fence, owner.seen, lost)
    turn = await world.store.turn("fresh")
    assert turn is not None
    assert (turn.state, turn.position) == (TurnState.FAILED, 2)


async def test_a_turn_that_has_ended_or_is_another_session_s_is_not_given_up(world: World) -> None:
    other = await world.say("other", session="other")
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.commit()
    await world.say("two")
    await owner.look()
    before = await world.everything()
    for turn_id in (said.turn_id or "", other.turn_id or ""):
        lost = FailQueued(turn_id, (2,), "shop", "web", "bob", "customer", ERROR)
        assert await world.store.fail_queued(owner.fence, owner.seen, lost) is None
        withdrawn = SettleMail((2,), "withdrawn", turn_id, TurnState.CANCELLED)
        assert await world.store.settle_mail(owner.fence, owner.seen, withdrawn) is False
    assert await world.everything() == before


async def test_a_running_turn_is_not_withdrawn(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("two")
    await owner.look()
    before = await world.everything()
    withdrawn = SettleMail((2,), "withdrawn", said.turn_id, TurnState.CANCELLED)
    assert await world.store.settle_mail(owner.fence, owner.seen, withdrawn) is False
    assert await world.everything() == before


async def test_refused_text_never_enters_the_log(world: World) -> None:
    said = await world.say("rude")
    owner = await world.own(said.session_id)
    refused = SettleMail((1,), "refused", said.turn_id, TurnState.REFUSED)
    assert await world.store.settle_mail(owner.fence, owner.seen, refused)
    assert await world.store.messages(said.session_id) == ()
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome) == (TurnState.REFUSED, "refused")
    (mail,) = await world.store.mail(said.session_id)
    assert (mail.ended, mail.text) == (Ended.REFUSED, "rude")
    assert await (await owner.look()).release()


async def test_who_was_refused_is_told_in_the_same_write_and_in_the_order_of_answers(world: World) -> None:
    said = await world.say("rude")
    owner = await world.own(said.session_id)
    told = (
        delivery("lane", "please", unique_key=f"answer/{said.turn_id}/0"),
        delivery("lane", "be kind", unique_key=f"answer/{said.turn_id}/1"),
    )
    refused = SettleMail((1,), "refused", said.turn_id, TurnState.REFUSED, deliveries=told)
    assert await world.store.settle_mail(owner.fence, owner.seen, refused)
    assert await world.store.settle_mail(owner.fence, owner.seen, refused) is False, "it is told once"
    await world.say("kind")
    await owner.look()
    await owner.start()
    await owner.commit(deliveries=(delivery("lane", "answer"),))
    rows = await world.deliveries()
    assert [(row["lane_pos"], row["session_id"]) for row in rows] == [(n, said.session_id) for n in (1, 2, 3)]
    assert [row["turn_id"] for row in rows[:2]] == [said.turn_id, said.turn_id]
    assert await world.store.messages(said.session_id) != ()


async def test_what_is_told_of_a_refusal_goes_with_it_or_not_at_all(world: World) -> None:
    said = await world.say("rude", mode="collect")
    owner = await world.own(said.session_id)
    await world.say("kind", mode="collect")
    before = await world.everything()
    told = (delivery("lane", unique_key=f"answer/{said.turn_id}/0"),)
    for refused in (
        SettleMail((1,), "refused", said.turn_id, TurnState.REFUSED, merging=True, deliveries=told),
        SettleMail((9,), "refused", said.turn_id, TurnState.REFUSED, deliveries=told),
    ):
        assert await world.store.settle_mail(owner.fence, owner.seen, refused) is False
    assert await world.everything() == before


async def test_a_turn_that_is_refused_takes_no_more_merges(world: World) -> None:
    said = await world.say("rude", mode="collect")
    owner = await world.own(said.session_id)
    refused = SettleMail((1,), "refused", said.turn_id, TurnState.REFUSED, merging=True)
    assert await world.store.settle_mail(owner.fence, owner.seen, refused)
    assert (await world.say("polite", mode="collect")).verdict is Verdict.ACCEPTED


async def test_a_turn_may_live_on_without_some_of_its_messages(world: World) -> None:
    said = await world.say("one", mode="collect")
    await world.say("rude", mode="collect")
    owner = await world.own(said.session_id)
    refused = SettleMail((2,), "refused", None, TurnState.REFUSED)
    assert await world.store.settle_mail(owner.fence, owner.seen, refused)
    await owner.look()
    assert await owner.start() == 1


async def test_settling_mail_of_a_turn_that_still_merges_demands_that_nothing_came_since(world: World) -> None:
    said = await world.say("one", mode="collect")
    owner = await world.own(said.session_id)
    await world.say("two", mode="collect")
    before = await world.everything()
    withdrawn = SettleMail((1,), "withdrawn", said.turn_id, TurnState.CANCELLED, merging=True)
    assert await world.store.settle_mail(owner.fence, owner.seen, withdrawn) is False
    assert await world.everything() == before


@pytest.mark.parametrize(
    "settle",
    [
        SettleMail((1, 2, 3), "refused", None, TurnState.REFUSED),
        SettleMail((1, 1), "refused", None, TurnState.REFUSED),
        SettleMail((), "withdrawn", None, TurnState.CANCELLED, control=(1,)),
        SettleMail((1,), "withdrawn", "no such turn", TurnState.CANCELLED),
    ],
    ids=["too many", "twice", "no control", "no turn"],
)
async def test_settling_what_is_not_there_writes_nothing(world: World, settle: SettleMail) -> None:
    said = await world.say("one")
    await world.say("two")
    owner = await world.own(said.session_id)
    before = await world.everything()
    assert await world.store.settle_mail(owner.fence, owner.seen, settle) is False
    assert await world.everything() == before


async def test_a_control_message_that_came_too_late_is_ended_alone(world: World) -> None:
    first = await world.say("one")
    owner = await world.own(first.session_id)
    await owner.start()
    await world.store.cancel(first.turn_id or "", request_id="r")
    await owner.look()
    await owner.fail()
    await owner.look()
    honoured = SettleMail((), "withdrawn", None, TurnState.CANCELLED, control=(2,))
    assert await world.store.settle_mail(owner.fence, owner.seen, honoured)
    assert (await owner.look()).loaded.mail == ()


# --- letting go


@pytest.mark.parametrize("wait_s", [None, 0, 60], ids=["for good", "due at once", "due later"])
async def test_a_release_demands_that_all_mail_was_seen(world: World, wait_s: int | None) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.commit()
    await world.say("two")
    due_at = NEVER if wait_s is None else world.clock.now() + timedelta(seconds=wait_s)
    before = await world.everything()
    assert await owner.release(due_at) is False
    assert await world.everything() == before


async def test_a_release_lets_go_until_mail_comes(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.commit(deliveries=())
    await owner.look()
    assert await owner.release()
    session = await world.session()
    assert (session.lease_id, session.lease_until, session.due_at) == (None, None, NEVER)
    assert await world.store.next_due_at() == NEVER
    await world.say("two")
    assert (await world.session()).due_at == DUE_NOW


async def test_a_release_never_strands_what_is_left_to_do(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    assert await owner.release(NEVER) is False, "a message waits"
    await owner.start()
    assert await owner.release(NEVER) is False, "a turn runs"
    assert await owner.release(world.clock.now() + timedelta(seconds=5))


async def test_a_commit_takes_the_lease_with_it_when_nothing_is_left(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await owner.commit(release_due=NEVER) == Committed(released=True)
    session = await world.session()
    assert (session.lease_id, session.due_at) == (None, NEVER)
    assert await world.store.load(owner.fence) is None


async def test_a_commit_keeps_the_lease_when_it_is_not_asked_to_let_go(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await owner.commit(release_due=None) == Committed(released=False)
    assert (await world.session()).lease_id == owner.fence.lease_id


@pytest.mark.parametrize("seen", [False, True], ids=["unseen", "seen"])
async def test_a_commit_keeps_the_lease_when_mail_waits(world: World, seen: bool) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("two")
    if seen:
        await owner.look()
    assert await owner.commit(release_due=NEVER) == Committed(released=False)
    session = await world.session()
    assert (session.lease_id, session.due_at) == (owner.fence.lease_id, DUE_NOW)


async def test_a_commit_keeps_the_lease_when_a_control_message_waits(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await world.store.cancel(owner.turn_id, request_id="r")
    await owner.look()
    assert await owner.commit(release_due=NEVER) == Committed(released=False)


async def test_a_message_between_the_last_boundary_and_the_end_is_not_lost(world: World) -> None:
    """Stand there, and send K: each appears exactly once."""
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.cross(done(0, "a"))
    late = [await world.say(f"late {n}", mode="steer") for n in range(3)]
    assert {accepted.verdict for accepted in late} == {Verdict.STEERED}
    assert await owner.commit(2, release_due=NEVER) == Committed(released=False)
    await owner.look()
    assert await owner.start(turn_id="fresh", positions=(2, 3, 4))
    said_texts = texts(await world.store.messages(said.session_id))
    assert said_texts == ["one", "late 0", "late 1", "late 2"]


async def test_a_drain_lets_go_in_the_middle_of_a_turn(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("c0", "c1", "c2")
    await owner.finish_call(done(0, "c0"))
    await owner.start_call(1)
    await world.say("two")
    assert await world.store.release_for_drain(owner.fence, unknown_result="may have happened", estimate=ESTIMATE)
    session = await world.session()
    assert (session.lease_id, session.due_at, session.turn_id) == (None, DUE_NOW, said.turn_id)
    calls = await world.store.calls(said.turn_id or "")
    assert [(call.state, call.result) for call in calls] == [
        (CallState.DONE, "ok"),
        (CallState.UNKNOWN, "may have happened"),
        (CallState.ANNOUNCED, None),
    ]
    next_owner = await world.own(said.session_id)
    assert next_owner.claim.deaths == 0
    results = (done(0, "c0"), done(1, "c1", "?"), done(2, "c2"))
    assert await next_owner.cross(*results)
    assert [entry.message.content for entry in next_owner.loaded.log[2:]] == ["ok", "may have happened", "ok"]


async def test_a_drain_while_the_model_talks_estimates_what_it_cost(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    assert await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=Usage(3, 1))
    (call,) = await world.store.model_calls(said.turn_id or "")
    assert (call.state, call.usage) == ("estimated", Usage(3, 1))


async def test_a_drain_between_turns_just_lets_go(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    assert await world.store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)
    assert await world.store.claim(said.session_id, LEASE_S) is not None


async def test_call_ids_are_unique_within_a_turn_and_only_there(world: World) -> None:
    said = await world.say()
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await owner.cross(done(0, "a"))
    before = await world.everything()
    with pytest.raises(StoreRefused):
        await owner.append("a", step=2)
    assert await world.everything() == before
    await owner.commit(2)
    await world.say("two")
    await owner.look()
    await owner.start()
    assert await owner.append("a") is not None
