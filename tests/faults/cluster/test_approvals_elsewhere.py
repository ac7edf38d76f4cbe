"""Calls that wait for a person, decided by commands and by operators at once, while workers leave, die and start anew.

What runs is what was approved, once; what was not is not run, and the model is told why.
"""

from __future__ import annotations

import asyncio
import functools
import json
import signal
from collections import Counter

import yaml

from insika.crash_points import CrashPoint
from insika.storage.rows import ApprovalDecision
from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.member import until
from tests.faults.cluster.operators import operator
from tests.faults.shop import job

ASKS, IMPATIENT, DENIED = "asks", "impatient", "denied"
HOUR_S = 3_600
AGENTS = {
    ASKS: {"queue_mode": "followup", "tool_concurrency": 2, "approval_timeout": 2 * HOUR_S},
    IMPATIENT: {"approval_timeout": HOUR_S / 2},
    DENIED: {"approval_timeout": 2 * HOUR_S},
}
TIMES = {
    "approvals": ("asked_at", "expires_at"),
    "turns": ("created_at", "started_at"),
    "sessions": ("parked_at", "due_at", "nudged_at"),
}
"""Of what has happened by now, and of what is to come."""
WITH_APPROVAL = dict.fromkeys(AGENTS, ("charge",))
OPEN = "SELECT a.* FROM approvals AS a JOIN sessions AS s ON s.id = a.session_id WHERE s.name = %s AND decision IS NULL"
PEOPLE = 12
REASON = "That customer has paid already."


async def suspended(cluster, session, count=1):
    """Its open approvals, once it waits for them and nothing else, in announced order."""

    def look():
        if [turn["state"] for turn in cluster.turns(session)][:1] != ["waiting"]:
            return []
        row, found = cluster.session(session), cluster.tables.of(OPEN, session)
        let_go = row["lease_id"] is None and row["due_at"] > cluster.tables.now()  # not since something was decided
        return found if let_go and len(found) == count else []

    found = await until(look, f"{session} to wait for {count} approvals", lambda: cluster.turns(session))
    order = {row["call_id"]: row["idx"] for row in cluster.tables.of("SELECT call_id, idx FROM tool_calls")}
    return sorted(found, key=lambda row: order[row["call_id"]])


async def decided(cluster, decision, approval, *said):
    """By the command."""
    done = await asyncio.to_thread(cluster.insika, "approvals", decision, approval["id"], *said)
    assert done.returncode == 0, done.stderr
    return done.stdout


def an_hour_passes(cluster):
    """While nobody does anything: all that the store knows was, and will be, an hour earlier."""
    for table, columns in TIMES.items():
        moved = ", ".join(f"{column} = {column} - interval '1 hour'" for column in columns)
        cluster.tables.of(f"UPDATE {table} SET {moved} RETURNING 1")


def calls(cluster, session):
    """Of its first turn: how each call ended, and what the model was told, in announced order."""
    return cluster.tables.of(
        "SELECT name, state, result, is_error FROM tool_calls WHERE turn_id = %s ORDER BY step, idx",
        cluster.turns(session)[0]["id"],
    )


def states(cluster, session):
    return " ".join(call["state"] for call in calls(cluster, session))


