"""What every outbox store must do: claims, settling, sweeping, resending, and the order within a lane."""

from __future__ import annotations

from datetime import timedelta

import pytest

from insika.choices import Guarantee
from insika.clock import NEVER
from insika.storage.port import StoreRefused
from outbox.message import DeliveryState
from outbox.states import Delivered, Failed, RetryIn, Uncertain
from outbox.store import NotResent, Resent
from tests.outbox_world import OutboxWorld

GRACE_S = 20.0


async def claim(outbox: OutboxWorld):
    return await outbox.store.claim(GRACE_S)


async def claimed_id(outbox: OutboxWorld):
    row = await claim(outbox)
    return row.id if row is not None else None


async def end(outbox, decision):
    row = await claim(outbox)
    assert await outbox.store.settle(row.id, row.claim, decision)
    return row


async def test_a_claim_is_for_one_and_carries_all_that_sending_needs(outbox: OutboxWorld):
    await outbox.add("d1", payload={"content": "hi"}, guarantee="at_least_once", timeout_s=3.5, max_attempts=2)
    row = await claim(outbox)
    assert (row.id, row.channel, row.recipient, row.kind) == ("d1", "web", "s1", "answer")
    assert (row.payload, row.url) == ({"content": "hi"}, "https://receiver.example/hook")
    assert (row.guarantee, row.attempts, row.tries, row.max_attempts) == (Guarantee.AT_LEAST_ONCE, 1, 1, 2)
    assert (row.timeout_s, row.claimed_at, row.possible_duplicate) == (3.5, outbox.clock.now(), False)
    assert await claim(outbox) is None


async def test_a_claim_runs_for_the_timeout_and_the_grace(outbox: OutboxWorld):
    await outbox.add("d1", timeout_s=15.0)
    await claim(outbox)
    row = await outbox.store.show("d1")
    assert row.claim_until - row.claimed_at == timedelta(seconds=15 + 20)


async def test_what_is_not_due_is_not_claimed(outbox: OutboxWorld):
    await outbox.add("d1")
    await end(outbox, RetryIn(5.0, "503"))
    outbox.clock.advance(4.9)
    assert await claim(outbox) is None
    outbox.clock.advance(0.1)
    assert (await claim(outbox)).attempts == 2


async def test_the_oldest_due_goes_first_among_lanes(outbox: OutboxWorld):
    for name in ("b", "a", "c"):
        await outbox.add(name, session=name)
        outbox.clock.advance(1)
    assert [await claimed_id(outbox) for _ in range(3)] == ["b", "a", "c"]


async def test_delivered_is_the_end(outbox: OutboxWorld):
    await outbox.add("d1")
    row = await end(outbox, Delivered(200))
    outbox.clock.advance(10_000)
    assert await claim(outbox) is None
    assert await outbox.store.sweep_expired() == ()
    assert not await outbox.store.settle(row.id, row.claim, Failed("no"))
    assert (await outbox.store.show("d1")).state is DeliveryState.DELIVERED


async def test_settling_twice_the_same_way_says_the_same(outbox: OutboxWorld):
    for number, decision in enumerate([Delivered(200), Failed("no"), Uncertain("?"), RetryIn(9.0, "503")]):
        await outbox.add(f"d{number}", session=f"s{number}")
        row = await end(outbox, decision)
        assert await outbox.store.settle(row.id, row.claim, decision)


@pytest.mark.parametrize("decision", [Delivered(200), Failed("no"), Uncertain("?"), RetryIn(9.0, "503")])
async def test_only_the_current_claim_settles(outbox: OutboxWorld, decision):
    await outbox.add("d1")
    first = await end(outbox, RetryIn(0.0, "503"))
    second = await claim(outbox)
    assert not await outbox.store.settle("d1", first.claim, decision)
    assert not await outbox.store.settle("d1", "nonsense", decision)
    assert (await outbox.store.show("d1")).state is DeliveryState.DELIVERING
    assert await outbox.store.settle("d1", second.claim, decision)


