"""Fault 18: workers that stand still past their leases, each at another place of a turn, while another takes over.

What they do after that comes to nothing: no write, no request, no tool, no row in the outbox. What stays possible is
the one call that was written as begun, under the lease, before the pause.
"""

from __future__ import annotations

import signal

from insika.crash_points import CrashPoint
from tests.faults.cluster.member import until
from tests.faults.shop import job

LEASE_S = 4
"""Long enough for all of them to come to their places before the first one's has run out."""
POINTS = (
    CrashPoint.TURN_STARTED,  # before a request
    CrashPoint.CALL_STARTED,  # before a tool
    CrashPoint.CALL_RAN,  # after it
    CrashPoint.BATCH_RAN,  # before the boundary
    CrashPoint.ANSWER_READY,
)
"""Where a worker stops itself, in whichever session it has taken."""
AT_POINTS = [job(f"point-{place}", f"point-{place}", f"P{place}: charge letter") for place in range(len(POINTS))]
IN_A_REQUEST = job("request", "request-1", "R: charge ~ model")
IN_A_TOOL = job("tool", "tool-1", "U: letter@tool | charge")
IN_A_THREAD = job("thread", "thread-1", "T: charge@tool letter | charge")
IN_THE_MIDDLE = [IN_A_REQUEST, IN_A_TOOL, IN_A_THREAD]
"""What one more worker is in the middle of, when the test stops it."""
LATE = job("late", "late-1", "L: charge | letter")
JOBS = [*IN_THE_MIDDLE, *AT_POINTS]
OWNED = ("mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")


async def all_stand_still(cluster):
    """No worker has room for more than what it stands still in."""
    busy = await cluster.start("worker", "busy", composed={}, INSIKA_SLOTS=len(IN_THE_MIDDLE)).ready()
    await cluster.publish(*IN_THE_MIDDLE)
    await until(lambda: all(middle(cluster)), "the middle of three turns", lambda: middle(cluster))
    stopping = [
        cluster.start("worker", point, composed={"point": point, "by": "SIGSTOP"}, INSIKA_SLOTS=1) for point in POINTS
    ]
    for worker in stopping:
        await worker.ready()
    await cluster.publish(*AT_POINTS)
    for worker in stopping:
        await worker.stands_still()
    busy.signal(signal.SIGSTOP)
    await busy.stands_still()
    return [busy, *stopping]


def middle(cluster):
    asked = [entry for entry in cluster.diary("request") if entry["text"] == IN_A_REQUEST["text"]]
    return len(asked) == 2, cluster.diary(order="U.0.0"), cluster.diary(order="T.0.0")


def written(cluster):
    """All that an owner can have written, but for the lease itself."""
    tables = {table: cluster.tables.of(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in OWNED}
    columns = "id, due_at, epoch, mail_seq, log_seq, lane_seq, waiting, open_calls, turn_id, turn_key, deaths"
    return tables | {"sessions": cluster.tables.of(f"SELECT {columns} FROM sessions ORDER BY id")}


def lost(workers):
    return [len(worker.logged("session lost")) for worker in workers]


async def test_what_a_worker_does_after_a_pause_past_its_lease_comes_to_nothing(cluster):
    cluster.variables["INSIKA_LEASE_S"] = str(LEASE_S)
    await cluster.run("ingress", "outbox")
    stale = await all_stand_still(cluster)
    assert [len(cluster.turns(each["session"])) for each in JOBS] == [1] * len(JOBS)
    assert {turn["attempt"] for each in JOBS for turn in cluster.turns(each["session"])} == {1}
    cluster.gates.open("tool")
    cluster.gates.open("model")
    await cluster.run("worker")
    await cluster.settles(len(JOBS))
    assert {turn["attempt"] for each in JOBS for turn in cluster.turns(each["session"])} == {2}
    stands, asked, ran = written(cluster), cluster.diary("request"), cluster.diary("tool")
    for worker in stale:
        worker.goes_on()
    expected = [len(IN_THE_MIDDLE), *(1 for _ in POINTS)]
    await until(lambda: lost(stale) == expected, "each to know what it lost", lambda: lost(stale))
    assert written(cluster) == stands
    assert cluster.diary("request") == asked
    # Written as begun under the lease, and stopped before it ran: it may reach the world later, once.
    begun = stale[1 + POINTS.index(CrashPoint.CALL_STARTED)]
    assert [run["pid"] for run in cluster.diary("tool")[len(ran) :]] == [begun.pid]
    await cluster.publish(LATE)
    await cluster.settles(len(JOBS) + 1)
    assert all(worker.runs for worker in stale)
    evidence = cluster.judge([*JOBS, LATE], gone=len(JOBS))
    assert {row["state"] for row in evidence.outbox} == {"delivered"}
    assert len(cluster.received) == len(JOBS) + 1
