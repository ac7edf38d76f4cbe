"""The loop: claims while there is room, sleeps until there is reason, and outlives a store that is away."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from insika.storage.port import StoreUnavailable
from outbox.alerts import DeliveryAlerts
from outbox.delivery import Deliverer
from outbox.loop import DeliveryLoop
from outbox.message import DeliveryState
from outbox.states import Answered
from outbox.wake import WakeSignal
from tests.outbox_doubles import SECRET, FixedWaits, RecordedEvents, ScriptedPost, open_outbox


@pytest.fixture
def outbox(tmp_path):
    with open_outbox(tmp_path / "insika.db") as opened:
        yield opened


class SleepingClock:
    """A wake that passes its time on the manual clock at once; stops the loop when it slept often enough."""

    def __init__(self, clock, stop, naps):
        self.clock, self.stop, self.naps = clock, stop, naps
        self.slept = []

    def ring(self):
        return None

    async def wait(self, timeout_s):
        await asyncio.sleep(0)
        self.slept.append(timeout_s)
        self.clock.advance(timeout_s)
        if len(self.slept) >= self.naps:
            self.stop.set()


def loop_over(outbox, wake, *results, store=None, events=None, post=None, **options):
    store, events = store or outbox.store, events or RecordedEvents()
    post = post or ScriptedPost(list(results))
    delivering = Deliverer(store, post, lambda delivery: (SECRET,), outbox.clock, events, waits=FixedWaits())
    return DeliveryLoop(store, delivering, wake, outbox.clock, events, **options), post


async def test_everything_due_goes_out_and_retries_when_their_time_comes(outbox):
    stop = asyncio.Event()
    wake = SleepingClock(outbox.clock, stop, naps=6)
    loop, post = loop_over(outbox, wake, Answered(503), *[Answered(200)] * 4)
    for name in "abcd":
        outbox.add(name, session=name)
    await loop.run(stop)
    assert len(post.posted) == 5
    assert (await outbox.store.counts())[DeliveryState.DELIVERED] == 4


async def test_with_nothing_due_it_sleeps_its_longest_nap_each_time(outbox):
    stop = asyncio.Event()
    wake = SleepingClock(outbox.clock, stop, naps=5)
    loop, _ = loop_over(outbox, wake, idle_s=7.0)
    await loop.run(stop)
    assert wake.slept == [7.0] * 5


async def test_a_clock_that_is_ahead_of_the_stores_does_not_make_it_spin(outbox):
    class FiveMinutesAgo:
        def __getattr__(self, name):
            return getattr(outbox.store, name)

        async def next_due_at(self):
            return outbox.clock.now() - timedelta(minutes=5)

    stop = asyncio.Event()
    wake = SleepingClock(outbox.clock, stop, naps=9)
    loop, _ = loop_over(outbox, wake, store=FiveMinutesAgo(), idle_s=2.0)
    await loop.run(stop)
    assert wake.slept[:3] == [0.05, 0.1, 0.2]
    assert wake.slept[-3:] == [2.0] * 3


async def test_an_expired_claim_is_swept_and_told(outbox):
    outbox.add("d1", timeout_s=15.0)
    await outbox.store.claim(20.0)
    stop, events = asyncio.Event(), RecordedEvents()
    wake = SleepingClock(outbox.clock, stop, naps=8)
    loop, _ = loop_over(outbox, wake, events=events, idle_s=10.0)
    await loop.run(stop)
    assert [(kind, data["outcome"]) for kind, data in events.told()] == [("delivery_failed", "uncertain")]


async def test_operators_are_told_of_what_a_sender_that_died_has_left(outbox):
    outbox.add("d1", timeout_s=15.0)
    await outbox.store.claim(20.0)
    alerts = DeliveryAlerts(lambda agent: "https://ops.example/insika", outbox.clock)
    wake = SleepingClock(outbox.clock, asyncio.Event(), naps=8)
    loop, post = loop_over(outbox, wake, Answered(200), alerts=alerts, idle_s=10.0)
    await loop.run(wake.stop)
    (alert,) = post.posted
    assert json.loads(alert.body)["type"] == "delivery_failed"


async def test_a_store_that_is_away_is_waited_for_longer_and_longer(outbox):
    class Away:
        def __init__(self, store, times):
            self.store, self.times = store, times

        def __getattr__(self, name):
            return getattr(self.store, name)

        async def claim(self, grace_s):
            if self.times:
                self.times -= 1
                raise StoreUnavailable("gone")
            return await self.store.claim(grace_s)

    outbox.add("d1")
    stop = asyncio.Event()
    wake = SleepingClock(outbox.clock, stop, naps=6)
    loop, post = loop_over(outbox, wake, Answered(200), store=Away(outbox.store, 4))
    await loop.run(stop)
    assert wake.slept[0] < wake.slept[1] < wake.slept[2] < wake.slept[3] <= 10
    assert len(post.posted) == 1


async def test_one_delivery_that_breaks_down_does_not_take_the_others_along(outbox):
    class BreaksOnce(ScriptedPost):
        async def post(self, url, headers, body, **options):
            if headers["webhook-id"] == "d1":
                raise RuntimeError("unforeseen")
            return await super().post(url, headers, body, **options)

    outbox.add("d1")
    outbox.add("d2", session="s2")
    stop = asyncio.Event()
    wake = SleepingClock(outbox.clock, stop, naps=4)
    loop, post = loop_over(outbox, wake, post=BreaksOnce([Answered(200)]), idle_s=20.0)
    await loop.run(stop)
    assert len(post.posted) == 1
    assert (await outbox.store.show("d1")).state is DeliveryState.UNCERTAIN
    assert (await outbox.store.show("d2")).state is DeliveryState.DELIVERED


class Gathering:
    """Holds every request until as many as expected are in flight."""

    def __init__(self, expected):
        self.expected, self.in_flight, self.most = expected, 0, 0
        self.gathered = asyncio.Event()
        self.release = asyncio.Event()

    async def post(self, url, headers, body, *, timeout_s, attempt):
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if self.in_flight == self.expected:
            self.gathered.set()
        await self.release.wait()
        self.in_flight -= 1
        return Answered(200)


async def test_slots_bound_what_is_in_flight_and_a_slow_receiver_holds_only_its_own(outbox):
    for number in range(5):
        outbox.add(f"d{number}", session=f"s{number}")
    stop, post = asyncio.Event(), Gathering(expected=3)
    loop, _ = loop_over(outbox, WakeSignal(), post=post, slots=3)
    running = asyncio.create_task(loop.run(stop))
    await post.gathered.wait()
    counts = await outbox.store.counts()
    assert (counts[DeliveryState.DELIVERING], counts[DeliveryState.PENDING]) == (3, 2)
    stop.set()
    post.release.set()
    await running
    assert post.most == 3
    assert (await outbox.store.counts())[DeliveryState.DELIVERING] == 0


async def test_stopping_lets_what_is_in_flight_end_and_claims_no_more(outbox):
    outbox.add("d1")
    stop, post = asyncio.Event(), Gathering(expected=1)
    loop, _ = loop_over(outbox, WakeSignal(), post=post)
    running = asyncio.create_task(loop.run(stop))
    await post.gathered.wait()
    outbox.add("d2", session="s2")
    stop.set()
    post.release.set()
    await running
    counts = await outbox.store.counts()
    assert (counts[DeliveryState.DELIVERED], counts[DeliveryState.PENDING]) == (1, 1)


class Bell(WakeSignal):
    """Tells when somebody has really gone to sleep."""

    def __init__(self):
        super().__init__()
        self.asleep = asyncio.Event()

    async def wait(self, timeout_s):
        if not self._rung.is_set():
            self.asleep.set()
        await super().wait(timeout_s)
        self.asleep.clear()


async def test_a_ring_wakes_it_and_what_waited_in_the_lane_follows_at_once(outbox):
    bell, both = Bell(), asyncio.Event()

    class AnswersTheSleeper(ScriptedPost):
        async def post(self, *arguments, **options):
            await bell.asleep.wait()
            result = await super().post(*arguments, **options)
            if len(self.posted) == 2:
                both.set()
            return result

    stop = asyncio.Event()
    loop, post = loop_over(outbox, bell, post=AnswersTheSleeper([Answered(200)] * 2), idle_s=3600.0)
    running = asyncio.create_task(loop.run(stop))
    await bell.asleep.wait()
    outbox.add("d1")
    outbox.add("d2")
    bell.ring()
    await both.wait()
    stop.set()
    await running
    assert [request.headers["webhook-id"] for request in post.posted] == ["d1", "d2"]


async def test_a_ring_before_the_wait_is_not_lost():
    wake = WakeSignal()
    wake.ring()
    await wake.wait(3600)
