"""Claim, POST, settle: in this order, each once, whatever goes wrong in between."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from insika.clock import ManualClock
from insika.crash_points import CrashPoint
from insika.storage.port import StoreUnavailable
from outbox.delivery import GRACE_S, Deliverer
from outbox.message import DeliveryState
from outbox.signing import body_of, verify
from outbox.states import Answered, Delivered, Forbidden, NotSent, Unknown
from tests.outbox_doubles import OTHER_SECRET, SECRET, FixedWaits, RecordedEvents, ScriptedPost, open_outbox


class Died(BaseException):
    """Stands for the end of the process: nothing of ours may catch it."""


async def no_sleep(seconds):
    return None


@pytest.fixture
def outbox(tmp_path):
    with open_outbox(tmp_path / "insika.db") as opened:
        yield opened


def deliverer(outbox, *results, events=None, secrets=(SECRET,), store=None, **options):
    post = ScriptedPost(list(results))
    made = Deliverer(
        store or outbox.store,
        options.pop("post", post),
        lambda delivery: secrets,
        outbox.clock,
        events or RecordedEvents(),
        waits=FixedWaits(),
        sleep=no_sleep,
        **options,
    )
    return made, post


async def state(outbox, delivery_id="d1"):
    return (await outbox.store.show(delivery_id)).state


async def test_nothing_due_is_nothing_done(outbox):
    delivering, post = deliverer(outbox)
    assert not await delivering.run_once()
    assert post.posted == []


async def test_a_delivery_is_posted_once_and_told_of(outbox):
    events = RecordedEvents()
    delivering, post = deliverer(outbox, Answered(204), events=events)
    outbox.add("d1")
    assert await delivering.deliver_next() == Delivered(204)
    assert not await delivering.run_once()
    assert len(post.posted) == 1
    assert await state(outbox) is DeliveryState.DELIVERED
    assert events.told() == [
        ("delivery_delivered", {"delivery_id": "d1", "channel": "web", "attempts": 1, "status": 204})
    ]
    event = events.events[0]
    assert (event.turn_id, event.session, event.agent) == ("t-d1", "s1", "demo")


async def test_the_request_carries_the_contracts_headers_and_the_claims_time(outbox):
    delivering, post = deliverer(outbox, Answered(200), secrets=(SECRET, OTHER_SECRET))
    outbox.add("d1", payload={"content": "hi", "a": 1})
    await delivering.run_once()
    (request,) = post.posted
    assert request.body == b'{"a":1,"content":"hi"}'
    assert request.headers["webhook-id"] == "d1"
    assert request.headers["webhook-timestamp"] == str(int(outbox.clock.now().timestamp()))
    assert len(request.headers["webhook-signature"].split(" ")) == 2
    assert request.headers["insika-attempt"] == "1"
    assert request.headers["content-type"] == "application/json"
    assert "insika-possible-duplicate" not in request.headers


async def test_each_attempt_has_the_same_id_and_bytes_and_its_own_number(outbox):
    delivering, post = deliverer(outbox, Answered(503), NotSent("no connection"), Answered(200))
    outbox.add("d1")
    for _ in range(3):
        await delivering.run_once()
        outbox.clock.advance(1)
    assert {request.headers["webhook-id"] for request in post.posted} == {"d1"}
    assert len({request.body for request in post.posted}) == 1
    assert [request.headers["insika-attempt"] for request in post.posted] == ["1", "2", "3"]
    assert await state(outbox) is DeliveryState.DELIVERED


async def test_a_resend_says_that_it_may_be_a_duplicate(outbox):
    delivering, post = deliverer(outbox, Unknown("timeout"), Answered(200))
    outbox.add("d1")
    await delivering.run_once()
    outbox.clock.advance(400)
    assert not await delivering.run_once()
    await outbox.store.resend("d1")
    outbox.clock.advance(1)
    await delivering.run_once()
    assert post.posted[1].headers["insika-possible-duplicate"] == "true"
    assert post.posted[1].headers["insika-attempt"] == "2"


@pytest.mark.parametrize(
    ("result", "outcome"), [(Unknown("no answer in time"), "uncertain"), (Forbidden("denied"), "failed")]
)
async def test_what_did_not_arrive_is_told_with_its_reason(outbox, result, outcome):
    events = RecordedEvents()
    delivering, _ = deliverer(outbox, result, events=events)
    outbox.add("d1")
    with capture_logs() as logs:
        await delivering.run_once()
    assert events.told() == [
        (
            "delivery_failed",
            {"delivery_id": "d1", "channel": "web", "attempts": 1, "outcome": outcome, "reason": result.reason},
        )
    ]
    (line,) = logs
    assert (line["log_level"], line["delivery_id"], line["reason"]) == ("warning", "d1", result.reason)
    assert (await outbox.store.show("d1")).reason == result.reason


async def test_a_refusal_that_will_be_tried_again_is_not_told_as_a_failure(outbox):
    events = RecordedEvents()
    delivering, _ = deliverer(outbox, Answered(503), events=events)
    outbox.add("d1")
    with capture_logs() as logs:
        await delivering.run_once()
    assert events.told() == []
    assert [line["log_level"] for line in logs] == ["info"]


@pytest.mark.parametrize("secrets", [(), ("whsec_",), ("whsec_a",)])
async def test_what_cannot_be_signed_is_not_sent_unsigned(outbox, secrets):
    delivering, post = deliverer(outbox, secrets=secrets)
    outbox.add("d1")
    await delivering.run_once()
    assert post.posted == []
    shown = await outbox.store.show("d1")
    assert shown.state is DeliveryState.FAILED
    assert "web" in shown.reason


async def test_a_process_that_slept_between_claim_and_post_does_not_post(outbox):
    delivering, post = deliverer(outbox, Answered(200))
    outbox.add("d1")
    send = await delivering.claim()
    outbox.clock.advance(GRACE_S + 0.1)
    await send()
    assert post.posted == []
    assert await state(outbox) is DeliveryState.PENDING


async def test_setting_the_wall_clock_does_not_keep_a_claim_from_being_sent(outbox):
    delivering, post = deliverer(outbox, Answered(200))
    outbox.add("d1")
    send = await delivering.claim()
    outbox.clock.jump(300)
    await send()
    assert len(post.posted) == 1


async def test_an_answer_that_comes_after_the_sweep_still_counts(outbox):
    async def answer_late(request):
        outbox.clock.advance(60)
        (row,) = await outbox.store.sweep_expired()
        assert row.state is DeliveryState.UNCERTAIN
        return Answered(200)

    delivering, _ = deliverer(outbox, answer_late)
    outbox.add("d1")
    await delivering.run_once()
    assert await state(outbox) is DeliveryState.DELIVERED


async def test_one_that_overtakes_its_lane_is_told(outbox):
    events = RecordedEvents()
    delivering, _ = deliverer(outbox, Answered(200), events=events)
    outbox.add("d1", order_wait_s=5.0)
    outbox.add("d2")
    await outbox.store.claim(GRACE_S)
    outbox.clock.advance(5)
    await delivering.run_once()
    assert [kind for kind, _ in events.told()] == ["delivery_overtook", "delivery_delivered"]
    assert events.events[0].data["delivery_id"] == "d2"


# --- the store is away


class Flaky:
    """Passes everything on, but fails to say what it did so many times."""

    def __init__(self, store, *, before=0, after=0):
        self.store, self.before, self.after = store, before, after

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def settle(self, *arguments, **named):
        if self.before > 0:
            self.before -= 1
            raise StoreUnavailable("gone")
        settled = await self.store.settle(*arguments, **named)
        if self.after > 0:
            self.after -= 1
            raise StoreUnavailable("gone after the commit")
        return settled


@pytest.mark.parametrize("faults", [{"before": 3}, {"after": 3}, {"before": 2, "after": 2}])
async def test_a_store_that_is_away_is_asked_again_until_the_outcome_is_written(outbox, faults):
    events = RecordedEvents()
    delivering, post = deliverer(outbox, Answered(200), events=events, store=Flaky(outbox.store, **faults))
    outbox.add("d1")
    await delivering.run_once()
    assert len(post.posted) == 1
    assert await state(outbox) is DeliveryState.DELIVERED
    assert [kind for kind, _ in events.told()] == ["delivery_delivered"]


async def test_an_outcome_that_cannot_be_written_leaves_the_row_to_become_uncertain(outbox):
    events = RecordedEvents()
    delivering, _ = deliverer(outbox, Answered(200), events=events, store=Flaky(outbox.store, before=10_000))
    outbox.add("d1")
    await delivering.run_once()
    assert await state(outbox) is DeliveryState.DELIVERING
    assert events.told() == []
    outbox.clock.advance(60)
    (row,) = await outbox.store.sweep_expired()
    assert row.state is DeliveryState.UNCERTAIN


# --- the process dies


def dies_at(point):
    def crash(at):
        if at is point:
            raise Died

    return crash


@pytest.mark.parametrize(
    ("point", "posts", "ends"),
    [
        (CrashPoint.DELIVERY_CLAIMED, 0, DeliveryState.UNCERTAIN),
        (CrashPoint.DELIVERY_SENT, 1, DeliveryState.UNCERTAIN),
        (CrashPoint.DELIVERY_SETTLED, 1, DeliveryState.DELIVERED),
    ],
)
async def test_whenever_it_dies_the_next_process_posts_nothing_again(outbox, point, posts, ends):
    outbox.add("d1")
    dying, post = deliverer(outbox, Answered(200), crash=dies_at(point))
    with pytest.raises(Died):
        await dying.run_once()
    outbox.clock.advance(60)
    await outbox.store.sweep_expired()
    living, again = deliverer(outbox, Answered(200))
    assert not await living.run_once()
    assert (len(post.posted), len(again.posted)) == (posts, 0)
    assert await state(outbox) is ends


class Hanging:
    """A request that never ends; `opened` says whether its first byte has left."""

    def __init__(self, *, opened):
        self.opened = opened
        self.started = asyncio.Event()

    async def post(self, url, headers, body, *, timeout_s, attempt):
        if self.opened:
            attempt.open_gate()
        self.started.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize(("opened", "ends"), [(True, DeliveryState.UNCERTAIN), (False, DeliveryState.PENDING)])
async def test_a_shutdown_in_mid_request_writes_what_is_known(outbox, opened, ends):
    post = Hanging(opened=opened)
    delivering, _ = deliverer(outbox, post=post)
    outbox.add("d1")
    running = asyncio.create_task(delivering.run_once())
    await post.started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await state(outbox) is ends


async def test_a_shutdown_while_claiming_gives_the_row_back(outbox):
    claiming = asyncio.Event()

    class Slow:
        def __getattr__(self, name):
            return getattr(outbox.store, name)

        async def claim(self, grace_s):
            claiming.set()
            return await outbox.store.claim(grace_s)

    delivering, post = deliverer(outbox, store=Slow())
    outbox.add("d1")
    running = asyncio.create_task(delivering.run_once())
    await claiming.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    outbox.change("UPDATE sessions SET name = name")  # behind whatever was still on its way to the file
    assert post.posted == []
    shown = await outbox.store.show("d1")
    assert (shown.state, shown.attempts) == (DeliveryState.PENDING, 1)


async def test_what_is_sent_verifies_with_the_receivers_secret(tmp_path):
    with open_outbox(tmp_path / "now.db", ManualClock(datetime.now(UTC))) as outbox:
        delivering, post = deliverer(outbox, Answered(200))
        outbox.add("d1", payload={"content": "grüße \ud83d"})
        await delivering.run_once()
        (request,) = post.posted
        assert request.body == body_of({"content": "grüße \ud83d"})
        verify([SECRET], request.headers, request.body)
