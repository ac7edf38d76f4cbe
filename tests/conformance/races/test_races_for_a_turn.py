"""A message or a cancel comes while the owner routes a turn, hands it on, screens for it or ends it at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from insika.messages import Usage
from insika.storage.operations import ModelCallKey, SettledModelCall
from insika.storage.port import Store, StoreRefused
from insika.storage.rows import Begun, TurnState, Verdict
from tests.race_world import AS_IT_IS, Altered, Race, naive, variants
from tests.store_world import ESTIMATE, MEASURED, Owner, answer_call, job, measured

CUT_AS_SEEN = (
    "urgent_seq <= %(urgent)s",
    "NOT EXISTS (SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(urgent)s AND cuts IS NOT NULL)",
)
"""Asks the mailbox, which this statement sees as it was when it began."""
STALE_MERGE = (
    "AND (NOT %(merging)s OR mail_seq = %(mail)s)",
    "AND (NOT %(merging)s OR NOT EXISTS "
    "(SELECT FROM mailbox WHERE session_id = %(session_id)s AND position > %(mail)s))",
)
UNLOCKED = naive("intake/accept", (" FOR NO KEY UPDATE", ""))
Write = Callable[[Store, Owner], Awaitable[Any]]


def route(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.route_turn(owner.fence, owner.seen, owner.routing(next_call=answer_call(1, 2)))


def redirect(store: Store, owner: Owner) -> Awaitable[Any]:
    return store.redirect_turn(owner.fence, owner.seen, owner.redirecting())


def screen(store: Store, owner: Owner) -> Awaitable[ModelCallKey | None]:
    turn_id = owner.loaded.session.turn_id or owner.opening().turn_id
    return store.open_model_call(
        owner.fence, owner.seen, turn_id, 0, purpose="moderate", model="offline/moderator", estimate=ESTIMATE
    )


ASKS: dict[str, Write] = {"turns/route_turn": route, "turns/redirect_turn": redirect, "turns/open_model_call": screen}


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("lost", [False, True], ids=["as it is", "naive"])
async def test_nobody_is_asked_behind_an_interrupt(race: Race, name: str, lost: bool) -> None:
    owner = await race.running()
    statement = naive(name, CUT_AS_SEEN) if lost else AS_IT_IS
    said, asked = await race.overlap(
        lambda held: held.store.accept(job("stop", mode="interrupt")), ASKS[name](race.store(statement), owner)
    )
    assert said.verdict is Verdict.INTERRUPTING
    assert bool(asked) is lost
    assert (len(await race.world.store.model_calls(owner.turn_id)) > 1) is lost


@variants(naive("turns/open_model_call", CUT_AS_SEEN))
async def test_nothing_is_screened_behind_the_cancel_of_a_turn_that_waits(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting()
    cancelled, asked = await race.overlap(
        lambda held: held.store.cancel(owner.opening().turn_id, request_id="r"), screen(race.store(statement), owner)
    )
    assert cancelled is not None
    assert (asked is not None) is lost


async def test_an_owner_that_screens_two_texts_at_once_opens_two_attempts(race: Race) -> None:
    owner = await race.running()
    first, second = await race.overlap(lambda held: screen(held.store, owner), screen(race.store(), owner))
    assert [key.attempt for key in (first, second) if key is not None] == [1, 2]


# --- what ends a turn at once


@variants(naive("endings/finish_at_once", STALE_MERGE))
async def test_a_turn_does_not_end_at_once_without_what_is_being_merged_into_it(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting(mode="collect")
    said, finished = await race.overlap(
        lambda held: held.store.accept(job("two", mode="collect")),
        race.store(statement).finish_at_once(owner.fence, owner.seen, owner.finishing()),
    )
    assert said.verdict is Verdict.MERGED
    assert (finished is not None) is lost
    turn = await race.world.store.turn(said.turn_id or "")
    assert turn is not None
    assert (turn.state is not TurnState.QUEUED) is lost, "what merged would wait for a turn that is over"


@variants(UNLOCKED)
async def test_nothing_merges_into_a_turn_that_ends_at_once(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.waiting(mode="collect")
    finished, said = await race.overlap(
        lambda held: held.store.finish_at_once(owner.fence, owner.seen, owner.finishing()),
        race.store(statement).accept(job("two", mode="collect")),
    )
    assert finished == Begun(2)
    assert (said.verdict is Verdict.MERGED) is lost


@variants(naive("endings/finish_at_once", CUT_AS_SEEN))
async def test_a_turn_that_is_being_cancelled_does_not_end_otherwise(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting()
    cancelled, finished = await race.overlap(
        lambda held: held.store.cancel(owner.opening().turn_id, request_id="r"),
        race.store(statement).finish_at_once(owner.fence, owner.seen, owner.finishing()),
    )
    assert cancelled is not None
    assert (finished is not None) is lost
    assert len(await race.world.deliveries()) == int(lost)


@variants(
    naive(
        "endings/finish_at_once",
        (
            "waiting    = waiting - ",
            "waiting    = (SELECT count(*) FROM mailbox WHERE session_id = %(session_id)s AND ended IS NULL) - ",
        ),
    )
)
async def test_a_turn_that_ends_at_once_counts_what_is_being_accepted(
    race: Race, statement: Altered, lost: bool
) -> None:
    owner = await race.waiting()
    said, finished = await race.overlap(
        lambda held: held.store.accept(job("two")),
        race.store(statement).finish_at_once(owner.fence, owner.seen, owner.finishing()),
    )
    assert said.verdict is Verdict.ACCEPTED
    assert finished == Begun(2)
    assert await race.waiting_is_counted() is not lost


async def test_a_turn_ends_at_once_once(race: Race) -> None:
    owner = await race.waiting()
    first, second = await race.overlap(
        lambda held: held.store.finish_at_once(owner.fence, owner.seen, owner.finishing()),
        race.store().finish_at_once(owner.fence, owner.seen, owner.finishing()),
    )
    assert (first, second) == (Begun(2), None)
    assert len(await race.world.deliveries()) == 1


# --- the same write twice, and a cost that arrives late


@pytest.mark.parametrize("write", [route, redirect], ids=["route", "redirect"])
async def test_a_turn_is_routed_and_handed_on_once(race: Race, write: Write) -> None:
    owner = await race.running()
    first, second = await race.overlap(lambda held: write(held.store, owner), write(race.store(), owner))
    assert (first, second) == (True, False)


@variants(
    naive(
        "endings/end",
        (
            "WHERE m.turn_id = %(turn_id)s AND m.state = 'open'",
            "WHERE m.turn_id = %(turn_id)s AND EXISTS "
            "(SELECT FROM model_calls AS c WHERE c.turn_id = %(turn_id)s AND c.state = 'open')",
        ),
    )
)
async def test_an_end_does_not_estimate_what_is_being_measured(race: Race, statement: Altered, lost: bool) -> None:
    owner = await race.running()

    def ending() -> Awaitable[tuple[bool, bool]]:
        return race.overlap(
            lambda held: held.store.settle_model_call(owner.turn_id, measured(1)),
            race.store(statement).end(owner.fence, owner.failing()),
        )

    if lost:
        with pytest.raises(StoreRefused, match="measured once"):  # the guard behind the statement stops it
            await ending()
    else:
        assert await ending() == (True, True)
    (row,) = await race.world.store.model_calls(owner.turn_id)
    assert (row.state, row.usage) == ("measured", MEASURED)


async def test_a_measure_that_waits_for_an_end_replaces_its_estimate(race: Race) -> None:
    owner = await race.running()
    late = SettledModelCall(answer_call(1), Usage(3))
    assert await race.overlap(
        lambda held: held.store.end(owner.fence, owner.failing()),
        race.store().settle_model_call(owner.turn_id, late),
    ) == (True, True)
    (row,) = await race.world.store.model_calls(owner.turn_id)
    assert (row.state, row.usage) == ("measured", Usage(3))
