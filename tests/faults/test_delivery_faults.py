"""Deliveries under receivers that lie, processes that die and names that change: real rows, real sockets.

What is counted is what a receiver can count: accepted requests, their ids and their bytes.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import textwrap
from collections.abc import Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver

from actors.receiver import Receiver
from insika.clock import ManualClock
from insika.tools.egress import EgressGuard
from outbox.delivery import Deliverer
from outbox.message import DeliveryState
from outbox.recovery import recover_deliveries
from outbox.signing import verify
from outbox.webhook import Webhook
from tests.outbox_doubles import SECRET, FixedWaits, RecordedEvents, open_outbox
from tests.receivers import (
    LyingReceiver,
    answers,
    closes_before_reading,
    never_answers,
    resets_after_reading,
)

OPEN = EgressGuard(allow_http=True, allow_private=True)
SHORT_S = 0.3


@pytest.fixture
def outbox(tmp_path):
    with open_outbox(tmp_path / "insika.db", ManualClock(datetime.now(UTC))) as opened:
        yield opened


@asynccontextmanager
async def delivering(outbox, events=None, *, guard=OPEN, resolver=aiohttp.DefaultResolver):
    async with Webhook(guard, outbox.clock, resolver=resolver) as webhook:
        yield Deliverer(
            outbox.store,
            webhook,
            lambda delivery: (SECRET,),
            outbox.clock,
            events or RecordedEvents(),
            waits=FixedWaits(),
        )


async def pass_time(outbox, deliverer, *, steps=12, seconds=30):
    """All that a deployment does by itself: deliver what is due, sweep, and again, for a while."""
    for _ in range(steps):
        while await deliverer.run_once():
            pass
        await outbox.store.sweep_expired()
        outbox.clock.advance(seconds)


async def row(outbox, delivery_id="d1"):
    return await outbox.store.show(delivery_id)


# --- an answer that comes too late, or not at all, or from a proxy


@pytest.mark.parametrize(
    "behaviour",
    [never_answers, resets_after_reading, closes_before_reading, answers(502), answers(504)],
    ids=["sleeps past the timeout", "resets after reading", "closes before reading", "502", "504"],
)
async def test_a_receiver_that_may_have_accepted_is_not_asked_again(outbox, behaviour):
    events = RecordedEvents()
    async with LyingReceiver([behaviour, answers(200)]) as receiver, delivering(outbox, events) as deliverer:
        outbox.add("d1", url=receiver.url, timeout_s=SHORT_S)
        await pass_time(outbox, deliverer)
        assert len(receiver.seen) == 1
        assert (await row(outbox)).state is DeliveryState.UNCERTAIN
        assert [(kind, data["outcome"]) for kind, data in events.told()] == [("delivery_failed", "uncertain")]


async def test_the_operator_resends_it_under_the_same_id_and_bytes_with_a_mark(outbox):
    async with LyingReceiver([never_answers, answers(200)]) as receiver, delivering(outbox) as deliverer:
        outbox.add("d1", url=receiver.url, timeout_s=SHORT_S)
        await pass_time(outbox, deliverer)
        await outbox.store.resend("d1")
        await pass_time(outbox, deliverer)
        first, second = receiver.seen
        assert first.header("webhook-id") == second.header("webhook-id") == "d1"
        assert first.body == second.body
        assert first.header("insika-possible-duplicate") is None
        assert second.header("insika-possible-duplicate") == "true"
        assert (await row(outbox)).state is DeliveryState.DELIVERED


@pytest.mark.parametrize("behaviour", [never_answers, resets_after_reading, answers(502)])
async def test_at_least_once_is_what_the_channel_asked_for_and_ends(outbox, behaviour):
    async with LyingReceiver([behaviour]) as receiver, delivering(outbox) as deliverer:
        outbox.add("d1", url=receiver.url, timeout_s=SHORT_S, guarantee="at_least_once")
        await pass_time(outbox, deliverer)
        assert [seen.header("insika-possible-duplicate") for seen in receiver.seen] == [None, "true", "true"]
        assert {seen.header("webhook-id") for seen in receiver.seen} == {"d1"}
        assert (await row(outbox)).state is DeliveryState.UNCERTAIN


# --- refusals


@pytest.mark.parametrize(
    "refusal",
    [answers(500), answers(503), answers(429), answers(408), answers(503, "Retry-After: rubbish")],
)
async def test_a_refusal_is_tried_again_with_the_same_id_and_bytes_until_it_is_taken(outbox, refusal):
    async with LyingReceiver([refusal, refusal, answers(200)]) as receiver, delivering(outbox) as deliverer:
        outbox.add("d1", url=receiver.url)
        await pass_time(outbox, deliverer)
        assert [seen.header("insika-attempt") for seen in receiver.seen] == ["1", "2", "3"]
        assert {seen.header("webhook-id") for seen in receiver.seen} == {"d1"}
        assert len({seen.body for seen in receiver.seen}) == 1
        assert (await row(outbox)).state is DeliveryState.DELIVERED


async def test_a_receiver_that_always_refuses_is_given_up(outbox):
    async with LyingReceiver([answers(503)]) as receiver, delivering(outbox) as deliverer:
        outbox.add("d1", url=receiver.url)
        await pass_time(outbox, deliverer)
        assert len(receiver.seen) == 3
        assert (await row(outbox)).state is DeliveryState.FAILED


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [("20", 20.0), ("0", 0.0), ("date", 20.0), ("-7", 1.0), ("tomorrow", 1.0)],
)
async def test_retry_after_is_when_it_is_due_again(outbox, header, wait_s):
    if header == "date":
        outbox.clock.jump(-outbox.clock.now().microsecond / 1e6)
        at = datetime.fromtimestamp(outbox.clock.now().timestamp() + wait_s, UTC)
        header = at.strftime("%a, %d %b %Y %H:%M:%S GMT")
    async with LyingReceiver([answers(503, f"Retry-After: {header}")]) as receiver, delivering(outbox) as deliverer:
        outbox.add("d1", url=receiver.url)
        await deliverer.run_once()
    assert ((await row(outbox)).due_at - outbox.clock.now()).total_seconds() == wait_s


async def test_a_receiver_that_is_down_gets_it_when_it_is_back(outbox):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with delivering(outbox) as deliverer:
        outbox.add("d1", url=f"http://127.0.0.1:{port}/")
        await deliverer.run_once()
        assert (await row(outbox)).state is DeliveryState.PENDING
        outbox.clock.advance(1)
        async with Receiver([SECRET], port=port) as receiver:
            await deliverer.run_once()
            assert receiver.url
    assert (await row(outbox)).state is DeliveryState.DELIVERED


async def test_each_attempt_is_signed_at_its_own_claim(outbox):
    async with LyingReceiver([answers(503), answers(200)]) as receiver, delivering(outbox) as deliverer:
        outbox.add("d1", url=receiver.url)
        await deliverer.run_once()
        outbox.clock.advance(60)
        await deliverer.run_once()
    first, second = receiver.seen
    assert int(second.header("webhook-timestamp")) - int(first.header("webhook-timestamp")) == 60
    for seen in receiver.seen:
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        verify([SECRET], {name: seen.header(name) for name in names}, seen.body)


async def test_the_order_of_a_lane_survives_refusals(outbox):
    async with (
        LyingReceiver([answers(200), answers(503), answers(503), answers(200)]) as receiver,
        delivering(outbox) as deliverer,
    ):
        for name in ("d1", "d2", "d3", "d4"):
            outbox.add(name, url=receiver.url, payload={"content": name})
        await pass_time(outbox, deliverer, seconds=1)
    got = [seen.header("webhook-id") for seen in receiver.seen]
    assert got == ["d1", "d2", "d2", "d2", "d3", "d4"]


# --- a process that dies between the POST and writing it down

DIES = """
import asyncio, os, signal, sys
from pathlib import Path
import aiohttp
from insika.clock import SystemClock
from insika.crash_points import CrashPoint
from insika.events import NoEvents
from insika.storage.sqlite.database import Database
from insika.tools.egress import EgressGuard
from outbox.delivery import Deliverer
from outbox.sqlite_store import SqliteOutboxStore
from outbox.webhook import Webhook

