"""Producers that meet: the same job twice, two first contacts, a cancel and the end of what it is aimed at."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from insika.storage.port import StoreRefused
from insika.storage.rows import Begun, TurnState, Verdict
from tests.race_world import Altered, Race, naive, variants
from tests.store_world import job

LOCK = "SELECT FROM sessions WHERE id = {} FOR NO KEY UPDATE"
IDS_AS_THEY_WERE = naive(
    "intake/accept",
    ("AS due\nFROM aimed", "AS due\nFROM aimed WHERE NOT EXISTS (SELECT FROM job_ids WHERE job_id = %(job_id)s)"),
    ("WHERE known.seen_at <= excluded.seen_at - interval '24 hours'", ""),
)
"""Whether an id is known, asked of the table as it was before the lock."""


@variants(IDS_AS_THEY_WERE)
async def test_a_job_that_is_being_accepted_is_not_accepted_again(race: Race, statement: Altered, lost: bool) -> None:
    await race.world.say("zero")
    first, again = await race.overlap(
        lambda held: held.store.accept(job("one", job_id="j")),
        race.store(statement).accept(job("one", job_id="j")),
    )
    assert first.verdict is Verdict.ACCEPTED
    assert again.verdict is (Verdict.ACCEPTED if lost else Verdict.DUPLICATE)
    assert ((again.turn_id, again.position) == (first.turn_id, first.position)) is not lost
    assert (await race.world.session()).waiting == (3 if lost else 2)


async def test_another_text_under_an_id_that_is_being_accepted_is_rejected(race: Race) -> None:
    await race.world.say("zero")
    _, other = await race.overlap(
        lambda held: held.store.accept(job("one", job_id="j")), race.store().accept(job("two", job_id="j"))
    )
    assert (other.verdict, other.field) == (Verdict.REJECTED, "id")
    assert (await race.world.session()).waiting == 2


async def test_a_job_that_takes_the_last_place_is_not_rejected_when_it_comes_again(race: Race) -> None:
    await race.world.say("zero")
    first, again = await race.overlap(
        lambda held: held.store.accept(job("one", job_id="j", mailbox_max=2)),
        race.store().accept(job("one", job_id="j", mailbox_max=2)),
    )
    assert (again.verdict, again.turn_id, again.position) == (Verdict.DUPLICATE, first.turn_id, 2)
    assert await race.world.store.rejected_jobs() == ()


async def test_whoever_comes_second_at_first_contact_comes_second(race: Race) -> None:
    first, second = await race.overlap(
        lambda held: held.store.accept(job("one")), race.store().accept(job("two", session_vars={"name": "Eve"}))
    )
    assert (first.verdict, first.position) == (Verdict.ACCEPTED, 1)
    assert (second.verdict, second.position, second.session_id) == (Verdict.ACCEPTED, 2, first.session_id)
    session = await race.world.session()
    assert (session.mail_seq, session.waiting, session.vars) == (2, 2, {})


async def test_one_job_twice_at_first_contact_is_one_job(race: Race) -> None:
    first, again = await race.overlap(
        lambda held: held.store.accept(job("one", job_id="j")), race.store().accept(job("one", job_id="j"))
    )
    assert (again.verdict, again.turn_id) == (Verdict.DUPLICATE, first.turn_id)


@variants(naive("intake/cancel", (" FOR NO KEY UPDATE OF t", "")))
async def test_a_cancel_that_waited_for_the_end_of_its_turn_finds_it_ended(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.running()
    turn_id = owner.turn_id
    ended, cancelled = await race.overlap(
        lambda held: held.store.end(owner.fence, owner.failing()),
        race.store(statement).cancel(turn_id, request_id="r"),
    )
    assert ended
    assert (cancelled is not None) is lost
    assert (await race.world.session()).mail_seq == (2 if lost else 1)


async def test_a_cancel_that_waited_for_a_start_is_aimed_at_the_turn_that_runs(race: Race) -> None:
    owner = await race.waiting()
    opening = owner.opening()
    started, cancelled = await race.overlap(
        lambda held: held.store.start(owner.fence, owner.seen, opening),
        race.store().cancel(opening.turn_id, request_id="r"),
    )
    assert started == Begun(1)
    assert cancelled is not None
    assert (cancelled.verdict, cancelled.turn_state, cancelled.position) == (Verdict.CONTROL, TurnState.RUNNING, 2)
    session = await race.world.session()
    assert (session.urgent_seq, session.turn_key) == (2, None)


async def test_one_cancel_twice_at_once_is_one_cancel(race: Race) -> None:
    owner = await race.running()
    first, again = await race.overlap(
        lambda held: held.store.cancel(owner.turn_id, request_id="r"),
        race.store().cancel(owner.turn_id, request_id="r"),
    )
    assert first is not None
    assert again is not None
    assert (first.verdict, again.verdict, again.position) == (Verdict.CONTROL, Verdict.DUPLICATE, first.position)
    assert (await race.world.session()).mail_seq == 2


# --- many jobs in one statement


@variants(naive("intake/accept_all", (" FOR NO KEY UPDATE SKIP LOCKED", "")))
async def test_jobs_accepted_together_take_their_places_behind_what_is_being_accepted(
    race: Race, statement: Altered, lost: bool
) -> None:
    await race.world.say("zero")
    asked = race.store(statement).accept_all([job("two"), job("three", session="other")])
    with pytest.raises(StoreRefused) if lost else nullcontext():  # two messages cannot have one place
        _, together = await race.overlap(lambda held: held.store.accept(job("one")), asked)
        assert [it.position for it in together] == [3, 1]


@variants(naive("intake/accept_all", (" SKIP LOCKED", "")))
async def test_jobs_accepted_together_hold_up_nobody_for_a_session_that_is_locked(
    race: Race, statement: Altered, lost: bool
) -> None:
    ids = [(await race.world.say("zero", session=name)).session_id for name in ("a", "b")]
    async with race.holding() as held:
        await held.run(LOCK.format(ids[1]))
        together = asyncio.ensure_future(race.store(statement).accept_all([job(session="a"), job(session="b")]))
        assert await race.waits(together)
        other = asyncio.ensure_future(race.world.say("one", session="a"))
        assert await race.waits(other, others=1) is lost
        await held.let_go()
        assert [it.position for it in await together] == [2, 2]
        assert (await other).position == 3


async def test_of_two_that_make_the_same_sessions_each_makes_some_and_none_waits_for_ever(race: Race) -> None:
    first, second = await race.overlap(
        lambda held: held.store.accept_all([job(session="b"), job(session="a")]),
        race.store().accept_all([job(session="a"), job(session="c"), job(session="b")]),
    )
    assert [it.position for it in first] == [1, 1]
    assert [it.position for it in second] == [2, 1, 2]
    assert {it.verdict for it in (*first, *second)} == {Verdict.ACCEPTED}
