"""Fault 32: a deploy. Every process is told to end with everything under way, and killed at the end of the drain.

What they leave goes on in their successors, and what was being delivered arrived once or is uncertain.
"""

from __future__ import annotations

import json
import signal

import psycopg

from actors.receiver import Received
from tests.faults.cluster.member import until
from tests.faults.shop import job
from tests.faults.verdict import uncertain
from tests.receivers import LyingReceiver, answers

DRAIN_S = 1
LEASE_S = 4
SENDING = job("sends", "sends-1", "S: letter")
IN_A_TOOL = job("tool", "tool-1", "U: letter@held charge | charge")
IN_A_THREAD = job("thread", "thread-1", "T: charge@held letter")
COLLECTING = job("collects", "collects-1", "C: charge", "slow")
IN_THE_WAY = job("sends", "sends-2", "V: charge", queue_mode="followup")
"""Its session is locked, so the ingress is busy with it, and has fetched ahead what follows."""
PREFETCHED = [job(f"behind-{number}", f"behind-{number}", f"B{number}: charge") for number in range(4)]
JOBS = [SENDING, IN_A_TOOL, IN_A_THREAD, COLLECTING, IN_THE_WAY, *PREFETCHED]


async def answers_late(connection):
    """Reads the delivery, and never says what became of it."""
    await connection.read_request()
    await connection.until_the_other_side_goes()


def accepted(seen):
    payload = json.loads(seen.body)
    return Received(seen.header("webhook-id"), int(seen.header("insika-attempt")), False, payload, 1, verified=False)


async def everything_under_way(cluster, receiver):
    await cluster.publish(SENDING)
    await until(lambda: receiver.seen and receiver.seen[0].body, "the delivery to be under way")
    await cluster.publish(IN_A_TOOL, IN_A_THREAD)
    await cluster.begun("letter", order="U.0.0")
    await cluster.begun("charge", order="T.0.0")
    await cluster.publish(COLLECTING)
    await until(lambda: cluster.turns("collects"), "the debounce to begin")


async def fetched_ahead(cluster):
    behind = [IN_THE_WAY, *PREFETCHED]
    await cluster.publish(*behind)
    await until(lambda: cluster.queues.depth("insika.turns").unsettled == len(behind), "the ingress to hold them")


async def handed_over(cluster):
    """At the end of the drain: the turn that waits for an async tool; and its answer has been given up on."""
    await until(lambda: cluster.session("tool")["lease_id"] is None, "the turn to be handed over")
    delivering = "SELECT 1 FROM outbox WHERE state = 'delivering'"
    await until(lambda: not cluster.tables.of(delivering), "the delivery to be given up on")


async def test_what_a_deploy_leaves_goes_on(cluster):
    async with LyingReceiver([answers_late, answers(200)]) as receiver:
        cluster.url = receiver.url
        cluster.configure({"slow": {"queue_mode": "collect", "debounce_ms": 8_000}}, order_wait_s=1)
        cluster.variables |= {"INSIKA_DRAIN_S": str(DRAIN_S), "INSIKA_LEASE_S": str(LEASE_S)}
        leaving = await cluster.run("ingress", "worker", "outbox", "clock")
        successors = [cluster.start(role) for role in ("worker", "outbox")]  # they take their time to start
        for each in successors:
            await each.ready()
            each.signal(signal.SIGSTOP)
        await everything_under_way(cluster, receiver)
        (cut,) = [row["id"] for row in cluster.tables.of("SELECT id FROM outbox WHERE state = 'delivering'")]
        with psycopg.connect(cluster.services.database) as blocking:
            blocking.execute("SELECT 1 FROM sessions WHERE name = %s FOR UPDATE", (IN_THE_WAY["session"],))
            await fetched_ahead(cluster)
            for each in leaving:
                each.signal(signal.SIGTERM)
            await handed_over(cluster)
            for each in leaving:
                each.signal(signal.SIGKILL)
                await each.ends()
        # A call that is still in a thread might run beside whoever took its session: that one waits for its lease.
        assert cluster.session("thread")["lease_id"] is not None
        assert [turn["state"] for turn in cluster.turns("collects")] == ["queued"]
        cluster.gates.open("held")
        for each in successors:
            each.signal(signal.SIGCONT)
        await cluster.run("ingress")
        await cluster.settles(len(JOBS))
        cluster.received = [accepted(seen) for seen in receiver.seen if seen.body]
    evidence = cluster.judge(JOBS, gone=3)
    assert uncertain(evidence) == {cut}
    unknown = {row["arguments"] for row in evidence.tool_calls if row["state"] == "unknown"}
    assert {json.loads(arguments)["order"] for arguments in unknown} == {"T.0.0", "U.0.0"}
