"""Fault 22: tools that keep a whole process busy. Its connections stay, its leases are kept or cleanly lost, and
nothing runs twice."""

from __future__ import annotations

import signal
from collections import Counter

from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.member import until
from tests.faults.shop import job

TOOLS = 40
BURNS_S = 0.2
HEARTBEAT_S = 2
"""A connection that says nothing for twice as long is closed by the broker. All tools together take longer."""
LEASE_S = 6


async def test_forty_at_once_cost_no_connection_and_run_once(cluster):
    cluster.variables["INSIKA_LEASE_S"] = str(LEASE_S)
    url = f"{cluster.services.amqp}?heartbeat={HEARTBEAT_S}"
    await cluster.run("ingress", "outbox")
    busy = await cluster.start("worker", INSIKA_AMQP_URL=url).ready()
    jobs = [
        job(f"s{number}", f"s{number}-1", f"B{number}: burn={BURNS_S}s{number} | charge") for number in range(TOOLS)
    ]
    before = cluster.queues.connections()
    await cluster.publish(*jobs)
    runs = await cluster.begun("burn", TOOLS)
    assert {run["pid"] for run in runs} == {busy.pid}
    await cluster.run("worker")  # to take over whatever the busy one cannot keep
    await cluster.settles(TOOLS)
    evidence = cluster.judge(jobs, gone=TOOLS)
    assert before <= cluster.queues.connections()
    assert not busy.logged("connection to RabbitMQ lost")
    assert set(Counter(run["order"] for run in cluster.diary("tool")).values()) == {1}
    assert {turn["state"] for turn in evidence.turns} == {"completed"}


async def test_a_tool_that_lets_no_other_thread_run_loses_its_session_and_runs_once(cluster):
    cluster.variables |= SHORT_LEASE
    held_s = 3 * float(SHORT_LEASE["INSIKA_LEASE_S"])
    jobs = [job("ana", "ana-1", f"A: seize={held_s}s | charge"), job("ben", "ben-1", "B: letter@held | charge")]
    _, _, seized, heir = await cluster.run("ingress", "outbox", "worker", "worker")
    heir.signal(signal.SIGSTOP)  # it is to take over, and nothing else
    await cluster.publish(jobs[1])
    await cluster.begun("letter")
    await cluster.publish(jobs[0])
    await cluster.begun("seize")
    heir.signal(signal.SIGCONT)
    await until(lambda: all(cluster.session(each["session"])["epoch"] > 1 for each in jobs), "the heir to take both")
    cluster.gates.open("held")
    await cluster.settles(len(jobs))
    await until(lambda: len(seized.logged("session lost")) == 2, "the other to know", lambda: seized.log[-500:])
    evidence = cluster.judge(jobs, gone=1)
    assert {row["state"] for row in evidence.tool_calls if row["name"] in ("seize", "letter")} == {"unknown"}
    assert {run["pid"] for run in cluster.diary(tool="charge")} == {heir.pid}
    assert seized.runs