async def test_a_claim_that_ran_out_is_uncertain_and_not_claimed_again(outbox: OutboxWorld):
    await outbox.add("d1")
    await claim(outbox)
    outbox.clock.advance(35)
    assert await outbox.store.sweep_expired() == ()
    outbox.clock.advance(1)
    (row,) = await outbox.store.sweep_expired()
    assert (row.id, row.state) == ("d1", DeliveryState.UNCERTAIN)
    assert row.reason
    assert await outbox.store.sweep_expired() == ()
    assert await claim(outbox) is None


async def test_at_least_once_goes_back_to_pending_in_one_step_and_is_marked(outbox: OutboxWorld):
    await outbox.add("d1", guarantee="at_least_once")
    await claim(outbox)
    outbox.clock.advance(36)
    (row,) = await outbox.store.sweep_expired()
    assert (row.state, row.possible_duplicate) == (DeliveryState.PENDING, True)
    again = await claim(outbox)
    assert (again.id, again.attempts, again.possible_duplicate) == ("d1", 2, True)


async def test_the_mark_of_a_possible_duplicate_is_never_lost(outbox: OutboxWorld):
    await outbox.add("d1", guarantee="at_least_once")
    await end(outbox, RetryIn(0.0, "timeout", possible_duplicate=True))
    await end(outbox, RetryIn(0.0, "503", possible_duplicate=False))
    assert (await claim(outbox)).possible_duplicate


async def test_a_late_answer_of_the_current_claim_turns_uncertain_into_delivered(outbox: OutboxWorld):
    await outbox.add("d1")
    row = await claim(outbox)
    outbox.clock.advance(36)
    await outbox.store.sweep_expired()
    assert not await outbox.store.settle("d1", row.claim, Failed("404"))
    assert not await outbox.store.settle("d1", row.claim, RetryIn(1.0, "503"))
    assert await outbox.store.settle("d1", row.claim, Delivered(200))
    shown = await outbox.store.show("d1")
    assert (shown.state, shown.reason) == (DeliveryState.DELIVERED, None)


async def test_the_schema_refuses_what_no_statement_should_do(outbox: OutboxWorld):
    await outbox.add("d1")
    await end(outbox, Delivered(200))
    for statement in (
        "UPDATE outbox SET state = 'pending'",
        "UPDATE outbox SET attempts = 0",
        "UPDATE outbox SET payload = '{}'",
        "UPDATE outbox SET url = 'https://elsewhere.example/'",
    ):
        with pytest.raises(StoreRefused):
            await outbox.run(f"{statement} RETURNING id")


# --- lanes


async def test_a_head_that_was_never_claimed_holds_its_lane_without_limit(outbox: OutboxWorld):
    await outbox.add("a")
    await outbox.add("b")
    await outbox.postpone("a", 3600)
    outbox.clock.advance(3599)
    assert await claim(outbox) is None
    outbox.clock.advance(1)
    assert await claimed_id(outbox) == "a"


async def test_a_claimed_head_holds_its_lane_for_its_order_wait(outbox: OutboxWorld):
    await outbox.add("a", order_wait_s=30.0)
    await outbox.add("b")
    await claim(outbox)
    outbox.clock.advance(29.9)
    assert await claim(outbox) is None
    outbox.clock.advance(0.1)
    follower = await claim(outbox)
    assert (follower.id, follower.overtook) == ("b", True)


async def test_an_outage_of_the_deliverers_does_not_undo_the_order(outbox: OutboxWorld):
    for name in "abc":
        await outbox.add(name)
    outbox.clock.advance(3600)
    assert await claimed_id(outbox) == "a"
    assert await claim(outbox) is None


@pytest.mark.parametrize("decision", [Delivered(200), Failed("404"), Uncertain("timeout")])
async def test_a_head_that_is_settled_for_good_holds_nobody(outbox, decision):
    await outbox.add("a")
    await outbox.add("b")
    await end(outbox, decision)
    follower = await claim(outbox)
    assert (follower.id, follower.overtook) == ("b", False)


async def test_a_head_that_goes_back_pushes_its_lane_to_its_own_due_time(outbox: OutboxWorld):
    for name in "abc":
        await outbox.add(name)
    await outbox.add("x", session="other")
    await end(outbox, RetryIn(5.0, "503"))
    due = {row.id: row.due_at for row in await outbox.store.list()}
    assert due["b"] == due["c"] == due["a"] > due["x"]
    assert await claimed_id(outbox) == "x"
    outbox.clock.advance(5)
    assert await claimed_id(outbox) == "a"


