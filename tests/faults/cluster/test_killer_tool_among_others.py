"""Fault 26: a tool that ends its process, with twenty other turns in flight there each time.

At the third death its turn fails where all can see it, and no other turn does.
"""

from __future__ import annotations

import json

from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.member import until
from tests.faults.shop import job

EXIT = 137
KILLER = job("killer", "killer-1", "K: letter | bomb@fuse")
NEXT = job("killer", "killer-2", "K2: charge", queue_mode="followup")
INNOCENT = [job(f"s{number}", f"s{number}-1", f"I{number}: look_up@hold | charge letter") for number in range(20)]
LATER = [job(f"t{number}", f"t{number}-1", f"L{number}: look_up@later | charge") for number in range(5)]
JOBS = [*INNOCENT[:10], KILLER, *INNOCENT[10:], NEXT]


async def dies_with_all(cluster, worker, times):
    """Once every turn is in a tool of this worker."""
    await cluster.begun("look_up", len(INNOCENT), pid=worker.pid)
    await cluster.begun("bomb", times)
    cluster.gates.open("fuse")
    assert await worker.ends() == EXIT
    cluster.gates.close("fuse")


async def test_at_the_third_death_it_fails_and_none_of_the_others_does(cluster):
    cluster.variables |= SHORT_LEASE
    _, _, first = await cluster.run("ingress", "outbox", "worker")
    await cluster.publish(*JOBS)
    await dies_with_all(cluster, first, 1)
    (second,) = await cluster.run("worker")
    await dies_with_all(cluster, second, 2)
    # Each of them is a suspect now. They run one at a time, beside those that are above suspicion.
    (third,) = await cluster.run("worker")
    await cluster.publish(*LATER)
    await cluster.begun("look_up", len(LATER), pid=third.pid)
    cluster.gates.open("hold")
    cluster.gates.open("fuse")
    assert await third.ends() == EXIT
    cluster.gates.open("later")
    await cluster.run("worker")
    await cluster.settles(len(JOBS) + len(LATER))
    evidence = cluster.judge([*JOBS, *LATER], gone=3, failures=["killer-1"])
    assert json.loads(evidence.of_turn("killer-1")["error"])["type"] == "worker_lost"
    assert [run["pid"] for run in cluster.diary(tool="bomb")] == [first.pid, second.pid, third.pid]
    failed = await until_told(cluster)
    assert [(event.session, event.data["error"]) for event in failed] == [("killer", "worker_lost")]


async def until_told(cluster):
    """What was told of turns that failed. It goes out beside the turn's end, which does not wait for it."""
    await until(lambda: any(member.logged("turn_failed") for member in cluster.members), "the failure to be told")
    return await cluster.events("turn_failed")
