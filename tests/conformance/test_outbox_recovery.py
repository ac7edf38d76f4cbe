"""Picking up what a process left behind, over every outbox store."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from outbox.delivery import Deliverer
from outbox.message import DeliveryState
from outbox.recovery import RecoveredDeliveries, recover_deliveries
from outbox.states import Answered, Unknown
from tests.outbox_doubles import SECRET, FixedWaits, RecordedEvents, ScriptedPost


def recovery(outbox, *results):
    events, post = RecordedEvents(), ScriptedPost(list(results))
    deliverer = Deliverer(outbox.store, post, lambda delivery: (SECRET,), outbox.clock, events, waits=FixedWaits())
    return recover_deliveries(outbox.store, deliverer, events, outbox.clock), events, post


async def leave_behind(outbox, delivery_id, **changes):
    """A row whose process died after its claim."""
    await outbox.add(delivery_id, session=delivery_id, **changes)
    await outbox.store.claim(20.0)
    outbox.clock.advance(60)


async def test_what_was_left_is_told_and_what_is_due_is_sent(outbox):
    await leave_behind(outbox, "left")
    for name in "abc":
        await outbox.add(name, session=name)
    recovering, events, post = recovery(outbox, Answered(200), Answered(503), Unknown("timeout"))
    with capture_logs() as logs:
        assert await recovering == RecoveredDeliveries(sent=1, uncertain=2, pending=1, sending=0)
    assert [line["delivery_id"] for line in logs if line["event"] == "delivery_uncertain"] == ["left"]
    assert len(post.posted) == 3
    told = [(kind, data.get("outcome")) for kind, data in events.told()]
    assert sorted(told, key=str) == [
        ("delivery_delivered", None),
        ("delivery_failed", "uncertain"),
        ("delivery_failed", "uncertain"),
    ]


async def test_with_nothing_to_do_it_says_so(outbox):
    recovering, events, _ = recovery(outbox)
    assert await recovering == RecoveredDeliveries(0, 0, 0, 0)
    assert events.told() == []


async def test_a_claim_that_still_runs_is_left_alone(outbox):
    await outbox.add("d1")
    await outbox.store.claim(20.0)
    recovering, _, _ = recovery(outbox)
    assert await recovering == RecoveredDeliveries(0, 0, 0, 1)
    assert (await outbox.store.show("d1")).state is DeliveryState.DELIVERING


async def test_at_least_once_is_sent_again_by_the_recovery_that_finds_it(outbox):
    await leave_behind(outbox, "left", guarantee="at_least_once")
    recovering, events, post = recovery(outbox, Answered(200))
    assert await recovering == RecoveredDeliveries(1, 0, 0, 0)
    assert post.posted[0].headers["insika-possible-duplicate"] == "true"
    assert [kind for kind, _ in events.told()] == ["delivery_delivered"]


async def test_twice_at_once_sends_and_tells_each_thing_once(outbox):
    await leave_behind(outbox, "left")
    for number in range(20):
        await outbox.add(f"d{number}", session=f"s{number % 5}")
    first, first_events, first_post = recovery(outbox, *[Answered(200)] * 20)
    second, second_events, second_post = recovery(outbox, *[Answered(200)] * 20)
    one, two = await asyncio.gather(first, second)
    assert (one.sent + two.sent, one.uncertain + two.uncertain) == (20, 1)
    sent = [request.headers["webhook-id"] for post in (first_post, second_post) for request in post.posted]
    assert sorted(sent) == sorted({f"d{number}" for number in range(20)})
    uncertain = [kind for events in (first_events, second_events) for kind, _ in events.told() if "failed" in kind]
    assert uncertain == ["delivery_failed"]