async def test_what_was_decided_while_there_was_no_worker_is_done_by_the_next_one(cluster):
    cluster.configure(AGENTS, asks=WITH_APPROVAL)
    _, _, first = await cluster.run("ingress", "outbox", "worker")
    texts = {
        "approved": (ASKS, "A: charge look_up charge | letter"),
        "rejected": (ASKS, "A: charge look_up"),
        "late": (IMPATIENT, "A: charge look_up"),
        "unanswered": (IMPATIENT, "A: charge look_up"),
        "denied": (DENIED, "A: charge look_up"),
    }
    jobs = [job(session, f"{session}-1", text, agent) for session, (agent, text) in texts.items()]
    await cluster.publish(*jobs)
    one, two = await suspended(cluster, "approved", 2)
    # Whatever else is in the batch has been run, and will not be run again.
    assert states(cluster, "approved") == "announced done announced"
    (asked_to_reject,), (late,), (denied,) = [
        await suspended(cluster, session) for session in ("rejected", "late", "denied")
    ]
    assert await first.stops() == 0
    await decided(cluster, "approve", late)
    listed = await asyncio.to_thread(cluster.insika, "approvals", "list", "--json")
    assert {one["id"], two["id"], asked_to_reject["id"]} <= set(ids_in(json.loads(listed.stdout)))
    await asyncio.gather(
        decided(cluster, "approve", one),
        decided(cluster, "reject", asked_to_reject, "--reason", REASON),
        decided(cluster, "approve", denied),
    )
    (cluster.folder / "denied.yaml").write_text(yaml.safe_dump(cluster.profile(DENIED, tools_deny=["charge"])))
    applied = await asyncio.to_thread(cluster.insika, "agents", "apply", "denied.yaml")
    assert applied.returncode == 0, applied.stderr
    an_hour_passes(cluster)
    assert len(cluster.diary(tool="charge")) == 0
    second = await cluster.start("worker").ready()
    await until(lambda: states(cluster, "approved") == "done done announced", "the first charge")
    (waits,) = await suspended(cluster, "approved")
    assert waits["id"] == two["id"]
    owned = "SELECT name FROM sessions WHERE lease_id IS NOT NULL"
    await until(lambda: not cluster.tables.of(owned), "all others to end")
    await second.dies()  # it owns nothing, and nobody comes for that
    await decided(cluster, "approve", two)
    third = await cluster.start("worker").ready()
    await cluster.settles(len(jobs))
    cluster.judge(jobs, gone=1, counted=5)
    charges = cluster.diary(tool="charge")
    assert [(run["order"], run["pid"]) for run in charges] == [("A.0.0", second.pid), ("A.0.2", third.pid)]
    assert states(cluster, "approved") == "done done done done"
    assert {session: states(cluster, session) for session in texts if session != "approved"} == {
        "rejected": "not_run done",
        "late": "not_run done",
        "unanswered": "not_run done",
        "denied": "not_run done",
    }
    assert REASON in calls(cluster, "rejected")[0]["result"]
    told = {session: calls(cluster, session)[0]["result"] for session in texts if session != "approved"}
    assert len(set(told.values())) == len(told), "of each the model is told something else"
    assert decisions(cluster) == {
        "approved": ["approved", "approved"],
        "rejected": ["rejected"],
        "late": ["expired"],
        "unanswered": ["expired"],
        "denied": ["void"],
    }
    approved = cluster.turns("approved")[0]
    assert approved["ended_at"] - approved["started_at"] > HOUR_S * 1_000_000, "it waited for longer than it may run"
    assert {session["deaths"] for session in cluster.tables.of("SELECT deaths FROM sessions")} == {0}


def ids_in(document):
    """Every value of a key `id` or `approval`, however deep."""
    if isinstance(document, dict):
        for name, value in document.items():
            if isinstance(value, str) and name in ("id", "approval", "approval_id"):
                yield value
            yield from ids_in(value)
    elif isinstance(document, list):
        for each in document:
            yield from ids_in(each)


def decisions(cluster):
    """By session, in announced order."""
    rows = cluster.tables.of(
        "SELECT s.name, a.decision FROM approvals AS a JOIN sessions AS s ON s.id = a.session_id "
        "JOIN tool_calls AS c ON c.turn_id = a.turn_id AND c.call_id = a.call_id ORDER BY s.name, c.step, c.idx"
    )
    found = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row["decision"])
    return found


async def test_of_two_operators_at_once_one_decides_and_the_other_is_told_what_was_decided(cluster):
    """Three calls of one batch in each session, decided one by one, the workers changing in between."""
    cluster.configure(AGENTS, asks=WITH_APPROVAL)
    await cluster.run("ingress", "outbox")
    worker = await cluster.start("worker").ready()
    jobs = [job(f"p{person}", f"p{person}-1", "A: charge charge charge look_up", ASKS) for person in range(PEOPLE)]
    sessions = [each["session"] for each in jobs]
    await cluster.publish(*jobs)
    winners = {}
    async with operator(cluster.services) as ana, operator(cluster.services) as ben:
        for left in (3, 2, 1):
            waiting = [(await suspended(cluster, session, left))[0] for session in sessions]
            successor = cluster.start("worker")
            await (worker.stops() if left == 3 else worker.dies())
            for approval in waiting:
                winners[approval["id"]] = await decide_at_once(approval["id"], ana.control, ben.control)
            worker = await successor.ready()
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs, gone=2, counted=len(winners))
    rows = cluster.tables.of("SELECT * FROM approvals")
    assert {row["id"]: (row["decided_by"], row["decision"]) for row in rows} == winners
    by_call = {(row["turn_id"], row["call_id"]): row["decision"] for row in rows}
    for call in evidence.tool_calls:
        decision = by_call.get((call["turn_id"], call["call_id"]), "approved")
        assert call["state"] == ("done" if decision == "approved" else "not_run")
    assert len(cluster.diary(tool="charge")) == Counter(by_call.values())["approved"]
    assert len(set(by_call.values())) == 2, "both of them won now and then"
    assert len(await cluster.events("approval_decided")) == len(winners)


