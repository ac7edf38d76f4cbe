"""People write, operators approve, reject, withdraw, cancel, hold and let go on, in any order and all at once, while
workers are killed and told to leave. In the end every message is said in one turn or withdrawn, and nothing ran twice.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter

from insika.storage.rows import ApprovalDecision
from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.mailbox_matrix import DEBOUNCED, MODES
from tests.faults.cluster.operators import operator
from tests.faults.shop import job

SESSIONS = 24
ROUNDS = 4
ASKS_OF_A_ROUND = 40
SEED = 4
STEPS = ("charge", "letter", "look_up", "charge look_up", "letter charge", "charge charge", "reserve")
"""Every charge needs a person's approval."""


class Operators:
    """Ask what comes to their mind. `counted`: how often that counts a session's mail up without a message."""

    def __init__(self, somebody, cluster, dice):
        self._control = somebody.control
        self._store = somebody.store
        self._tables = cluster.tables
        self._dice = dice
        self.counted = 0
        self.asked = Counter()

    async def ask(self):
        what = self._dice.choice(("decide", "decide", "decide", "withdraw", "cancel", "pause", "resume", "resume"))
        self.asked[what] += await getattr(self, what)()

    async def decide(self):
        return await self._decide(self._one_of("SELECT id FROM approvals WHERE decision IS NULL"))

    async def withdraw(self):
        row = self._one_of(
            "SELECT s.name, m.job_id FROM mailbox AS m JOIN sessions AS s ON s.id = m.session_id "
            "WHERE verdict <> 'control' AND ended IS NULL"
        )
        if row is None:
            return False
        return bool(await self._control.withdraw(row["name"], row["job_id"], request_id=uuid.uuid4().hex))

    async def cancel(self):
        row = self._one_of("SELECT id FROM turns WHERE state IN ('queued', 'running', 'waiting')")
        return row is not None and bool(await self._control.cancel(row["id"], request_id=uuid.uuid4().hex))

    async def pause(self):
        row = self._one_of("SELECT name FROM sessions WHERE NOT paused")
        self.counted += 1
        return row is not None and await self._control.pause(row["name"])

    async def resume(self):
        row = self._one_of("SELECT name FROM sessions WHERE paused")
        self.counted += 1
        return row is not None and await self._control.resume(row["name"])

    async def let_all_go_on(self):
        """Until nobody waits for anybody."""
        for row in self._tables.of("SELECT name FROM sessions WHERE paused"):
            self.counted += 1
            await self._control.resume(row["name"])
        while self._tables.of("SELECT 1 FROM sessions WHERE waiting > 0 OR turn_id IS NOT NULL"):
            for row in self._tables.of("SELECT id FROM approvals WHERE decision IS NULL"):
                await self._decide(row)
            await asyncio.sleep(0.05)

    async def _decide(self, row):
        if row is None:
            return False
        self.counted += 1
        decision = self._dice.choice((ApprovalDecision.APPROVED, ApprovalDecision.APPROVED, ApprovalDecision.REJECTED))
        answer = await self._control.decide(row["id"], decision, by="ana", reason="perhaps")
        return answer is not None and answer.won

    def _one_of(self, statement):
        rows = self._tables.of(statement)
        return self._dice.choice(rows) if rows else None


def said_in(number, dice):
    """In one round: each person says nothing, or something, or more."""
    jobs = []
    for person in range(SESSIONS):
        mode = list(MODES)[person % len(MODES)]
        for place in range(dice.randrange(4)):
            label = f"P{person}.{number}.{place}"
            steps = " | ".join(dice.choice(STEPS) for _ in range(dice.randrange(4)))
            jobs.append(job(f"p{person}", label, f"{label}: {steps}", mode, queue_mode=dice.choice((mode, *MODES))))
    return jobs


async def test_every_message_is_said_or_withdrawn_and_nothing_runs_twice(cluster):
    dice = random.Random(SEED)
    agents = {mode: {"queue_mode": mode, "debounce_ms": 50 if mode in DEBOUNCED else 0} for mode in MODES}
    cluster.configure(agents, asks={mode: ["charge"] for mode in MODES})
    cluster.variables |= SHORT_LEASE | {"INSIKA_DRAIN_S": "1"}
    _, _, *workers = await cluster.run("ingress", "outbox", "worker", "worker")
    jobs = []
    async with operator(cluster.services) as somebody:
        operators = Operators(somebody, cluster, dice)
        for number in range(ROUNDS):
            said = said_in(number, dice)
            jobs += said
            publishing = asyncio.create_task(cluster.publish(*said))
            for _ in range(ASKS_OF_A_ROUND):
                await operators.ask()
            await publishing
            leaving = workers.pop(0)
            workers.append(await cluster.start("worker").ready())
            await (leaving.stops() if number % 2 else leaving.dies())
        await operators.let_all_go_on()
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs, gone=ROUNDS * 2, counted=operators.counted)
    print(
        operators.asked,
        Counter(turn["state"] for turn in evidence.turns),
        Counter(r["ended"] for r in evidence.mailbox),
    )
    open_rows = "SELECT 1 FROM mailbox WHERE ended IS NULL UNION ALL SELECT 1 FROM approvals WHERE decision IS NULL"
    assert not cluster.tables.of(open_rows)
    assert {turn["state"] for turn in evidence.turns} == {"completed", "cancelled"}
    assert all(operators.asked[what] for what in ("decide", "withdraw", "cancel", "pause", "resume"))