def crash(point):
    if point is CrashPoint(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    clock = SystemClock()
    store = SqliteOutboxStore(Database.open(Path(sys.argv[1]), clock.now))
    async with Webhook(EgressGuard(allow_http=True, allow_private=True), clock) as webhook:
        deliverer = Deliverer(store, webhook, lambda delivery: (sys.argv[3],), clock, NoEvents(), crash=crash)
        await deliverer.run_once()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("point", "posts", "ends"),
    [
        ("delivery_claimed", 0, DeliveryState.UNCERTAIN),
        ("delivery_sent", 1, DeliveryState.UNCERTAIN),
        ("delivery_settled", 1, DeliveryState.DELIVERED),
    ],
)
async def test_a_process_killed_around_its_post_leaves_one_post_and_a_row_that_says_so(outbox, point, posts, ends):
    received = []
    events = RecordedEvents()
    async with Receiver([SECRET], on_received=received.append) as receiver, delivering(outbox, events) as deliverer:
        outbox.add("d1", url=receiver.url)
        dying = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(DIES),
            str(outbox.database.path),
            point,
            SECRET,
            cwd=Path(__file__).parents[2],
        )
        assert await dying.wait() == -signal.SIGKILL
        outbox.clock.advance(120)
        recovered = await recover_deliveries(outbox.store, deliverer, events, outbox.clock)
        await pass_time(outbox, deliverer)
        assert len(received) == posts
        assert recovered.sent == 0
        assert (await row(outbox)).state is ends
        told = [data["outcome"] for kind, data in events.told() if kind == "delivery_failed"]
        assert told == (["uncertain"] if ends is DeliveryState.UNCERTAIN else [])


