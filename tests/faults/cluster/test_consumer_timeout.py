"""Fault 21: a broker that closes the channel of whoever holds a message too long. Nothing here holds one.

A turn, a debounce, the wait for a person and a delivery's retry all last longer than it allows; to see that it does
close channels, somebody else holds a message meanwhile.
"""

from __future__ import annotations

import asyncio
import re

import pika
import pytest

from actors.receiver import Answer, Receiver
from insika.storage.rows import ApprovalDecision
from tests.amqp_wire import channel
from tests.faults.cluster.conftest import CONSUMER_TIMEOUT_MS
from tests.faults.cluster.operators import operator
from tests.faults.shop import SECRET, job

LOOKS_MS = 300
"""How often the broker looks at its channels; a minute, unless it is told."""
LONGER_S = 2 * CONSUMER_TIMEOUT_MS / 1000
LONG = job("long", "long-1", "L: charge@held | letter")
WAITS = [job("waits", f"waits-{number}", f"W{number}", "slow") for number in (1, 2)]
RETRIED = job("retried", "retried-1", "R")
ASKS = job("asks", "asks-1", "A: charge", "asks")
JOBS = [LONG, *WAITS, RETRIED, ASKS]


def holds_a_message(url):
    """Until its channel is closed for that. What the broker says."""
    with channel(url) as holding:
        holding.queue_declare("held")
        holding.basic_publish("", "held", b"")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            for _ in holding.consume("held"):
                pass  # and it is never settled
        return closed.value.reply_text


async def test_nothing_is_held_for_as_long_as_work_takes(own_cluster):
    cluster, received = own_cluster, []
    cluster.services.console.evaluate(f"application:set_env(rabbit, channel_tick_interval, {LOOKS_MS})")
    answer = Answer(503, times=1, retry_after_s=round(LONGER_S))
    async with Receiver([SECRET], answer=answer, on_received=received.append) as receiver:
        cluster.url, cluster.received = receiver.url, received
        limits = {"slow": {"queue_mode": "collect", "debounce_ms": int(LONGER_S * 1000)}, "asks": {}}
        cluster.configure(limits, asks={"asks": ["charge"]})
        members = await cluster.run("ingress", "worker", "outbox", "clock")
        await cluster.publish(*JOBS)
        await cluster.begun("charge")
        connected = []
        for _ in range(2):
            said = await asyncio.to_thread(holds_a_message, cluster.services.amqp)
            assert re.search("delivery acknowledgement.*timed out", said)
            connected.append(cluster.queues.connections())
        cluster.gates.open("held")
        async with operator(cluster.services) as somebody:
            (asked,) = await somebody.store.approvals()
            assert (await somebody.control.decide(asked.approval.id, ApprovalDecision.APPROVED, by="ana")).won
        await cluster.settles(len(JOBS))
        cluster.judge(JOBS, counted=1)
    assert len(connected[0]) > len(members)
    assert connected == [cluster.queues.connections()] * 2
    assert not any(member.logged("connection to RabbitMQ lost") for member in members)
    owned = {row["name"]: row["epoch"] for row in cluster.tables.of("SELECT name, epoch FROM sessions")}
    assert owned | {"waits": 1} == {"long": 1, "waits": 1, "retried": 1, "asks": 2}, "each once, and again once decided"
    attempts = {turn["attempt"] for name in ("long", "waits", "retried") for turn in cluster.turns(name)}
    assert attempts == {1}
    retried = cluster.turns("retried")[0]["id"]
    assert cluster.tables.value("SELECT attempts FROM outbox WHERE turn_id = %s", retried) == 2
    verdicts = {event.data["verdict"] for event in await cluster.events("turn_accepted")}
    assert verdicts == {"accepted", "merged"}
