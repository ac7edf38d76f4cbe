"""Fault 19: a worker dies in the middle of a turn, or right after it. The session goes on elsewhere, and the answer
arrives."""

from __future__ import annotations

import signal

import pytest

from insika.crash_points import CrashPoint
from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.member import until
from tests.faults.shop import job

LEASE_US = int(float(SHORT_LEASE["INSIKA_LEASE_S"]) * 1_000_000)
PROMISED_US = LEASE_US + 2_000_000
BUSY_US = 15_000_000
"""What a machine that is busy with other tests may add. What it took on this one is printed (pytest -rP)."""
KILLED = job("ana", "ana-1", "A: charge | look_up@held letter | charge")
NEXT = job("ana", "ana-2", "B: charge", queue_mode="followup")


async def test_a_session_goes_on_where_its_worker_was_killed(cluster):
    cluster.variables |= SHORT_LEASE
    _, _, *workers = await cluster.run("ingress", "outbox", "worker", "worker")
    await cluster.publish(KILLED, NEXT)
    (run,) = await cluster.begun("look_up")
    (doomed,) = [worker for worker in workers if worker.pid == run["pid"]]
    await doomed.dies()
    killed_at, left = cluster.tables.now(), cluster.session("ana")
    taken = await until(lambda: taken_again(cluster, left), "the session to be taken again", every_s=0.01)
    taken_at = taken["lease_until"] - LEASE_US
    print(f"taken over {(taken_at - killed_at) / 1e6:.2f} s after the kill, with a lease of {LEASE_US / 1e6:g} s")
    assert left["lease_until"] < taken_at <= killed_at + PROMISED_US + BUSY_US
    cluster.gates.open("held")
    await cluster.settles(2)
    cluster.judge([KILLED, NEXT], gone=1)
    assert [turn["attempt"] > 1 for turn in cluster.turns("ana")] == [True, False]
    assert [received.payload["content"] for received in cluster.received] == ["Done: A", "Done: B"]


def taken_again(cluster, left):
    """The session as its next owner has it, before it was renewed."""
    session = cluster.session("ana")
    return session if session["epoch"] > left["epoch"] else None


@pytest.mark.parametrize("alone", [True, False], ids=["nothing-waits", "another-waits"])
async def test_an_answer_arrives_though_its_worker_died_before_it_told_anybody(cluster, alone):
    cluster.variables |= SHORT_LEASE
    doomed = cluster.start("worker", composed={"point": CrashPoint.COMMITTED})
    await cluster.run("ingress", "outbox")
    await doomed.ready()
    jobs = [KILLED] if alone else [KILLED, NEXT]
    await cluster.publish(*jobs)
    await cluster.begun("look_up")
    await until(lambda: cluster.tables.value("SELECT count(*) FROM mailbox") == len(jobs), "all to be accepted")
    cluster.gates.open("held")
    assert await doomed.ends() == -signal.SIGKILL
    await until(lambda: cluster.received, "the answer")
    await cluster.run("worker")
    await cluster.settles(len(jobs))
    cluster.judge(jobs, gone=1)
    assert [turn["attempt"] for turn in cluster.turns("ana")] == [1] * len(jobs)
