"""Interrupts and cancels: what they aim at, and that nothing starts behind their back."""

from __future__ import annotations

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.storage.operations import SettleMail
from insika.storage.rows import Ended, TurnState, Verdict
from tests.store_world import KEY, World, texts


async def test_an_interrupt_aims_at_the_running_turn(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    interrupt = await world.say("stop", mode="interrupt")
    assert (interrupt.verdict, interrupt.turn_id != first.turn_id) == (Verdict.INTERRUPTING, True)
    session = await world.session()
    assert (session.urgent_seq, session.mail_seq, session.turn_key, session.due_at) == (2, 2, None, DUE_NOW)
    await owner.look()
    (mail,) = owner.loaded.mail
    assert mail.cuts == first.turn_id


async def test_an_interrupted_turn_takes_no_more_steers(world: World) -> None:
    first = await world.say()
    await (await world.own(first.session_id)).start()
    await world.say("stop", mode="interrupt")
    assert (await world.say("also", mode="steer")).verdict is Verdict.ACCEPTED


async def test_an_interrupt_with_no_turn_running_cuts_nothing(world: World) -> None:
    await world.say("one")
    said = await world.say("two", mode="interrupt")
    assert said.verdict is Verdict.ACCEPTED
    owner = await world.own(said.session_id)
    assert [row.cuts for row in owner.loaded.mail] == [None, None]
    assert owner.loaded.session.urgent_seq == 0
    assert await owner.start() == 1


async def test_those_who_waited_before_an_interrupt_keep_their_place_before_it(world: World) -> None:
    first = await world.say("one")
    owner = await world.own(first.session_id)
    await owner.start()
    await world.say("two")
    await world.say("three", mode="interrupt")
    await owner.look()
    await owner.fail(state=TurnState.CANCELLED, outcome="cancelled")
    await owner.look()
    assert [row.text for row in owner.loaded.mail] == ["two", "three"]
    await owner.start()
    assert texts(await world.store.messages(first.session_id)) == ["one", "two"]


async def test_a_cancel_of_the_running_turn_is_a_control_message_in_order(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    control = await world.store.cancel(owner.turn_id, request_id="r")
    assert control is not None
    assert (control.verdict, control.turn_id, control.position) == (Verdict.CONTROL, first.turn_id, 2)
    session = await world.session()
    assert (session.mail_seq, session.urgent_seq, session.waiting, session.turn_key) == (2, 2, 0, None)
    await owner.look()
    (mail,) = owner.loaded.mail
    assert (mail.mode, mail.verdict, mail.cuts, mail.turn_id) == (
        "cancel",
        Verdict.CONTROL,
        first.turn_id,
        first.turn_id,
    )
    assert await owner.commit() is not None, "the owner has seen the cancel: it is the owner that honours it"


async def test_ending_a_cancelled_turn_ends_the_control_message_with_it(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    await world.store.cancel(owner.turn_id, request_id="r")
    await owner.look()
    assert await owner.fail(state=TurnState.CANCELLED, outcome="cancelled", control=(2,))
    assert [row.ended for row in await world.store.mail(first.session_id)] == [Ended.TURN, Ended.CONTROL]
    turn = await world.store.turn(first.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome, turn.ended_at) == (TurnState.CANCELLED, "cancelled", world.clock.now())
    assert await (await owner.look()).release()


async def test_a_cancel_under_the_same_request_is_one_cancel(world: World) -> None:
    first = await world.say()
    turn_id = first.turn_id or ""
    once = await world.store.cancel(turn_id, request_id="r")
    before = await world.everything()
    again = await world.store.cancel(turn_id, request_id="r")
    assert once is not None
    assert again is not None
    assert (again.verdict, again.position, again.turn_id) == (Verdict.DUPLICATE, once.position, turn_id)
    assert await world.everything() == before


async def test_a_cancel_repeated_after_it_was_honoured_says_what_became_of_the_turn(world: World) -> None:
    first = await world.say()
    turn_id = first.turn_id or ""
    owner = await world.own(first.session_id)
    await owner.start()
    await world.store.cancel(turn_id, request_id="r")
    await owner.look()
    await owner.fail(state=TurnState.CANCELLED, outcome="cancelled", control=(2,))
    again = await world.store.cancel(turn_id, request_id="r")
    assert again is not None
    assert (again.verdict, again.turn_state) == (Verdict.DUPLICATE, TurnState.CANCELLED)


async def test_ids_of_jobs_and_of_cancel_requests_are_apart(world: World) -> None:
    first = await world.say(job_id="same")
    control = await world.store.cancel(first.turn_id or "", request_id="same")
    assert control is not None
    assert control.verdict is Verdict.CONTROL
    assert (await world.say(job_id="same")).verdict is Verdict.DUPLICATE


@pytest.mark.parametrize("turn_id", ["", "no such turn"])
async def test_there_is_nothing_to_cancel_in_an_unknown_turn(world: World, turn_id: str) -> None:
    assert await world.store.cancel(turn_id, request_id="r") is None


async def test_there_is_nothing_to_cancel_in_a_turn_that_has_ended(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    await owner.commit()
    before = await world.everything()
    assert await world.store.cancel(first.turn_id or "", request_id="r") is None
    assert await world.everything() == before


async def test_a_cancelled_queued_turn_is_withdrawn_with_its_messages(world: World) -> None:
    first = await world.say("one", mode="collect")
    await world.say("two", mode="collect")
    control = await world.store.cancel(first.turn_id or "", request_id="r")
    assert control is not None
    owner = await world.own(first.session_id)
    settled = await world.store.settle_mail(
        owner.fence, owner.seen, SettleMail((1, 2), "withdrawn", first.turn_id, TurnState.CANCELLED, control=(3,))
    )
    assert settled
    assert [row.ended for row in await world.store.mail(first.session_id)] == [
        Ended.WITHDRAWN,
        Ended.WITHDRAWN,
        Ended.CONTROL,
    ]
    turn = await world.store.turn(first.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome) == (TurnState.CANCELLED, "cancelled")
    assert (await world.session()).waiting == 0
    assert await world.store.messages(first.session_id) == ()


async def test_a_cancel_of_a_collecting_turn_ends_its_merging(world: World) -> None:
    first = await world.say("one", mode="collect")
    await world.store.cancel(first.turn_id or "", request_id="r")
    after = await world.say("two", mode="collect")
    assert (after.verdict, after.turn_id != first.turn_id) == (Verdict.ACCEPTED, True)


async def test_a_cancel_of_another_turn_leaves_the_running_one_steerable(world: World) -> None:
    first = await world.say("one")
    second = await world.say("two")
    await (await world.own(first.session_id)).start()
    await world.store.cancel(second.turn_id or "", request_id="r")
    assert (await world.say("also", mode="steer")).verdict is Verdict.STEERED


async def test_a_control_message_takes_no_room_in_the_mailbox(world: World) -> None:
    first = await world.say("one", mailbox_max=2)
    for request in ("r1", "r2", "r3"):
        assert await world.store.cancel(first.turn_id or "", request_id=request) is not None
    assert (await world.session()).waiting == 1
    assert (await world.say("two", mailbox_max=2)).verdict is Verdict.ACCEPTED


async def test_a_cancel_wakes_a_session_that_sleeps(world: World) -> None:
    first = await world.say(mode="collect", debounce_ms=60_000)
    assert (await world.session()).due_at not in (DUE_NOW, NEVER)
    await world.store.cancel(first.turn_id or "", request_id="r")
    assert (await world.session()).due_at == DUE_NOW


async def test_a_refused_interrupt_gives_the_turn_its_steers_back(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    interrupt = await world.say("rude words", mode="interrupt")
    await owner.look()
    settle = SettleMail((2,), "refused", interrupt.turn_id, TurnState.REFUSED, steerable_key=KEY)
    assert await world.store.settle_mail(owner.fence, owner.seen, settle)
    assert (await world.say("also", mode="steer")).verdict is Verdict.STEERED
    assert [row.ended for row in await world.store.mail(first.session_id)] == [Ended.TURN, Ended.REFUSED, None]


async def test_a_refused_interrupt_gives_nothing_back_when_something_newer_is_urgent(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    interrupt = await world.say("rude words", mode="interrupt")
    await owner.look()
    await world.say("stop now", mode="interrupt")
    settle = SettleMail((2,), "refused", interrupt.turn_id, TurnState.REFUSED, steerable_key=KEY)
    assert await world.store.settle_mail(owner.fence, owner.seen, settle)
    assert (await world.say("also", mode="steer")).verdict is Verdict.ACCEPTED


async def test_a_request_that_was_used_for_one_turn_may_cancel_another(world: World) -> None:
    first, second = await world.say("one"), await world.say("two")
    for said in (first, second):
        cancelled = await world.store.cancel(said.turn_id or "", request_id="r")
        assert cancelled is not None
        assert (cancelled.verdict, cancelled.turn_id) == (Verdict.CONTROL, said.turn_id)
    again = await world.store.cancel(second.turn_id or "", request_id="r")
    assert again is not None
    assert (again.verdict, again.position) == (Verdict.DUPLICATE, 4)
