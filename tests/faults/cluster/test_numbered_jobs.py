"""Fault 25: twenty numbered jobs of one session, fetched ahead by one ingress that dies over them and given to another,
run by two workers. They stay in order, on either type of queue."""

from __future__ import annotations

import signal

import pytest

from tests.faults.shop import job

NUMBERED = [job("numbered", f"n-{number}", f"N{number}: charge", queue_mode="followup") for number in range(20)]
BESIDE = [
    job(f"beside-{number % 4}", f"b-{number}", f"B{number}: letter", queue_mode="followup") for number in range(20)
]
DIES_AT = 9


@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
async def test_the_order_of_publishing_is_the_order_of_everything(cluster, queue_type):
    cluster.variables["INSIKA_QUEUE_TYPE"] = queue_type
    first = await cluster.start("ingress", composed={"point": "accepted", "nth": DIES_AT}).ready()
    await cluster.run("ingress", "worker", "worker", "outbox")
    jobs = [each for pair in zip(NUMBERED, BESIDE, strict=True) for each in pair]
    await cluster.publish(*jobs)
    assert await first.ends() == -signal.SIGKILL
    await cluster.settles(len(jobs))
    cluster.judge(jobs)
    session = cluster.session("numbered")["id"]
    accepted = cluster.tables.of("SELECT job_id FROM mailbox WHERE session_id = %s ORDER BY position", session)
    assert [row["job_id"] for row in accepted] == [each["id"] for each in NUMBERED]
    assert [run["order"] for run in cluster.diary(tool="charge")] == [f"N{number}.0.0" for number in range(20)]
    answered = [each.payload["content"] for each in cluster.received if each.payload["session"] == "numbered"]
    assert answered == [f"Done: N{number}" for number in range(20)]
