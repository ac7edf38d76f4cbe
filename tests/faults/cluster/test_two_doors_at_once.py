"""Three messages that a person sends in a row, over RabbitMQ and by a door that writes to the store, both at once. They
are in the order of the session row everywhere, whatever its owner is doing, and whoever has the row's lock."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import psycopg

from insika.producer.producer import AsyncProducer
from insika.storage.rows import ApprovalDecision
from tests.faults.cluster.mailbox_matrix import DEBOUNCED, HELD_AT, MODES, UNOWNED, cases, gate_of
from tests.faults.cluster.member import until
from tests.faults.cluster.operators import operator
from tests.faults.shop import job, raw

PEOPLE = 40
IN_A_ROW = 3
DEBOUNCE_MS = 50
POINTS = [moment for moment in HELD_AT if moment not in UNOWNED and moment != "model"]
"""Where an owner is about to write: a start, a boundary, an answer, a release, a suspension."""
WAIT_FOR_A_LOCK = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def configure(cluster):
    agents = {mode: {"queue_mode": mode, "debounce_ms": DEBOUNCE_MS if mode in DEBOUNCED else 0} for mode in MODES}
    cluster.configure(agents, asks={mode: ["charge"] for mode in MODES})


def in_a_row(person, mode):
    labels = (f"P{person}.{number}" for number in range(IN_A_ROW))
    return [job(f"p{person}", label, f"{label}: letter | look_up", mode) for label in labels]


@asynccontextmanager
async def both_doors(cluster, somebody):
    """Sends jobs in their order, every second one by the other door, and each door without a glance at the other."""
    async with AsyncProducer(cluster.services.amqp) as producer:

        async def by_the_store(jobs):
            for each in jobs:
                await somebody.door.take(raw(each))

        async def send(jobs, first):
            published = asyncio.gather(*(producer.send(**each) for each in jobs[first::2]))
            await asyncio.gather(published, by_the_store(jobs[1 - first :: 2]))

        yield send


async def test_they_are_in_the_order_of_the_session_row_in_every_mode(cluster):
    configure(cluster)
    await cluster.run("ingress", "outbox", "worker", "worker")
    said = [in_a_row(person, list(MODES)[person % len(MODES)]) for person in range(PEOPLE)]
    async with operator(cluster.services) as somebody, both_doors(cluster, somebody) as send:
        await asyncio.gather(*(send(jobs, person // len(MODES) % 2) for person, jobs in enumerate(said)))
    jobs = [each for jobs in said for each in jobs]
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs)
    for session in evidence.sessions:
        positions = {row["job_id"][-1]: row["position"] for row in evidence.of_session("mailbox", session["id"])}
        assert positions["0"] < positions["2"], "they came by one door"


async def test_they_wait_for_the_rows_lock_together_with_its_owner_at_whatever_it_is(cluster):
    configure(cluster)
    worker = cluster.start("worker", composed={"holds": True})
    await cluster.run("ingress", "outbox")
    await worker.ready()
    people = [case for case in cases("same") if case.moment in POINTS]
    opening = [case.says("A") for case in people]
    await cluster.publish(*opening)
    await until(lambda: len(cluster.diary("held")) == len(people), "every owner to be held")
    said = [[case.says(letter) for letter in "BCD"] for case in people]
    async with operator(cluster.services) as somebody, both_doors(cluster, somebody) as send:
        asked = [each.approval.id for each in await somebody.store.approvals()]
        with psycopg.connect(cluster.services.database) as blocking:
            blocking.execute("SELECT 1 FROM sessions ORDER BY id FOR UPDATE")
            deciding = (somebody.control.decide(id, ApprovalDecision.APPROVED, by="ana") for id in asked)
            sending = asyncio.gather(*(send(jobs, place % 2) for place, jobs in enumerate(said)), *deciding)
            await until(lambda: cluster.tables.value(WAIT_FOR_A_LOCK) > 1, "both doors to wait for a lock")
            doors = cluster.tables.value(WAIT_FOR_A_LOCK)
            for moment in POINTS:
                cluster.gates.open(gate_of(moment, "same"))
            await until(lambda: cluster.tables.value(WAIT_FOR_A_LOCK) > doors, "owners to wait for one as well")
        await sending
    jobs = [*opening, *(each for jobs in said for each in jobs)]
    await cluster.settles(len(jobs))
    cluster.judge(jobs, failures=["A"], counted=len(asked))