async def decide_at_once(approval, ana, ben):
    """Ana approves and Ben rejects. Who won, and with what."""
    answers = await asyncio.gather(
        ana.decide(approval, ApprovalDecision.APPROVED, by="ana"),
        ben.decide(approval, ApprovalDecision.REJECTED, by="ben", reason=REASON),
    )
    assert sorted(answer.won for answer in answers) == [False, True]
    assert answers[0].approval == answers[1].approval
    row = answers[0].approval
    return row.decided_by, str(row.decision)


async def test_a_session_that_was_cancelled_while_it_waited_for_three_goes_on_with_a_plain_message(cluster):
    cluster.configure(AGENTS, asks=WITH_APPROVAL)
    worker = (await cluster.run("ingress", "outbox", "worker"))[-1]
    first, plain = job("ana", "ana-1", "A: charge charge charge", ASKS), job("ana", "ana-2", "B: look_up", ASKS)
    await cluster.publish(first)
    waiting = await suspended(cluster, "ana", 3)
    await decided(cluster, "approve", waiting[0])
    await until(lambda: states(cluster, "ana") == "done announced announced", "what was approved to run")
    await suspended(cluster, "ana", 2)
    assert await worker.stops() == 0
    cancelled = await asyncio.to_thread(cluster.insika, "turns", "cancel", cluster.turns("ana")[0]["id"])
    assert cancelled.returncode == 0, cancelled.stderr
    await cluster.publish(plain)
    await until(lambda: len(cluster.turns("ana")) == 2, "the plain message to be accepted")
    await cluster.run("worker")
    await cluster.settles(3)  # one of them is the cancel
    cluster.judge([first, plain], counted=1)
    assert [turn["state"] for turn in cluster.turns("ana")] == ["cancelled", "completed"]
    assert states(cluster, "ana") == "done not_run not_run"
    assert decisions(cluster) == {"ana": ["approved", "void", "void"]}
    late = await asyncio.to_thread(cluster.insika, "approvals", "approve", waiting[1]["id"])
    assert late.returncode == 1, "it is over"
    assert [received.payload["content"] for received in cluster.received] == ["Done: A, B"]


DIE_ASKING = (CrashPoint.APPROVAL_ASKED, CrashPoint.TURN_SUSPENDED)
DIE_RESUMING = (CrashPoint.WAITING_RESUMED, CrashPoint.CALL_STARTED, CrashPoint.CALL_RAN)


async def all_die(cluster, points, what):
    """A worker at each of them, in one session of its own, once `what` has been done."""
    doomed = [cluster.start("worker", point, composed={"point": point}, INSIKA_SLOTS=1) for point in points]
    for worker in doomed:
        await worker.ready()
    await what
    assert [await worker.ends() for worker in doomed] == [-signal.SIGKILL] * len(points)


async def test_workers_may_die_at_every_point_of_asking_and_of_going_on(cluster):
    cluster.configure(AGENTS, asks=WITH_APPROVAL)
    cluster.variables |= SHORT_LEASE
    _, _, first = await cluster.run("ingress", "outbox", "worker")
    resumed = [job(point, "A", "A: charge | look_up", DENIED) for point in DIE_RESUMING]
    asking = [job(point, "A", "A: charge | look_up", DENIED) for point in DIE_ASKING]
    await cluster.publish(*resumed)
    waiting = [(await suspended(cluster, each["session"]))[0]["id"] for each in resumed]
    assert await first.stops() == 0
    await all_die(cluster, DIE_ASKING, cluster.publish(*asking))
    async with operator(cluster.services) as ana:
        approve = functools.partial(ana.control.decide, decision=ApprovalDecision.APPROVED, by="ana")
        await all_die(cluster, DIE_RESUMING, asyncio.gather(*map(approve, waiting)))
        assert len(cluster.diary(tool="charge")) == 1
        await cluster.run("worker")
        for each in asking:
            ((late,),) = [await suspended(cluster, each["session"])]
            assert (await approve(late["id"])).won
    jobs = [*resumed, *asking]
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs, gone=len(jobs), counted=len(jobs))
    assert {turn["state"] for turn in evidence.turns} == {"completed"}
    # Of what had begun when its worker died, nobody can say whether it happened.
    charges = Counter(call["state"] for call in evidence.tool_calls if call["name"] == "charge")
    assert charges == {"done": 3, "unknown": 2}
    assert len(cluster.diary(tool="charge")) == 4
    assert len(cluster.tables.of("SELECT 1 FROM approvals WHERE decision = 'approved'")) == len(jobs)
