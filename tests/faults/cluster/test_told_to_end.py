"""Fault 23: processes that are told to end a moment after they have committed something, two hundred times.

Nothing that was finished comes again: no job, no turn, no delivery. And each process ends as it should.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
from collections import Counter

from tests.faults.cluster.member import until
from tests.faults.shop import COLLECTS, job

TIMES = 200
MOMENT_S = 0.05
BURST = {"ingress": 150, "worker": 60, "outbox": 60}
"""Jobs, in the middle of which a process of this role is told to end."""
TOGETHER = 15
"""So many of an ingress's jobs become one turn: it is to have more to do than the others."""
WRITES = {
    "ingress": (("mailbox", "job_id", "at"),),
    "worker": (
        ("turns", "id", "ended_at"),
        ("tool_calls", "turn_id", "ended_at"),
        ("tool_calls", "turn_id", "started_at"),
    ),
    "outbox": (("outbox", "id", "settled_at"), ("outbox", "id", "claimed_at")),
}
"""What each role writes: table, of what, and when; the last that it does with something first."""
ROUNDS_MAX = 60


def burst(role, number):
    names = [f"{role}-{number}-{place}" for place in range(BURST[role])]
    if role == "ingress":
        sessions = [f"{role}-{number}-in-{place // TOGETHER}" for place in range(BURST[role])]
        return [job(session, name, name, COLLECTS) for session, name in zip(sessions, names, strict=True)]
    return [job(name, name, f"{name}: charge") for name in names]


async def told_to_end(cluster, role, member, jobs, dice):
    """In the middle of what it does, a moment after it has written something. What it wrote within that moment."""
    table, _, at = WRITES[role][0]
    written = f"SELECT count(*) FROM {table} WHERE {at} IS NOT NULL"
    before = cluster.tables.value(written)
    await cluster.publish(*jobs)
    await until(lambda: cluster.tables.value(written) > before + BURST[role] // 4, f"{role} to work", every_s=0.005)
    await asyncio.sleep(dice.uniform(0, MOMENT_S))
    now = cluster.tables.value("SELECT insika_now()::text")
    member.signal(signal.SIGTERM)
    assert await member.ends() == 0
    moment = "SELECT {} AS what FROM {} WHERE {} BETWEEN %s::timestamptz - interval '50 ms' AND %s"
    rows = [
        row for table, what, at in WRITES[role] for row in cluster.tables.of(moment.format(what, table, at), now, now)
    ]
    # Of several ingresses only the first one reads; the others tell in their logs what they did.
    return [row for row in rows if role == "ingress" or row["what"] in member.log]


async def test_nothing_that_was_finished_comes_again(cluster):
    dice, jobs, times = random.Random(23), [], 0
    cluster.configure({COLLECTS: {"queue_mode": "collect", "debounce_ms": 2_000, "debounce_max_ms": 4_000}})
    working = dict(zip(WRITES, await cluster.run(*WRITES), strict=True))
    for number in itertools.count():
        for role in WRITES if number % 2 == 0 else ("ingress",):
            successor, more = cluster.start(role), burst(role, number)
            jobs += more
            times += len(await told_to_end(cluster, role, working[role], more, dice))
            working[role] = await successor.ready()
        if times >= TIMES:
            break
        assert number < ROUNDS_MAX, f"{times} times only"
    print(f"{times} writes within {MOMENT_S:g} s of a signal, in {number + 1} rounds")
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs, gone=len(jobs))  # a turn that is handed over has its next request written down
    assert set(Counter(run["order"] for run in cluster.diary("tool")).values()) == {1}
    assert {(row["state"], row["attempts"]) for row in evidence.outbox} == {("delivered", 1)}
    assert {turn["state"] for turn in evidence.turns} == {"completed"}
    verdicts = Counter(event.data["verdict"] for event in await cluster.events("turn_accepted"))
    assert verdicts.keys() == {"accepted", "merged"}
