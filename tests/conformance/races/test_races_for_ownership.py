"""Two want one session; and an owner that lost it is still writing. The lease in the row decides, under its lock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from insika.messages import ToolCall, assistant
from insika.storage.operations import AnnouncedCall, AppendStep, SettleMail
from insika.storage.port import Store
from insika.storage.postgres.queries import sql
from insika.storage.rows import Begun, CallStart, CallState, Committed, TurnState
from tests.race_world import AS_IT_IS, Altered, Race, naive, variants
from tests.store_world import ESTIMATE, LEASE_S, Owner, answer_call, done, measured

NOT_HELD = CallStart(held=False, moved=False)
Write = Callable[[Store, Owner], Awaitable[Any]]


@variants(
    naive(
        "ownership/claim",
        (
            "WHERE id = %(session_id)s AND (NOT paused",
            "WHERE id = (SELECT id FROM sessions WHERE id = %(session_id)s AND (NOT paused",
        ),
        ("RETURNING epoch", ") RETURNING epoch"),
    )
)
@pytest.mark.parametrize("expired", [False, True])
async def test_two_that_claim_at_once_get_one_lease(race: Race, expired: bool, statement: Altered, lost: bool) -> None:
    said = await race.world.say("one")
    if expired:
        await race.world.claim(said.session_id)
        race.world.clock.advance(LEASE_S + 1)
    first, second = await race.overlap(
        lambda held: held.store.claim(said.session_id, LEASE_S),
        race.store(statement).claim(said.session_id, LEASE_S),
    )
    assert first is not None
    assert (second is not None) is lost


async def test_a_lease_that_is_being_renewed_is_not_taken(race: Race) -> None:
    owner = await race.running()
    race.world.clock.advance(LEASE_S + 1)
    renewal = race.world.store.renewal()
    try:
        async with race.holding() as held:
            assert await held.store.confirm(owner.fence)
            assert await asyncio.to_thread(renewal.renew, [owner.fence], LEASE_S) == {}, "a renewal waits for nobody"
    finally:
        renewal.close()


@variants(naive("ownership/nudge_due", (" FOR NO KEY UPDATE SKIP LOCKED", "")))
async def test_two_sweeps_at_once_name_each_session_once(race: Race, statement: Altered, lost: bool) -> None:
    said = [await race.world.say(session=f"s{n}") for n in range(3)]
    first, second = await race.overlap(lambda held: held.store.due_sessions(2), race.store(statement).due_sessions(5))
    assert list(first) == [said[0].session_id, said[1].session_id]
    assert (set(first) & set(second) != set()) is lost
    assert said[2].session_id in second


# --- an owner that lost its lease and is still writing


def append(store: Store, owner: Owner) -> Awaitable[Any]:
    call = ToolCall("b", "look_up", {})
    announced = (AnnouncedCall("b", "look_up", {}, side_effect=True),)
    step = AppendStep(owner.turn_id, 1, assistant("let me see", call), announced, measured(1))
    return store.append(owner.fence, step)


def retry_model(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.retry_model(owner.fence, owner.seen, owner.turn_id, answer_call(1, 2), estimate=ESTIMATE)


def route_turn(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.route_turn(owner.fence, owner.seen, owner.routing(next_call=None))


def redirect_turn(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.redirect_turn(owner.fence, owner.seen, owner.redirecting())


def open_model_call(store: Store, owner: Owner) -> Awaitable[Any]:
    asked = {"purpose": "moderate", "model": "offline/moderator", "estimate": ESTIMATE}
    return store.open_model_call(owner.fence, owner.seen, owner.turn_id, 0, **asked)  # type: ignore[arg-type]


def start_call(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.start_call(owner.fence, owner.seen, owner.turn_id, 1, 1)


def finish_call(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.finish_call(owner.fence, owner.turn_id, 1, done(0, "a"))


def cross_boundary(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.cross_boundary(owner.fence, owner.seen, owner.boundary(done(0, "a"), done(1, "b")))


def commit(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.commit(owner.fence, owner.seen, owner.ending())


def commit_halted(store: Store, owner: Owner) -> Awaitable[Any]:
    ending = owner.ending(results=(done(0, "a", halts=True), done(1, "b")), model_call=None)
    return store.commit(owner.fence, owner.seen, ending)


def end(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.end(owner.fence, owner.failing(done(0, "a"), done(1, "b")))


def drain(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.release_for_drain(owner.fence, unknown_result="?", estimate=ESTIMATE)


WRITES: dict[str, Write] = {
    "turns/append": append,
    "turns/retry_model": retry_model,
    "turns/route_turn": route_turn,
    "turns/redirect_turn": redirect_turn,
    "turns/open_model_call": open_model_call,
    "turns/start_call": start_call,
    "turns/finish_call": finish_call,
    "turns/cross_boundary": cross_boundary,
    "endings/commit": commit,
    "endings/commit_with_batch": commit_halted,
    "endings/end": end,
    "endings/release_for_drain": drain,
}
BETWEEN_BATCHES = (
    *("turns/append", "turns/retry_model", "turns/route_turn", "turns/redirect_turn", "turns/open_model_call"),
    "endings/commit",
)
BEGINNINGS: dict[str, Write] = {
    "turns/start": lambda store, owner: store.start(owner.fence, owner.seen, owner.opening()),
    "endings/fail_queued": lambda store, owner: store.fail_queued(owner.fence, owner.seen, owner.giving_up()),
    "endings/finish_at_once": lambda store, owner: store.finish_at_once(owner.fence, owner.seen, owner.finishing()),
}
LEASE_AS_SEEN = "(SELECT lease_id FROM sessions WHERE id = %(session_id)s) = %(lease_id)s"
"""Asks for the lease as it was when the statement began."""


async def one_who_may(race: Race, name: str) -> Owner:
    """The owner for whom this statement writes something."""
    owner = await race.running()
    if name not in BETWEEN_BATCHES:
        await owner.append("a", "b")
        await owner.start_call(0)
    return await owner.look()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("lost", [False, True], ids=["as it is", "naive"])
async def test_nothing_is_written_behind_a_takeover(race: Race, name: str, lost: bool) -> None:
    owner = await one_who_may(race, name)
    race.world.clock.advance(LEASE_S + 1)
    statement = AS_IT_IS
    if lost:
        fence = "s.lease_id = %(lease_id)s" if "s.lease_id = %(lease_id)s" in sql(name) else "lease_id = %(lease_id)s"
        statement = naive(name, (fence, LEASE_AS_SEEN))
    claim, written = await race.overlap(
        lambda held: held.store.claim(owner.fence.session_id, LEASE_S), WRITES[name](race.store(statement), owner)
    )
    assert claim is not None
    assert (written not in (None, False, NOT_HELD)) is lost


@pytest.mark.parametrize("name", BEGINNINGS)
@pytest.mark.parametrize("lost", [False, True], ids=["as it is", "naive"])
async def test_nothing_begins_behind_a_takeover(race: Race, name: str, lost: bool) -> None:
    owner = await race.waiting()
    race.world.clock.advance(LEASE_S + 1)
    statement = naive(name, ("lease_id = %(lease_id)s", LEASE_AS_SEEN)) if lost else AS_IT_IS
    claim, begun = await race.overlap(
        lambda held: held.store.claim(owner.fence.session_id, LEASE_S), BEGINNINGS[name](race.store(statement), owner)
    )
    assert claim is not None
    assert (begun is not None) is lost


@variants(
    naive(
        "turns/append",
        (
            "UPDATE sessions SET log_seq = log_seq + 1, open_calls = %(open_calls)s\n",
            "SELECT id, log_seq + 1 AS log_seq, epoch, %(open_calls)s FROM sessions\n",
        ),
        ("RETURNING id, log_seq, epoch\n", ""),
    )
)
async def test_a_takeover_waits_for_an_append_that_stands_still(race: Race, statement: Altered, lost: bool) -> None:
    """With a fence that only reads, the new owner has read the log before the old one writes to it."""
    owner = await one_who_may(race, "turns/append")
    race.world.clock.advance(LEASE_S + 1)
    written, taken = await race.takeover_of_what_stands_still(
        at="SELECT FROM model_calls FOR UPDATE", write=append(race.store(statement), owner), owner=owner
    )
    assert written == 2
    log = await race.world.store.messages(owner.fence.session_id)
    assert (len(taken.loaded.log) < len(log)) is lost


@variants(
    naive(
        "turns/finish_call",
        ("UPDATE sessions SET log_seq = log_seq\n", "SELECT id FROM sessions\n"),
        ("RETURNING id\n", ""),
    )
)
async def test_a_takeover_waits_for_a_result_that_stands_still(race: Race, statement: Altered, lost: bool) -> None:
    """With a fence that only reads, the new owner takes the call for unknown, and it is done."""
    owner = await one_who_may(race, "turns/finish_call")
    race.world.clock.advance(LEASE_S + 1)
    written, taken = await race.takeover_of_what_stands_still(
        at="SELECT FROM tool_calls FOR UPDATE", write=finish_call(race.store(statement), owner), owner=owner
    )
    assert written == CallStart(held=True, moved=True)
    calls = await race.world.store.calls(owner.turn_id)
    assert calls[0].state is CallState.DONE
    assert (taken.loaded.calls != calls) is lost


async def test_a_takeover_waits_for_a_commit_that_stands_still(race: Race) -> None:
    owner = await race.running()
    await race.world.say("two")
    race.world.clock.advance(LEASE_S + 1)
    committed, taken = await race.takeover_of_what_stands_still(
        at="SELECT FROM turns FOR UPDATE", write=commit(race.store(), owner), owner=owner
    )
    assert committed == Committed(released=False)
    assert (taken.loaded.session.turn_id, len(taken.loaded.log)) == (None, 2)


# --- the same owner, asking again while its first try is still on its way


async def test_mail_that_is_being_settled_is_settled_once(race: Race) -> None:
    owner = await race.waiting()
    await race.world.say("two")
    await owner.look()
    refused = SettleMail((1,), "refused", None, TurnState.REFUSED)
    first, second = await race.overlap(
        lambda held: held.store.settle_mail(owner.fence, owner.seen, refused),
        race.store().settle_mail(owner.fence, owner.seen, refused),
    )
    assert (first, second) == (True, False)
    assert await race.waiting_is_counted()


async def test_a_boundary_over_a_result_that_is_being_recorded_is_crossed_anew(race: Race) -> None:
    owner = await race.call_started()
    lost = done(0, "a", "nobody knows", state=CallState.UNKNOWN)
    first, second = await race.overlap(
        lambda held: held.store.finish_call(owner.fence, owner.turn_id, 1, done(0, "a", "was done")),
        race.store().cross_boundary(owner.fence, owner.seen, owner.boundary(lost)),
    )
    assert first == CallStart(held=True, moved=True)
    assert second is None
    assert await owner.cross(lost) == 3
    assert owner.loaded.log[-1].message.content == "was done"


@pytest.mark.parametrize("write", [commit, commit_halted, end], ids=lambda write: write.__name__)
async def test_a_turn_is_not_ended_over_a_step_that_is_being_appended(race: Race, write: Write) -> None:
    owner = await race.running()
    first, second = await race.overlap(lambda held: append(held.store, owner), write(race.store(), owner))
    assert first == 2
    assert second in (None, False)
    assert (await race.world.session()).open_calls == 1


async def test_a_turn_that_is_being_started_is_started_once(race: Race) -> None:
    owner = await race.waiting()
    first, second = await race.overlap(
        lambda held: held.store.start(owner.fence, owner.seen, owner.opening()),
        race.store().start(owner.fence, owner.seen, owner.opening()),
    )
    assert (first, second) == (Begun(1), None)
    assert len(await race.world.store.messages(owner.fence.session_id)) == 1
