"""The verdict of a job, and what is written with it."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

import pytest

from insika.clock import DUE_NOW, NEVER
from insika.storage.rows import TurnState, Verdict
from tests.store_world import World, job, texts

DAY_S = 24 * 3600


async def test_a_first_job_is_accepted_for_a_turn_of_its_own_and_makes_the_session_due(world: World) -> None:
    asked = job("hello", channel="web", recipient="bob")
    accepted = await world.store.accept(asked)
    assert (accepted.verdict, accepted.turn_id, accepted.position) == (Verdict.ACCEPTED, asked.turn_id, 1)
    session = await world.session()
    assert (session.mail_seq, session.waiting, session.urgent_seq, session.due_at) == (1, 1, 0, DUE_NOW)
    turn = await world.store.turn(asked.turn_id)
    assert turn is not None
    assert (turn.state, turn.agent, turn.channel, turn.recipient, turn.position) == ("queued", "shop", "web", "bob", 1)
    assert turn.created_at == world.clock.now()
    (mail,) = await world.store.mail(session.id)
    assert (mail.text, mail.mode, mail.verdict, mail.at, mail.ended) == (
        "hello",
        "followup",
        Verdict.ACCEPTED,
        world.clock.now(),
        None,
    )


async def test_positions_are_the_order_of_arrival_however_many_arrive_at_once(world: World) -> None:
    said = await asyncio.gather(*(world.say(f"message {n}") for n in range(40)))
    assert sorted(accepted.position or 0 for accepted in said) == list(range(1, 41))
    mail = await world.store.mail(said[0].session_id)
    assert [row.position for row in mail] == list(range(1, 41))
    assert (await world.session()).waiting == 40


async def test_sessions_of_two_tenants_with_one_name_are_two(world: World) -> None:
    ours = await world.say(session="s")
    theirs = await world.say(session="s", tenant="acme")
    assert ours.session_id != theirs.session_id
    assert theirs.position == 1
    assert await world.store.session("s", tenant="acme") is not None
    assert await world.store.session("s", tenant="other") is None


async def test_the_same_id_and_text_is_a_duplicate_that_names_the_first_turn(world: World) -> None:
    first = await world.say("hello", job_id="j")
    before = await world.everything()
    again = await world.say("hello", job_id="j")
    assert again.verdict is Verdict.DUPLICATE
    assert (again.turn_id, again.position, again.turn_state) == (first.turn_id, 1, TurnState.QUEUED)
    assert await world.everything() == before


async def test_a_duplicate_names_the_state_that_the_first_turn_has_now(world: World) -> None:
    first = await world.say("hello", job_id="j")
    owner = await world.own(first.session_id)
    await owner.start()
    assert (await world.say("hello", job_id="j")).turn_state is TurnState.RUNNING
    await owner.fail()
    again = await world.say("hello", job_id="j")
    assert (again.verdict, again.turn_id, again.turn_state) == (Verdict.DUPLICATE, first.turn_id, TurnState.FAILED)


async def test_a_duplicate_of_a_released_steer_names_the_turn_that_ran_it(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    steer = await world.say("also", job_id="steer", mode="steer")
    assert steer.verdict is Verdict.STEERED
    await owner.look()
    await owner.commit()
    fresh = str(uuid.uuid4())
    await owner.look()
    assert await owner.start(turn_id=fresh)
    again = await world.say("also", job_id="steer", mode="steer")
    assert (again.turn_id, again.turn_state) == (fresh, TurnState.RUNNING)


async def test_the_same_id_with_another_text_is_rejected_and_names_the_id(world: World) -> None:
    await world.say("hello", job_id="j")
    before = await world.session()
    refused = await world.say("goodbye", job_id="j")
    assert (refused.verdict, refused.field) == (Verdict.REJECTED, "id")
    assert refused.reason
    assert await world.session() == before
    (kept,) = await world.store.rejected_jobs()
    assert (kept.raw, kept.id) == (b"goodbye", refused.rejected_job)
    assert kept.error["field"] == "id"


async def test_an_id_is_known_for_a_day_and_then_begins_anew(world: World) -> None:
    await world.say("hello", job_id="j")
    world.clock.advance(DAY_S - 1)
    assert (await world.say("hello", job_id="j")).verdict is Verdict.DUPLICATE
    world.clock.advance(2)
    assert (await world.say("hello", job_id="j")).verdict is Verdict.ACCEPTED
    world.clock.advance(DAY_S - 1)
    assert (await world.say("hello", job_id="j")).verdict is Verdict.DUPLICATE


async def test_ids_are_a_session_s_own(world: World) -> None:
    await world.say("hello", session="a", job_id="j")
    other = await world.say("hello", session="b", job_id="j")
    assert (other.verdict, other.rejected_job) == (Verdict.ACCEPTED, None)


async def test_a_full_mailbox_rejects_and_the_id_is_not_used_up(world: World) -> None:
    first = await world.say("one", mailbox_max=2)
    await world.say("two", mailbox_max=2)
    before = await world.session()
    refused = await world.say("three", job_id="j", mailbox_max=2)
    assert (refused.verdict, refused.field) == (Verdict.REJECTED, None)
    assert "full" in (refused.reason or "")
    assert await world.session() == before
    assert [(kept.raw, kept.id) for kept in await world.store.rejected_jobs()] == [(b"three", refused.rejected_job)]
    owner = await world.own(first.session_id)
    await owner.start()
    accepted = await world.say("three", job_id="j", mailbox_max=2)
    assert (accepted.verdict, accepted.position) == (Verdict.ACCEPTED, 3)


async def test_a_duplicate_is_told_even_when_the_mailbox_is_full(world: World) -> None:
    await world.say("one", job_id="j", mailbox_max=1)
    assert (await world.say("one", job_id="j", mailbox_max=1)).verdict is Verdict.DUPLICATE


@pytest.mark.parametrize("mode", ["steer", "interrupt", "collect", "followup"])
async def test_with_no_turn_running_every_mode_is_accepted(world: World, mode: str) -> None:
    assert (await world.say(mode=mode)).verdict is Verdict.ACCEPTED


async def test_a_message_s_own_mode_goes_before_the_session_s_and_that_before_the_default(world: World) -> None:
    first = await world.say(session_vars={"queue_mode": "steer"}, default_mode="interrupt")
    await (await world.own(first.session_id)).start()
    assert (await world.say(default_mode="interrupt")).verdict is Verdict.STEERED
    assert (await world.say(mode="followup", default_mode="interrupt")).verdict is Verdict.ACCEPTED
    assert (await world.say(var_updates={"queue_mode": None}, default_mode="interrupt")).verdict is Verdict.INTERRUPTING


async def test_vars_are_remembered_at_first_contact_and_later_only_updated(world: World) -> None:
    await world.say(session_vars={"name": "Ada", "thinking": "low"})
    assert (await world.session()).vars == {"name": "Ada", "thinking": "low"}
    await world.say(session_vars={"name": "Eve"}, var_updates={"thinking": "high", "queue_mode": "collect"})
    assert (await world.session()).vars == {"name": "Ada", "thinking": "high", "queue_mode": "collect"}
    await world.say(var_updates={"thinking": None})
    assert (await world.session()).vars == {"name": "Ada", "queue_mode": "collect"}


async def test_a_job_that_is_rejected_or_repeated_changes_no_vars(world: World) -> None:
    await world.say("hello", job_id="j")
    await world.say("hello", job_id="j", var_updates={"thinking": "high"})
    await world.say("other", job_id="j", var_updates={"thinking": "high"})
    await world.say("more", mailbox_max=1, var_updates={"thinking": "high"})
    assert (await world.session()).vars == {}


@pytest.mark.parametrize("origin", ["engine", "scheduled"])
@pytest.mark.parametrize("mode", ["steer", "interrupt", "collect"])
async def test_what_the_engine_or_a_timer_says_never_steers_or_interrupts(world: World, origin: str, mode: str) -> None:
    first = await world.say()
    await (await world.own(first.session_id)).start()
    accepted = await world.say("wake up", mode=mode, origin=origin)
    assert accepted.verdict is Verdict.ACCEPTED
    mail = await world.store.mail(first.session_id)
    assert (mail[1].mode, mail[1].cuts, mail[1].origin) == ("followup", None, origin)


async def test_a_steer_joins_only_a_turn_with_its_key(world: World) -> None:
    first = await world.say()
    owner = await world.own(first.session_id)
    await owner.start()
    same = await world.say("same", mode="steer")
    other = await world.say("other", mode="steer", key="shop|mail|bob")
    assert (same.verdict, same.turn_id) == (Verdict.STEERED, owner.turn_id)
    assert (other.verdict, other.turn_id != owner.turn_id) == (Verdict.ACCEPTED, True)


async def test_a_turn_without_a_steerable_key_takes_no_steers(world: World) -> None:
    first = await world.say()
    await (await world.own(first.session_id)).start(steerable_key=None)
    assert (await world.say(mode="steer")).verdict is Verdict.ACCEPTED


async def test_a_job_that_takes_no_steers_neither_joins_nor_is_joined(world: World) -> None:
    first = await world.say("ask", mode="collect", takes_steers=False)
    owner = await world.own(first.session_id)
    assert owner.loaded.mail[0].key is None
    assert (await world.say("more", mode="collect")).verdict is Verdict.ACCEPTED
    assert (await world.say("and", mode="collect", takes_steers=False)).verdict is Verdict.ACCEPTED


async def test_a_try_that_is_repeated_with_a_fresh_turn_id_is_the_same_job(world: World) -> None:
    asked = job("hello", job_id="j")
    first = await world.store.accept(asked)
    again = await world.store.accept(replace(asked, turn_id=str(uuid.uuid4())))
    assert (again.verdict, again.turn_id) == (Verdict.DUPLICATE, first.turn_id)
    assert len(await world.store.turns(first.session_id)) == 1


async def test_accepting_pulls_the_due_time_earlier_and_never_later(world: World) -> None:
    accepted = await world.say("one", mode="collect", debounce_ms=500)
    soon = (await world.session()).due_at
    assert soon != DUE_NOW
    assert soon != NEVER
    await world.say("two", mode="collect", debounce_ms=90_000)
    assert (await world.session()).due_at == soon
    await world.say("three")
    assert (await world.session()).due_at == DUE_NOW
    await world.say("four", mode="collect", debounce_ms=500)
    assert (await world.session()).due_at == DUE_NOW
    assert accepted.session_id


async def test_text_comes_back_as_it_was_given(world: World) -> None:
    said = [
        "emoji 👩🏽‍🚀 and family 👨‍👩‍👧",
        "right to left שלום",
        "replaced \ufffd",
        "line\nbreak\t\r\n",
        "'; DROP TABLE turns;--",
    ]
    said.append("x" * 65_536)
    first = None
    for text in said:
        accepted = await world.say(text)
        first = first or accepted
    assert first is not None
    assert [row.text for row in await world.store.mail(first.session_id)] == said
    owner = await world.own(first.session_id)
    await owner.start(positions=tuple(range(1, len(said) + 1)))
    assert texts(await world.store.messages(first.session_id)) == said


async def test_text_that_is_no_unicode_is_refused_and_harms_nobody_else(world: World) -> None:
    outcomes = await asyncio.gather(
        world.say("before", session="a"),
        world.say("emoji cut in two \ud83d", session="b"),
        world.say("after", session="c"),
        return_exceptions=True,
    )
    assert [isinstance(outcome, ValueError) for outcome in outcomes] == [False, True, False]
    assert await world.store.session("b") is None
    assert {row.name for row in await world.store.sessions()} == {"a", "c"}


async def test_a_job_that_arrives_many_times_at_once_is_accepted_once(world: World) -> None:
    said = await asyncio.gather(*(world.say("hello", job_id="j") for _ in range(20)))
    assert sorted(accepted.verdict for accepted in said) == [Verdict.ACCEPTED, *[Verdict.DUPLICATE] * 19]
    assert {(accepted.turn_id, accepted.position) for accepted in said} == {(said[0].turn_id, 1)}
    assert (await world.session()).waiting == 1


async def test_a_job_that_has_its_place_is_never_refused_for_want_of_one(world: World) -> None:
    for n in range(10):
        said = await asyncio.gather(*(world.say("hello", session=f"s{n}", job_id="j", mailbox_max=1) for _ in range(6)))
        assert {accepted.verdict for accepted in said} == {Verdict.ACCEPTED, Verdict.DUPLICATE}
    assert await world.store.rejected_jobs() == ()


async def test_a_first_job_for_a_mailbox_without_room_is_rejected(world: World) -> None:
    refused = await world.say("hello", mailbox_max=0)
    assert (refused.verdict, refused.field) == (Verdict.REJECTED, None)
    session = await world.session()
    assert (session.mail_seq, session.waiting, session.due_at) == (0, 0, NEVER)
    assert (await world.say("hello")).verdict is Verdict.ACCEPTED


async def test_vars_may_hold_anything_and_only_what_is_asked_is_cleared(world: World) -> None:
    kept = {"name": "Ada", "address": {"city": None, "lines": [None, 1.5, "x"]}, "thinking": "low", "n": 2**60}
    await world.say(session_vars=kept)
    assert (await world.session()).vars == kept
    await world.say(var_updates={"thinking": None})
    del kept["thinking"]
    assert (await world.session()).vars == kept


@pytest.mark.parametrize(("mode", "key"), [("followup", True), ("interrupt", True), ("collect", False)])
async def test_only_what_may_be_merged_waits_for_more(world: World, mode: str, key: bool) -> None:
    await world.say(mode=mode, debounce_ms=60_000, takes_steers=key)
    assert (await world.session()).due_at == DUE_NOW