async def test_a_head_whose_claim_ran_out_pushes_what_is_behind_it_and_only_that(outbox: OutboxWorld):
    await outbox.add("before", order_wait_s=0.0)
    for name in ("head", "behind"):
        await outbox.add(name, guarantee="at_least_once", order_wait_s=600.0)
    await end(outbox, RetryIn(60.0, "503"))
    await outbox.postpone("before", -59)  # so that it could be pushed by a later one
    assert await claimed_id(outbox) == "head"
    outbox.clock.advance(36)
    (swept,) = await outbox.store.sweep_expired()
    due = {row.id: row.due_at for row in await outbox.store.list()}
    assert due["behind"] == due["head"] == swept.due_at == outbox.clock.now()
    assert due["before"] < outbox.clock.now()


async def test_a_long_wait_of_the_head_pushes_its_lane_no_further_than_its_hold(outbox: OutboxWorld):
    await outbox.add("a", order_wait_s=60.0)
    await outbox.add("b")
    await end(outbox, RetryIn(600.0, "503"))
    outbox.clock.advance(59)
    assert await claim(outbox) is None
    outbox.clock.advance(1)
    follower = await claim(outbox)
    assert (follower.id, follower.overtook) == ("b", True)


async def test_the_hold_counts_from_the_first_claim_not_from_the_last(outbox: OutboxWorld):
    await outbox.add("a", order_wait_s=60.0, max_attempts=9)
    await outbox.add("b")
    for _ in range(3):
        await end(outbox, RetryIn(20.0, "503"))
        outbox.clock.advance(20)
    assert {await claimed_id(outbox), await claimed_id(outbox)} == {"a", "b"}


async def test_lanes_do_not_hold_each_other(outbox: OutboxWorld):
    await outbox.add("a", session="s1")
    await outbox.add("b", session="s2")
    await claim(outbox)
    assert await claimed_id(outbox) == "b"


# --- resending by hand


async def test_deliveries_are_found_by_the_beginning_of_their_ids(outbox: OutboxWorld):
    for name in ("msg_b", "msg_a1", "msg_a2"):
        await outbox.add(name)
    assert await outbox.store.ids("msg_a", 9) == ["msg_a1", "msg_a2"]
    assert await outbox.store.ids("msg", 1) == ["msg_a1"]
    assert await outbox.store.ids("_", 9) == []


async def test_only_what_failed_or_is_uncertain_is_resent(outbox: OutboxWorld):
    await outbox.add("d1")
    assert isinstance(await outbox.store.resend("d1", force=True), NotResent)
    await end(outbox, Delivered(200))
    assert isinstance(await outbox.store.resend("d1", force=True), NotResent)
    assert "no delivery" in (await outbox.store.resend("nobody")).reason


async def test_a_resend_is_refused_for_five_minutes_after_the_last_claim_unless_forced(outbox: OutboxWorld):
    await outbox.add("d1")
    row = await end(outbox, Uncertain("timeout"))
    outbox.clock.advance(299)
    refused = await outbox.store.resend("d1")
    assert isinstance(refused, NotResent)
    assert refused.not_before == row.claimed_at + timedelta(minutes=5)
    assert "may still arrive" in refused.reason
    outbox.clock.advance(1)
    assert await outbox.store.resend("d1") == Resent()


async def test_of_one_that_was_answered_nobody_says_that_it_may_still_arrive(outbox: OutboxWorld):
    await outbox.add("d1")
    await end(outbox, Failed("404"))
    refused = await outbox.store.resend("d1")
    assert refused.reason == "delivery d1 was last tried less than 5 minutes ago"


async def test_a_row_tells_until_when_its_claim_runs(outbox: OutboxWorld):
    await outbox.add("d1")
    assert (await outbox.store.show("d1")).claim_until is None
    claimed = await claim(outbox)
    assert (await outbox.store.show("d1")).claim_until > claimed.claimed_at


