"""Fault 20: a conversation grows by what was said, and by nothing else: not by resumed turns, repeats or retries."""

from __future__ import annotations

import signal

from insika.crash_points import CrashPoint
from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.member import until
from tests.faults.shop import Plan, job

POINTS = (
    CrashPoint.MODEL_ANSWERED,
    CrashPoint.STEP_APPENDED,
    CrashPoint.CALL_RECORDED,
    CrashPoint.BOUNDARY_CROSSED,
    CrashPoint.ANSWER_READY,
)
"""Where the first turns of as many sessions lose their worker."""
TURNS = 4
REPEATED = 3


def jobs_of(session):
    texts = [f"{session}{number}: charge letter | look_up weigh letter" for number in range(TURNS)]
    jobs = [job(session, f"{session}-{number}", text) for number, text in enumerate(texts)]
    return [{**each, "queue_mode": "followup"} for each in jobs]


def messages_of(text):
    """The person's, each step's and its results, the answer."""
    return 1 + sum(1 + len(calls) for calls in Plan.read(text).steps) + 1


def messages_by_turn(cluster):
    counted = "SELECT turn_id, count(*) AS n FROM messages GROUP BY turn_id"
    return {row["turn_id"]: row["n"] for row in cluster.tables.of(counted)}


async def test_messages_are_written_once(cluster):
    cluster.variables |= SHORT_LEASE
    await cluster.run("ingress", "outbox")
    dying = [cluster.start("worker", composed={"point": point}, INSIKA_SLOTS=1) for point in POINTS]
    for worker in dying:
        await worker.ready()
    jobs = [each for place in range(len(POINTS)) for each in jobs_of(f"s{place}")]
    await cluster.publish(*jobs)
    assert [await worker.ends() for worker in dying] == [-signal.SIGKILL] * len(POINTS)
    await cluster.run("worker")
    await cluster.settles(len(jobs))
    for _ in range(REPEATED):
        await cluster.publish(*jobs)
    await until(lambda: not cluster.queues.depth("insika.turns").total, "the repeats to be dealt with")
    evidence = cluster.judge(jobs, gone=len(POINTS))
    said = {turn["id"]: mail["text"] for mail in evidence.mailbox for turn in [evidence.turn_of(mail)]}
    assert messages_by_turn(cluster) == {turn: messages_of(text) for turn, text in said.items()}
    assert sum(turn["attempt"] > 1 for turn in evidence.turns) >= len(POINTS)


async def test_a_turn_that_is_run_again_by_hand_is_written_as_one_more(cluster):
    await cluster.run("ingress", "worker", "outbox")
    await cluster.publish(job("ana", "ana-1", "A: fail@mended"))
    await until(lambda: [turn["state"] for turn in cluster.turns("ana")] == ["failed"], "the turn to fail")
    cluster.gates.open("mended")
    for _ in range(REPEATED):
        assert cluster.insika("sessions", "retry", "ana").returncode == 0
    await cluster.settles(2)
    turns = cluster.turns("ana")
    assert [turn["state"] for turn in turns] == ["failed", "completed"]
    assert messages_by_turn(cluster) == {turns[0]["id"]: 1, turns[1]["id"]: 2}
    assert len(cluster.received) == 1
