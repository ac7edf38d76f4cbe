"""Two deliverers, two sweeps, an operator, and a holder whose claim runs out, over the same rows at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from insika.storage.port import StoreRefused
from outbox.message import DeliveryState
from outbox.states import Decision, Delivered, Failed, RetryIn, Uncertain
from outbox.store import NotResent, Resent
from tests.outbox_world import OutboxWorld, postgres_outbox
from tests.postgres_here import GATE
from tests.race_world import Altered, Race, naive_outbox, variants

GRACE_S = 20.0
UNTIL_EXPIRED_S = 15 + GRACE_S + 1

UNLOCKED_CLAIM = naive_outbox(
    "claim",
    ("FOR NO KEY UPDATE OF o SKIP LOCKED", ""),
    ("WHERE o.id = head.id AND o.state = 'pending'", "WHERE o.id = head.id"),
)
"""Takes what was pending when the statement began."""
HELD_BY_DELIVERING_ONLY = naive_outbox(
    "claim",
    (
        "AND earlier.state IN ('pending', 'delivering')\n        AND (earlier.hold_until",
        "AND earlier.state = 'delivering'\n        AND (earlier.hold_until",
    ),
)
UNLOCKED_SWEEP = naive_outbox("sweep", ("ORDER BY o.id\n  FOR NO KEY UPDATE OF o SKIP LOCKED", "ORDER BY o.id"))
"""Writes whatever it finds by id once it has waited."""


@pytest.fixture
async def outbox(migrated_postgres_url: str, race: Race) -> AsyncIterator[OutboxWorld]:
    async with postgres_outbox(migrated_postgres_url) as world:
        yield world


async def in_state(outbox: OutboxWorld, delivery_id: str) -> DeliveryState:
    row = await outbox.store.show(delivery_id)
    assert row is not None
    return row.state


# --- two claims


@variants(UNLOCKED_CLAIM)
async def test_two_that_claim_at_once_do_not_send_the_same(
    race: Race, outbox: OutboxWorld, statement: Altered, lost: bool
) -> None:
    await outbox.add("a")
    claiming = race.outbox(statement).claim(GRACE_S)
    if lost:
        with pytest.raises(StoreRefused, match="does not go back"):  # the guard behind the statement stops it
            await race.overlap(lambda held: held.outbox.claim(GRACE_S), claiming)
    else:
        first, second = await race.overlap(lambda held: held.outbox.claim(GRACE_S), claiming)
        assert first is not None
        assert second is None


@variants(HELD_BY_DELIVERING_ONLY)
async def test_two_that_claim_at_once_do_not_send_two_of_one_lane(
    race: Race, outbox: OutboxWorld, statement: Altered, lost: bool
) -> None:
    for name in "ab":
        await outbox.add(name)
    await outbox.add("x", session="s2")
    first, second = await race.overlap(lambda held: held.outbox.claim(GRACE_S), race.outbox(statement).claim(GRACE_S))
    assert first is not None
    assert second is not None
    assert (first.id, second.id) == ("a", "b" if lost else "x")


async def test_a_claim_waits_for_no_other(race: Race, outbox: OutboxWorld) -> None:
    for name in "ab":
        await outbox.add(name, session=name)
    async with race.holding() as held:
        first = await held.outbox.claim(GRACE_S)
        second = await race.outbox().claim(GRACE_S)
        assert first is not None
        assert second is not None
        assert {first.id, second.id} == {"a", "b"}


@pytest.mark.parametrize("decision", [Delivered(200), Failed("404"), Uncertain("timeout"), RetryIn(5.0, "503")])
async def test_a_follower_is_not_claimed_while_its_head_is_being_settled(
    race: Race, outbox: OutboxWorld, decision: Decision
) -> None:
    for name in "ab":
        await outbox.add(name)
    head = await outbox.store.claim(GRACE_S)
    assert head is not None
    settled, follower = await race.overlap(
        lambda held: held.outbox.settle("a", head.claim, decision), race.outbox().claim(GRACE_S)
    )
    assert settled
    assert follower is None, "it was decided by a head that still held it"
    assert (await outbox.store.claim(GRACE_S) is None) is isinstance(decision, RetryIn)


# --- sweeps


@variants(UNLOCKED_SWEEP)
async def test_two_sweeps_at_once_tell_of_each_row_once(
    race: Race, outbox: OutboxWorld, statement: Altered, lost: bool
) -> None:
    await outbox.add("a")
    await outbox.store.claim(GRACE_S)
    outbox.clock.advance(UNTIL_EXPIRED_S)
    first, second = await race.overlap(lambda held: held.outbox.sweep_expired(), race.outbox(statement).sweep_expired())
    assert [row.id for row in first] == ["a"]
    assert [row.id for row in second] == (["a"] if lost else [])
    assert await in_state(outbox, "a") is DeliveryState.UNCERTAIN


@variants(UNLOCKED_SWEEP)
@pytest.mark.parametrize("decision", [Delivered(200), RetryIn(5.0, "503")], ids=["delivered", "to be tried again"])
async def test_a_sweep_leaves_alone_what_is_being_settled(
    race: Race, outbox: OutboxWorld, decision: Decision, statement: Altered, lost: bool
) -> None:
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    outbox.clock.advance(UNTIL_EXPIRED_S)

    def settle_first(sweep: Awaitable[object]) -> Awaitable[tuple[bool, object]]:
        return race.overlap(lambda held: held.outbox.settle("a", claimed.claim, decision), sweep)

    if lost:
        with pytest.raises(StoreRefused, match="does not go back"):  # the guard behind the statement stops it
            await settle_first(race.outbox(statement).sweep_expired())
    else:
        assert await settle_first(race.outbox(statement).sweep_expired()) == (True, ())
    target = DeliveryState.DELIVERED if isinstance(decision, Delivered) else DeliveryState.PENDING
    assert await in_state(outbox, "a") is target


@pytest.mark.parametrize(
    ("decision", "written"), [(Delivered(200), True), (Failed("404"), False), (RetryIn(5.0, "503"), False)]
)
async def test_a_holder_that_waits_for_a_sweep_may_only_tell_that_it_arrived(
    race: Race, outbox: OutboxWorld, decision: Decision, written: bool
) -> None:
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    outbox.clock.advance(UNTIL_EXPIRED_S)
    swept, settled = await race.overlap(
        lambda held: held.outbox.sweep_expired(), race.outbox().settle("a", claimed.claim, decision)
    )
    assert [row.state for row in swept] == [DeliveryState.UNCERTAIN]
    assert settled is written
    assert await in_state(outbox, "a") is (DeliveryState.DELIVERED if written else DeliveryState.UNCERTAIN)


async def test_a_sweep_does_not_end_a_claim_that_began_after_it_had_looked(race: Race, outbox: OutboxWorld) -> None:
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    outbox.clock.advance(UNTIL_EXPIRED_S)

    async def its_holder_settles_and_another_claims() -> None:
        assert await outbox.store.settle("a", claimed.claim, RetryIn(0.0, "503"))
        assert await outbox.store.claim(GRACE_S) is not None

    sweeper = race.outbox_that_pauses("expired", its_holder_settles_and_another_claims)
    assert await sweeper.sweep_expired() == ()
    assert await in_state(outbox, "a") is DeliveryState.DELIVERING


async def test_settling_twice_at_once_says_the_same(race: Race, outbox: OutboxWorld) -> None:
    """As when the first answer was lost, and the statement was not."""
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert await race.overlap(
        lambda held: held.outbox.settle("a", claimed.claim, Delivered(200)),
        race.outbox().settle("a", claimed.claim, Delivered(200)),
    ) == (True, True)


# --- an operator


async def failed(outbox: OutboxWorld, delivery_id: str) -> None:
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert claimed.id == delivery_id
    assert await outbox.store.settle(claimed.id, claimed.claim, Failed("404"))


@variants(
    naive_outbox(
        "resend",
        ("WHERE o.id = %(id)s AND o.state IN ('failed', 'uncertain')\n  AND (", "WHERE o.id = %(id)s\n  AND ("),
    )
)
async def test_two_operators_at_once_resend_once(
    race: Race, outbox: OutboxWorld, statement: Altered, lost: bool
) -> None:
    await outbox.add("a")
    await failed(outbox, "a")
    first, second = await race.overlap(
        lambda held: held.outbox.resend("a", force=True), race.outbox(statement).resend("a", force=True)
    )
    assert first == Resent()
    assert isinstance(second, NotResent) is not lost
    shown = await outbox.store.show("a")
    assert shown is not None
    assert shown.resends == (2 if lost else 1)


async def test_a_resend_that_waits_for_a_late_answer_is_refused(race: Race, outbox: OutboxWorld) -> None:
    await outbox.add("a")
    claimed = await outbox.store.claim(GRACE_S)
    assert claimed is not None
    assert await outbox.store.settle("a", claimed.claim, Uncertain("timeout"))
    settled, resent = await race.overlap(
        lambda held: held.outbox.settle("a", claimed.claim, Delivered(200)),
        race.outbox().resend("a", force=True),
    )
    assert settled
    assert resent == NotResent("delivery a is delivered; only failed and uncertain ones are sent again")


@variants(naive_outbox("resend", ("wanted.now + %(delay_s)s * interval '1 second'", "wanted.now")))
async def test_a_claim_that_began_before_a_resend_does_not_send_it_out_of_its_place(
    race: Race, outbox: OutboxWorld, statement: Altered, lost: bool
) -> None:
    """A claim has seen the only row of a lane, pending. That one fails, another comes, and an operator sends the first
    again, behind it. The claim looks at the row once more, for it has changed, but at no other. What saves the order is
    that it is not due yet."""
    await outbox.add("a")
    gated = race.outbox_behind_a_gate()
    async with race.holding() as gate:
        await gate.run(f"SELECT pg_advisory_xact_lock({GATE})")
        claiming = asyncio.ensure_future(gated.claim(GRACE_S))
        assert await race.waits(claiming)
        await failed(outbox, "a")
        await outbox.add("b")
        assert await race.outbox(statement).resend("a", force=True) == Resent()
        await gate.let_go()
        claimed = await claiming
    assert (claimed is not None) is lost
    assert await outbox.positions() == ["b", "a"]


# --- a lane that is being pushed


async def test_a_push_of_the_lane_waits_for_nobody(race: Race, outbox: OutboxWorld) -> None:
    """A follower that somebody is changing is left out: it is only put off so that fewer look at it."""
    for name in "abc":
        await outbox.add(name)
    head = await outbox.store.claim(GRACE_S)
    assert head is not None
    async with race.holding() as held:
        await held.run("SELECT FROM outbox WHERE id = 'b' FOR NO KEY UPDATE")
        assert await race.outbox().settle("a", head.claim, RetryIn(5.0, "503"))
    due = {row.id: row.due_at for row in await outbox.store.list()}
    assert due["b"] < due["c"] == due["a"]