async def test_a_forced_resend_is_due_in_a_second_and_marked(outbox: OutboxWorld):
    await outbox.add("d1")
    await end(outbox, Uncertain("timeout"))
    assert await outbox.store.resend("d1", force=True) == Resent()
    assert isinstance(await outbox.store.resend("d1", force=True), NotResent)
    assert await claim(outbox) is None
    outbox.clock.advance(1)
    again = await claim(outbox)
    assert (again.attempts, again.tries, again.possible_duplicate) == (2, 1, True)
    shown = await outbox.store.show("d1")
    assert (shown.resends, shown.max_attempts) == (1, 3)


async def test_a_resend_goes_behind_what_its_lane_holds_by_now(outbox: OutboxWorld):
    await outbox.add("a")
    await end(outbox, Failed("404"))
    await outbox.add("b")
    await outbox.store.resend("a", force=True)
    await outbox.add("c")
    assert await outbox.positions() == ["b", "a", "c"]
    assert await outbox.run("SELECT lane_seq FROM sessions") == [(4,)]
    outbox.clock.advance(1)
    assert await claimed_id(outbox) == "b"
    assert (await outbox.holds())["a"] is None


async def test_a_late_answer_to_the_claim_before_a_resend_says_nothing(outbox: OutboxWorld):
    await outbox.add("d1")
    row = await end(outbox, Uncertain("timeout"))
    await outbox.store.resend("d1", force=True)
    assert not await outbox.store.settle("d1", row.claim, Delivered(200))
    assert not await outbox.store.settle("d1", row.claim, Failed("404"))
    assert (await outbox.store.show("d1")).state is DeliveryState.PENDING


async def test_a_delivery_without_a_session_is_resent_in_its_own_lane(outbox: OutboxWorld):
    await outbox.add("d1", session_id=None, lane="alert/1", lane_pos=1, kind="alert")
    await end(outbox, Failed("404"))
    assert await outbox.store.resend("d1", force=True) == Resent()
    assert await outbox.run("SELECT lane_pos FROM outbox") == [(2,)]


# --- looking


async def test_listings_show_the_newest_first_and_by_state(outbox: OutboxWorld):
    for name in "abc":
        await outbox.add(name, session=name)
    await end(outbox, Failed("404"))
    assert [row.id for row in await outbox.store.list()] == ["c", "b", "a"]
    assert [row.id for row in await outbox.store.list(limit=2)] == ["c", "b"]
    (failed,) = await outbox.store.list(DeliveryState.FAILED)
    assert (failed.id, failed.reason, failed.settled_at) == ("a", "404", outbox.clock.now())
    assert await outbox.store.show("nobody") is None
    counts = await outbox.store.counts()
    assert (counts[DeliveryState.PENDING], counts[DeliveryState.FAILED], counts[DeliveryState.UNCERTAIN]) == (2, 1, 0)


async def test_the_next_due_time_is_never_in_an_empty_outbox(outbox: OutboxWorld):
    assert await outbox.store.next_due_at() == NEVER
    await outbox.add("d1")
    await end(outbox, Delivered(200))
    assert await outbox.store.next_due_at() == NEVER


async def test_the_next_due_time_is_an_expiry_or_a_retry_or_the_end_of_a_hold(outbox: OutboxWorld):
    start = outbox.clock.now()
    await outbox.add("a", order_wait_s=60.0, timeout_s=15.0)
    await outbox.add("b")
    assert await outbox.store.next_due_at() == start
    row = await claim(outbox)
    assert await outbox.store.next_due_at() == start + timedelta(seconds=35, microseconds=1)
    await outbox.store.settle(row.id, row.claim, RetryIn(4.0, "503"))
    assert await outbox.store.next_due_at() == start + timedelta(seconds=4)
    await outbox.add("x", session="s2", order_wait_s=10.0)
    await claim(outbox)
    await outbox.postpone("a", 3600)
    assert await outbox.store.next_due_at() == start + timedelta(seconds=10)


async def test_many_that_are_held_do_not_hide_the_one_that_is_due(outbox: OutboxWorld):
    for number in range(300):
        await outbox.add(f"held{number}")
    await outbox.add("free", session="s2")
    start = outbox.clock.now()
    await claim(outbox)
    await outbox.postpone("free", 5)
    assert await outbox.store.next_due_at() == start + timedelta(seconds=5)
    outbox.clock.advance(5)
    assert await claimed_id(outbox) == "free"
