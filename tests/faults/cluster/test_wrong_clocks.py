"""Fault 18, the other half: processes whose own clocks are five minutes off, some ahead and some behind.

Time is the store's. Nobody takes what is owned, nothing waits for longer, and no row tells of another time.
"""

from __future__ import annotations

import asyncio

from actors.receiver import Answer, Receiver
from tests.faults.cluster.member import until
from tests.faults.shop import SECRET, job

AHEAD, BEHIND = {"clock_off_s": 310.0}, {"clock_off_s": -310.0}
LEASE_S = 4
LOOKED_AT_S = 3
"""Long enough for every worker to have looked for what it may take, again and again."""
DEBOUNCE_MS = 1_500
OWNED = job("owned", "owned-1", "O: letter@held | charge")
ORPHANED = job("orphaned", "orphaned-1", "P: charge | look_up@held letter")
COLLECTED = [job("collected", f"collected-{number}", f"C{number}", "slow") for number in (1, 2)]
JOBS = [OWNED, ORPHANED, *COLLECTED]
TIMES = {
    "mailbox": ("at",),
    "turns": ("created_at", "started_at", "ended_at"),
    "messages": ("at",),
    "tool_calls": ("announced_at", "started_at", "ended_at"),
    "model_calls": ("started_at", "settled_at"),
    "outbox": ("created_at", "claimed_at", "settled_at"),
}


async def test_a_clock_of_its_own_changes_nothing(cluster):
    received = []
    async with Receiver(
        [SECRET], answer=Answer(503, times=1, retry_after_s=1), on_received=received.append
    ) as receiver:
        cluster.url, cluster.received = receiver.url, received
        cluster.variables["INSIKA_LEASE_S"] = str(LEASE_S)
        cluster.configure({"slow": {"queue_mode": "collect", "debounce_ms": DEBOUNCE_MS}})
        began = cluster.tables.now()
        roles = {"ingress": BEHIND, "outbox": AHEAD, "clock": BEHIND}
        others = [cluster.start(role, composed=off) for role, off in roles.items()]
        workers = [cluster.start("worker", composed=off, INSIKA_SLOTS=1) for off in (AHEAD, BEHIND)]
        for member in (*others, *workers):
            await member.ready()
        await cluster.publish(OWNED, ORPHANED)
        ((run,), _) = await cluster.begun("look_up"), await cluster.begun("letter")
        doomed = next(worker for worker in workers if worker.pid == run["pid"])
        await nobody_takes_what_is_owned(cluster)
        lease_until = cluster.session("orphaned")["lease_until"]
        await doomed.dies()
        heir = await cluster.start("worker", composed=AHEAD).ready()
        await until(lambda: cluster.session("orphaned")["epoch"] == 2, "the orphan to be taken")
        assert cluster.tables.now() > lease_until
        await cluster.publish(*COLLECTED)
        cluster.gates.open("held")
        await cluster.settles(len(JOBS))
        cluster.judge(JOBS, gone=2)
        assert heir.runs
        ended = cluster.tables.now()
    assert cluster.session("owned")["epoch"] == 1
    (collected,) = cluster.turns("collected")
    last = cluster.tables.value("SELECT max(at) FROM mailbox WHERE turn_id = %s", collected["id"])
    assert collected["started_at"] - last >= DEBOUNCE_MS * 1_000
    for table, columns in TIMES.items():
        for row in cluster.tables.of(f"SELECT * FROM {table}"):
            assert all(row[column] is None or began <= row[column] <= ended for column in columns), row


async def nobody_takes_what_is_owned(cluster):
    until_s = asyncio.get_running_loop().time() + LOOKED_AT_S
    while asyncio.get_running_loop().time() < until_s:
        assert [cluster.session(name)["epoch"] for name in ("owned", "orphaned")] == [1, 1]
        await asyncio.sleep(0.1)
