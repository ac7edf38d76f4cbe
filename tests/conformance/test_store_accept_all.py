"""Many jobs accepted together come to the same as each of them accepted by itself."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from insika.clock import DUE_NOW
from insika.storage.operations import AcceptJob
from insika.storage.rows import Accepted, Verdict
from tests.store_world import World, job

KEPT_OF_A_SESSION = ("due_at", "mail_seq", "urgent_seq", "waiting", "turn_key", "merge_key", "vars")
KEPT_OF_MAIL = (
    *("position", "job_id", "mode", "key", "text", "at", "verdict", "debounce_ms", "debounce_max_ms", "agent"),
    *("channel", "recipient", "origin", "ended", "customer"),
)
SENT_AT = datetime(2030, 1, 31, 12, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))


def some_jobs(choose: random.Random, count: int) -> list[AcceptJob]:
    """Whatever one job may do to another: repeat it, contradict it, merge into it, interrupt it, find no room."""
    return [
        job(
            choose.choice(("hello", "goodbye")),
            session=f"s{choose.randrange(4)}",
            job_id=f"j{choose.randrange(12)}",
            mode=choose.choice((None, "followup", "steer", "collect", "interrupt")),
            default_mode=choose.choice(("followup", "collect")),
            key=choose.choice(("one", "two")),
            takes_steers=choose.random() < 0.9,
            origin=choose.choice(("customer", "customer", "schedule")),
            customer=choose.choice((None, "Ana \N{SNOWMAN}")),
            sent_at=choose.choice((None, SENT_AT)),
            debounce_ms=choose.choice((0, 0, 500)),
            mailbox_max=choose.choice((2, 50, 50)),
            session_vars=choose.choice(({}, {"name": {"first": "Ana", "last": None}})),
            var_updates=choose.choice(({}, {}, {"queue_mode": "steer"}, {"queue_mode": None, "thinking": "high"})),
        )
        for _ in range(count)
    ]


def of_tenant(jobs: list[AcceptJob], tenant: str) -> list[AcceptJob]:
    return [replace(it, tenant=tenant, turn_id=f"{tenant}-{it.turn_id}") for it in jobs]


async def seen(world: World, tenant: str) -> Any:
    """All that the jobs of a tenant left, but for what is unique in the store."""
    sessions = []
    for name in ("s0", "s1", "s2", "s3"):
        session = await world.store.session(name, tenant=tenant)
        if session is not None:
            mail = await world.store.mail(session.id)
            turns = await world.store.turns(session.id)
            row = {kept: getattr(session, kept) for kept in KEPT_OF_A_SESSION}
            mails = [{kept: getattr(it, kept) for kept in KEPT_OF_MAIL} | _named(tenant, it.turn_id) for it in mail]
            for_turns = [(_named(tenant, it.id), it.position, it.state, it.agent, it.origin) for it in turns]
            sessions.append((name, row, _named(tenant, session.merge_turn), mails, for_turns))
    return sessions


def _named(tenant: str, turn_id: str | None) -> dict[str, str | None]:
    return {"turn": turn_id and turn_id.removeprefix(f"{tenant}-")}


def told(tenant: str, accepted: Accepted) -> Any:
    turn = _named(tenant, accepted.turn_id)
    return (accepted.verdict, turn, accepted.position, accepted.turn_state, accepted.reason, accepted.field)


@pytest.mark.parametrize("seed", range(12))
async def test_it_is_the_same_as_one_after_the_other(world: World, seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(3):
        jobs = some_jobs(choose, choose.randrange(1, 12))
        one_by_one = [await world.store.accept(it) for it in of_tenant(jobs, "alone")]
        together = await world.store.accept_all(of_tenant(jobs, "together"))
        assert [told("alone", it) for it in one_by_one] == [told("together", it) for it in together]
        assert await seen(world, "alone") == await seen(world, "together")
        for tenant in ("alone", "together"):
            session = await world.store.session("s0", tenant=tenant)
            if session is not None and session.due_at == DUE_NOW and session.lease_id is None:
                owner = await world.own(session.id)
                await owner.start(steerable_key="one")


async def test_none_is_nothing(world: World) -> None:
    assert list(await world.store.accept_all([])) == []


async def test_what_is_sent_at_some_time_keeps_it(world: World) -> None:
    await world.store.accept_all([job("one", session="a", sent_at=SENT_AT), job("two", session="b")])
    assert [row["sent_at"] is None for row in await world.peek("SELECT sent_at FROM mailbox ORDER BY text")] == [
        False,
        True,
    ]


async def test_each_is_answered_in_its_place(world: World) -> None:
    jobs = [job(f"message {n}", session=f"s{n % 3}") for n in range(9)]
    accepted = await world.store.accept_all(jobs)
    assert [it.turn_id for it in accepted] == [it.turn_id for it in jobs]
    assert [it.position for it in accepted] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert {it.verdict for it in accepted} == {Verdict.ACCEPTED}
