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
from tests.faults.shop import CHANNEL, job

TIMES = 200
MOMENT_S = 0.05
BURST = 100
"""Jobs, each of a session of its own, of which one process is told to end in the middle."""
WRITES = {
    "ingress": ("mailbox", "job_id", "at"),
    "worker": ("turns", "id", "ended_at"),
    "outbox": ("outbox", "id", "settled_at"),
}
"""What each role writes: table, what it is of, and when."""
ROUNDS_MAX = 60


def burst(role, number):
    """An ingress has most to do with many jobs that ask for little."""
    text, channel = ("", None) if role == "ingress" else ("charge", CHANNEL)
    names = [f"{role}-{number}-{place}" for place in range(BURST)]
    return [job(name, name, f"{name}: {text}", channel=channel) for name in names]


async def told_to_end(cluster, role, member, jobs, dice):
    """In the middle of what it does, a moment after it has written something. What it wrote within that moment."""
    table, what, at = WRITES[role]
    written = f"SELECT count(*) FROM {table} WHERE {at} IS NOT NULL"
    before = cluster.tables.value(written)
    await cluster.publish(*jobs)
    await until(lambda: cluster.tables.value(written) > before + BURST // 4, f"{role} to work", every_s=0.005)
    await asyncio.sleep(dice.uniform(0, MOMENT_S))
    now = cluster.tables.value("SELECT insika_now()::text")
    member.signal(signal.SIGTERM)
    moment = f"SELECT {what} AS what FROM {table} WHERE {at} BETWEEN %s::timestamptz - interval '50 ms' AND %s"
    rows = cluster.tables.of(moment, now, now)
    assert await member.ends() == 0
    # Of several ingresses only the first one reads; the others tell in their logs what they did.
    return [row for row in rows if role == "ingress" or row["what"] in member.log]


async def test_nothing_that_was_finished_comes_again(cluster):
    dice, jobs, times = random.Random(23), [], 0
    working = dict(zip(WRITES, await cluster.run(*WRITES), strict=True))
    for number in itertools.count():
        for role in WRITES if number % 4 == 0 else ("ingress",):
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
    assert verdicts.keys() == {"accepted"}