# --- a name that is checked and then leads elsewhere


class ChangingResolver(AbstractResolver):
    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            {"hostname": host, "host": a, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
            for a in addresses
        ]

    async def close(self):
        return None


async def test_a_name_that_turns_to_the_metadata_address_is_refused_when_it_turns(outbox):
    resolver = ChangingResolver(["127.0.0.1"], ["169.254.169.254"])
    async with (
        LyingReceiver([answers(200)]) as receiver,
        delivering(outbox, resolver=lambda: resolver) as deliverer,
    ):
        for name in ("d1", "d2"):
            outbox.add(name, url=f"http://hooks.example:{receiver.port}/")
        await pass_time(outbox, deliverer)
    assert [seen.header("webhook-id") for seen in receiver.seen] == ["d1"]
    assert (await row(outbox, "d1")).state is DeliveryState.DELIVERED
    refused = await row(outbox, "d2")
    assert refused.state is DeliveryState.FAILED
    assert "169.254.169.254" in refused.reason
    assert refused.attempts == 1


async def test_a_private_address_beside_a_public_one_is_refused(outbox):
    resolver = ChangingResolver(["93.184.216.34", "127.0.0.1"])
    guard = EgressGuard(allow_http=True)
    async with (
        LyingReceiver([answers(200)]) as receiver,
        delivering(outbox, guard=guard, resolver=lambda: resolver) as deliverer,
    ):
        outbox.add("d1", url=f"http://hooks.example:{receiver.port}/")
        await pass_time(outbox, deliverer)
    assert receiver.seen == []
    assert (await row(outbox)).state is DeliveryState.FAILED


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"]
)
async def test_a_host_that_hides_loopback_fails_with_its_reason_and_no_connection(outbox, host):
    guard = EgressGuard(allow_http=True)
    async with LyingReceiver([answers(200)]) as receiver, delivering(outbox, guard=guard) as deliverer:
        outbox.add("d1", url=f"http://{host}:{receiver.port}/")
        await pass_time(outbox, deliverer)
    assert receiver.seen == []
    refused = await row(outbox)
    assert refused.state is DeliveryState.FAILED
    assert "egress guard" in refused.reason


async def test_a_redirect_to_loopback_is_a_failure_and_not_a_request(outbox):
    async with (
        LyingReceiver([answers(200)]) as inside,
        LyingReceiver([answers(307, f"Location: {inside.url}")]) as receiver,
        delivering(outbox) as deliverer,
    ):
        outbox.add("d1", url=receiver.url)
        await pass_time(outbox, deliverer)
    assert (len(receiver.seen), inside.seen) == (1, [])
    assert (await row(outbox)).state is DeliveryState.FAILED
