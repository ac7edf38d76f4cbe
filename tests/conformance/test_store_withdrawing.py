"""Taking a message back: a request in the session's order that stops nothing, and that only the owner settles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.storage.operations import SettleMail
from insika.storage.rows import Committed, Ended, TurnState, Verdict, Withdrawal
from tests.store_world import LEASE_S, Owner, World, done, texts

A_DAY_S = 24 * 60 * 60


async def withdraw(world: World, job_id: str = "one", request_id: str = "r", session: str = "s") -> Withdrawal:
    withdrawal = await world.store.withdraw(session, job_id, request_id=request_id)
    assert withdrawal is not None
    return withdrawal


async def settle(owner: Owner, *positions: int, control: tuple[int, ...], turn_id: str | None = None) -> bool:
    merging = turn_id is not None and owner.loaded.session.merge_turn == turn_id
    mail = SettleMail(positions, "withdrawn", turn_id, TurnState.CANCELLED, control=control, merging=merging)
    settled = await owner.store.settle_mail(owner.fence, owner.seen, mail)
    await owner.look()
    return settled


async def test_a_request_is_a_control_message_that_names_its_aim(world: World) -> None:
    said = await world.say("one", job_id="one", agent="help", channel=None, recipient=None, origin="scheduled")
    await world.say("two")
    assert await withdraw(world) == Withdrawal(said.session_id, 1, 3)
    *_, mail = await world.store.mail(said.session_id)
    assert (mail.position, mail.job_id, mail.mode, mail.verdict) == (3, "r", "withdraw", Verdict.CONTROL)
    assert (mail.withdraws, mail.cuts, mail.turn_id, mail.key, mail.text) == (1, None, said.turn_id, None, "")
    assert (mail.agent, mail.channel, mail.recipient, mail.origin) == ("help", None, None, "scheduled")
    assert (mail.ended, mail.at) == (None, world.clock.now())
    owner = await world.own(said.session_id)
    assert [row.withdraws for row in owner.loaded.mail] == [None, None, 1]


async def test_it_is_counted_as_mail_and_nothing_more(world: World) -> None:
    await world.say("one", job_id="one", mode="collect", debounce_ms=60_000)
    before = await world.session()
    await withdraw(world)
    assert await world.session() == replace(before, mail_seq=2, due_at=DUE_NOW)


async def test_it_neither_stops_nor_delays_a_running_turn(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await owner.append("a")
    await world.say("two", job_id="two", mode="steer")
    await withdraw(world, "two")
    assert (await owner.start_call()).moved
    await owner.finish_call(done(0, "a"))
    assert await owner.cross(done(0, "a")) is not None
    assert (await world.say("three", mode="steer")).verdict is Verdict.STEERED
    assert await owner.commit(2) == Committed(released=False)


async def test_nobody_lets_go_past_it(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("two", job_id="two", mode="steer")
    await owner.look()
    await owner.append("a")
    await withdraw(world, "two")
    assert await owner.cross(done(0, "a"), nothing_unseen=True, absorbed=owner.absorbing(2)) is None
    assert await owner.release(world.clock.now()) is False


async def test_an_owner_never_lets_go_for_good_with_a_request_open(world: World) -> None:
    said = await world.say("one", job_id="one")
    owner = await world.own(said.session_id)
    await withdraw(world)
    await owner.look()
    await owner.start()
    assert await owner.commit(release_due=NEVER) == Committed(released=False)
    await owner.look()
    assert await owner.release() is False
    assert await settle(owner, control=(2,))
    assert await owner.release()


async def test_a_message_is_taken_back_with_the_turn_that_was_its_own(world: World) -> None:
    said = await world.say("one", job_id="one")
    control = (await withdraw(world)).control
    owner = await world.own(said.session_id)
    assert control is not None
    assert await settle(owner, 1, control=(control,), turn_id=said.turn_id)
    assert [row.ended for row in await world.store.mail(said.session_id)] == [Ended.WITHDRAWN, Ended.CONTROL]
    turn = await world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state, turn.outcome) == (TurnState.CANCELLED, "cancelled")
    assert await world.store.messages(said.session_id) == ()
    assert (await world.session()).waiting == 0
    assert await owner.release()


async def test_a_turn_lives_on_with_the_messages_that_were_not_taken_back(world: World) -> None:
    said = await world.say("one", job_id="one", mode="collect")
    await world.say("two", mode="collect")
    await withdraw(world)
    owner = await world.own(said.session_id)
    assert await settle(owner, 1, control=(3,))
    merged = await world.say("three", mode="collect")
    assert (merged.verdict, merged.turn_id) == (Verdict.MERGED, said.turn_id)
    await owner.look()
    assert await owner.start() == 2
    assert texts(await world.store.messages(said.session_id)) == ["two", "three"]


async def test_a_turn_that_is_taken_back_takes_no_more_merges(world: World) -> None:
    said = await world.say("one", job_id="one", mode="collect")
    await withdraw(world)
    owner = await world.own(said.session_id)
    await world.say("two", mode="collect")
    before = await world.everything()
    late = SettleMail((1,), "withdrawn", said.turn_id, TurnState.CANCELLED, control=(2,), merging=True)
    assert not await world.store.settle_mail(owner.fence, owner.seen, late), "it is no longer its only message"
    assert await world.everything() == before
    await owner.look()
    assert await settle(owner, 1, control=(2,))
    await owner.start()
    assert texts(await world.store.messages(said.session_id)) == ["two"]


async def test_a_steer_is_taken_back_while_the_turn_goes_on(world: World) -> None:
    said = await world.say("one")
    owner = await world.own(said.session_id)
    await owner.start()
    await world.say("two", job_id="two", mode="steer")
    await withdraw(world, "two")
    await owner.look()
    assert await settle(owner, 2, control=(3,))
    assert (await world.session()).turn_id == said.turn_id
    assert await owner.commit(release_due=NEVER) == Committed(released=True)
    assert texts(await world.store.messages(said.session_id)) == ["one"]


@pytest.mark.parametrize("how", [Ended.TURN, Ended.REFUSED, Ended.WITHDRAWN])
async def test_what_has_ended_is_not_asked_for_and_how_it_ended_is_told(world: World, how: Ended) -> None:
    said = await world.say("one", job_id="one")
    owner = await world.own(said.session_id)
    if how is Ended.TURN:
        await owner.start()
    else:
        mail = SettleMail((1,), how, said.turn_id, TurnState.REFUSED)
        assert await world.store.settle_mail(owner.fence, owner.seen, mail)
    before = await world.everything()
    consumed_by = said.turn_id if how is Ended.TURN else None
    assert await withdraw(world) == Withdrawal(said.session_id, 1, None, how, consumed_by)
    assert await world.everything() == before


async def test_a_request_that_came_too_late_is_ended_alone(world: World) -> None:
    said = await world.say("one", job_id="one")
    owner = await world.own(said.session_id)
    await withdraw(world)
    await owner.start()
    assert await settle(owner, control=(2,))
    first, control = await world.store.mail(said.session_id)
    assert (first.ended, first.consumed_by, control.ended) == (Ended.TURN, said.turn_id, Ended.CONTROL)


async def test_the_same_request_again_answers_the_same_and_writes_nothing(world: World) -> None:
    await world.say("one", job_id="one")
    once = await withdraw(world)
    before = await world.everything()
    assert await withdraw(world) == once
    assert await world.everything() == before


async def test_the_same_request_after_it_was_settled_tells_what_became_of_the_message(world: World) -> None:
    said = await world.say("one", job_id="one")
    once = await withdraw(world)
    owner = await world.own(said.session_id)
    await settle(owner, 1, control=(2,), turn_id=said.turn_id)
    before = await world.everything()
    assert await withdraw(world) == replace(once, ended=Ended.WITHDRAWN)
    assert await world.everything() == before


async def test_two_requests_for_one_message_are_two_and_both_are_settled(world: World) -> None:
    said = await world.say("one", job_id="one")
    controls = [(await withdraw(world, request_id=request)).control for request in ("r1", "r2")]
    assert controls == [2, 3]
    owner = await world.own(said.session_id)
    assert await settle(owner, 1, control=(2, 3), turn_id=said.turn_id)
    assert await owner.release()


async def test_a_request_used_for_one_message_may_ask_for_another(world: World) -> None:
    await world.say("one", job_id="one")
    await world.say("two", job_id="two")
    assert (await withdraw(world, "one")).control == 3
    assert (await withdraw(world, "two")).control == 4


async def test_a_request_is_known_for_a_day(world: World) -> None:
    await world.say("one", job_id="one")
    await withdraw(world)
    world.clock.advance(A_DAY_S - 1)
    assert (await withdraw(world)).control == 2
    world.clock.advance(1)
    assert (await withdraw(world)).control == 3


async def test_ids_of_requests_are_apart_from_ids_of_messages(world: World) -> None:
    await world.say("one", job_id="one")
    assert (await withdraw(world, "one", request_id="one")).control == 2
    assert (await world.say("one", job_id="one")).verdict is Verdict.DUPLICATE
    assert (await withdraw(world, "one", request_id="one")).control == 2


async def test_an_id_that_begins_anew_names_the_newer_message(world: World) -> None:
    await world.say("one", job_id="one")
    world.clock.advance(A_DAY_S)
    await world.say("another", job_id="one")
    assert (await withdraw(world)).position == 2


@pytest.mark.parametrize(
    ("session", "job_id", "tenant"),
    [("s", "two", ""), ("s", "", ""), ("s", "r", ""), ("t", "one", ""), ("s", "one", "acme"), ("nobody", "one", "")],
)
async def test_what_was_never_accepted_there_is_not_known(world: World, session: str, job_id: str, tenant: str) -> None:
    await world.say("one", job_id="one")
    await world.say("other", session="t", job_id="other")
    await world.say("full", job_id="two", mailbox_max=1)
    await withdraw(world, request_id="r")
    before = await world.everything()
    assert await world.store.withdraw(session, job_id, request_id="q", tenant=tenant) is None
    assert await world.everything() == before


async def test_a_tenant_withdraws_its_own(world: World) -> None:
    await world.say("one", job_id="one")
    said = await world.say("one", job_id="one", tenant="acme")
    withdrawal = await world.store.withdraw("s", "one", request_id="r", tenant="acme")
    assert withdrawal == Withdrawal(said.session_id, 1, 2)


async def test_requests_take_no_room_in_the_mailbox(world: World) -> None:
    await world.say("one", job_id="one", mailbox_max=2)
    for request in ("r1", "r2", "r3"):
        await withdraw(world, request_id=request)
    assert (await world.say("two", mailbox_max=2)).verdict is Verdict.ACCEPTED


async def test_a_request_wakes_a_session_that_sleeps(world: World) -> None:
    said = await world.say("one", job_id="one", mode="collect", debounce_ms=60_000)
    assert await world.store.claim(said.session_id, LEASE_S) is None
    await withdraw(world)
    assert await world.store.due_sessions() == (said.session_id,)
    assert await world.store.claim(said.session_id, LEASE_S) is not None


async def test_a_request_is_no_message_that_a_turn_could_take(world: World) -> None:
    said = await world.say("one", job_id="one")
    await withdraw(world)
    owner = await world.own(said.session_id)
    before = await world.everything()
    assert await owner.start(positions=(1, 2)) is None
    assert not await world.store.settle_mail(
        owner.fence, owner.seen, SettleMail((2,), "withdrawn", None, TurnState.CANCELLED)
    )
    assert await world.everything() == before
