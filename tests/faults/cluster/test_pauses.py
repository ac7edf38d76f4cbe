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
HOLDS_ON_S = 60
"""Of an heir that stands still, too: nobody takes over from it."""
STARTS = (CrashPoint.TURN_STARTED, CrashPoint.CALL_STARTED)
"""Before a request and before a tool: where a worker stops itself, in whichever session it has taken."""
WRITES = (CrashPoint.MODEL_ANSWERED, CrashPoint.CALL_RAN, CrashPoint.BATCH_RAN, CrashPoint.ANSWER_READY)
"""Before a step, a result, a boundary and an answer with its row of the outbox are written."""


def at_points(points):
    return [job(f"point-{place}", f"point-{place}", f"P{place}: charge letter") for place in range(len(points))]


IN_A_REQUEST = job("request", "request-1", "R: charge ~ model")
IN_A_TOOL = job("tool", "tool-1", "U: letter@tool | charge")
IN_A_THREAD = job("thread", "thread-1", "T: charge@tool letter | charge")
IN_THE_MIDDLE = [IN_A_REQUEST, IN_A_TOOL, IN_A_THREAD]
"""What one more worker is in the middle of, when the test stops it."""
LATE = job("late", "late-1", "L: charge | letter")
JOBS = [*IN_THE_MIDDLE, *at_points(STARTS)]
OWNED = ("mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")


async def all_stand_still(cluster):
    """No worker has room for more than what it stands still in."""
    busy = await cluster.start("worker", "busy", composed={}, INSIKA_SLOTS=len(IN_THE_MIDDLE)).ready()
    await cluster.publish(*IN_THE_MIDDLE)
    await until(lambda: all(middle(cluster)), "the middle of three turns", lambda: middle(cluster))
    stopped = await stand_still(cluster, STARTS)
    busy.signal(signal.SIGSTOP)
    await busy.stands_still()
    return [busy, *stopped]


async def stand_still(cluster, points):
    """A worker at each, in the middle of a turn."""
    options = [{"point": point, "by": "SIGSTOP"} for point in points]
    stopping = [cluster.start("worker", each["point"], composed=each, INSIKA_SLOTS=1) for each in options]
    for worker in stopping:
        await worker.ready()
    await cluster.publish(*at_points(points))
    for worker in stopping:
        await worker.stands_still()
    return stopping


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
    expected = [len(IN_THE_MIDDLE), *(1 for _ in STARTS)]
    await until(lambda: lost(stale) == expected, "each to know what it lost", lambda: lost(stale))
    assert written(cluster) == stands
    assert cluster.diary("request") == asked
    # Written as begun under the lease, and stopped before it ran: it may reach the world later, once.
    begun = stale[1 + STARTS.index(CrashPoint.CALL_STARTED)]
    assert [run["pid"] for run in cluster.diary("tool")[len(ran) :]] == [begun.pid]
    await cluster.publish(LATE)
    await cluster.settles(len(JOBS) + 1)
    assert all(worker.runs for worker in stale)
    evidence = cluster.judge([*JOBS, LATE], gone=len(JOBS))
    assert {row["state"] for row in evidence.outbox} == {"delivered"}
    assert len(cluster.received) == len(JOBS) + 1


async def test_its_writes_come_to_nothing_while_another_is_in_the_middle_of_the_same_turn(cluster):
    """The heirs have loaded, and stand still: nothing but the fence is in the way."""
    cluster.variables["INSIKA_LEASE_S"] = str(LEASE_S)
    await cluster.run("ingress", "outbox")
    stale, jobs = await stand_still(cluster, WRITES), at_points(WRITES)
    loaded = {"point": CrashPoint.LOADED, "by": "SIGSTOP"}
    heirs = [
        cluster.start("worker", f"heir-{place}", composed=loaded, INSIKA_SLOTS=1, INSIKA_LEASE_S=HOLDS_ON_S)
        for place in range(len(WRITES))
    ]
    for heir in heirs:
        await heir.stands_still()
    assert [turn["attempt"] for each in jobs for turn in cluster.turns(each["session"])] == [2] * len(jobs)
    stands, asked, ran = written(cluster), cluster.diary("request"), cluster.diary("tool")
    for worker in stale:
        worker.goes_on()
    await until(lambda: lost(stale) == [1] * len(stale), "each to know what it lost", lambda: lost(stale))
    assert (written(cluster), cluster.diary("request"), cluster.diary("tool")) == (stands, asked, ran)
    for heir in heirs:
        heir.goes_on()
    await cluster.settles(len(jobs))
    cluster.judge(jobs, gone=len(jobs))
    assert len(cluster.received) == len(jobs)
