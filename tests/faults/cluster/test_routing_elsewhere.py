"""Turns that are sorted and handed on by one worker of a cluster, and go on in another one after it was killed."""

from __future__ import annotations

import signal

import yaml

from insika.crash_points import CrashPoint
from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.shop import ONE_AT_A_TIME, job

POINTS = (CrashPoint.TURN_STARTED, CrashPoint.ROUTE_FOUND, CrashPoint.TURN_ROUTED, CrashPoint.TURN_REDIRECTED)
FRONT = "front"
ROUTES = {"order": {"description": "asks about an order", "delegate": ONE_AT_A_TIME}, "default": "order"}
"""The shop's model names no route, so every turn takes the default one."""
CLASSIFIED = "SELECT state FROM model_calls WHERE turn_id = %s AND purpose = 'classify' AND agent = %s ORDER BY attempt"


async def test_workers_may_die_at_every_point_of_routing(cluster):
    profile = cluster.profile(FRONT, routes=ROUTES)
    (cluster.folder / "agents" / f"{FRONT}.yaml").write_text(yaml.safe_dump(profile))
    cluster.variables |= SHORT_LEASE
    await cluster.run("ingress", "outbox")
    doomed = [cluster.start("worker", point, composed={"point": point}, INSIKA_SLOTS=1) for point in POINTS]
    for worker in doomed:
        await worker.ready()
    jobs = [job(point, "A", "A: charge | look_up", FRONT) for point in POINTS]
    await cluster.publish(*jobs)
    assert [await worker.ends() for worker in doomed] == [-signal.SIGKILL] * len(POINTS)
    await cluster.run("worker")
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs, gone=len(jobs), counted=len(jobs))
    assert {(turn["state"], turn["agent"], turn["depth"]) for turn in evidence.turns} == {
        ("completed", ONE_AT_A_TIME, 1)
    }
    assert {turn["routes"] for turn in evidence.turns} == {'["order"]'}
    # Two workers died before the route was written; which session each of them had is nobody's choice.
    classified = [[row["state"] for row in cluster.tables.of(CLASSIFIED, turn["id"], FRONT)] for turn in evidence.turns]
    assert sorted(classified) == [["estimated", "measured"]] * 2 + [["measured"]] * 2
    assert len(cluster.diary(tool="charge")) == len(jobs)
    assert {received.payload["agent"] for received in cluster.received} == {ONE_AT_A_TIME}
    assert {received.payload["route"] for received in cluster.received} == {"order"}
