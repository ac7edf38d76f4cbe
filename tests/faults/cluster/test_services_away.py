"""Services that go away for a while, or are not there yet. What can go on goes on; what cannot waits, and says so."""

from __future__ import annotations

import asyncio

from tests.faults.cluster.member import until
from tests.faults.shop import job

ROLES = ("ingress", "worker", "outbox", "clock")
RUNNING = job("ana", "ana-1", "A: charge@held | letter")
LATER = [job(f"s{number}", f"s{number}-1", f"S{number}: charge") for number in range(5)]


async def test_turns_and_deliveries_go_on_without_rabbitmq_and_publishing_resumes(own, own_cluster):
    cluster = own_cluster
    members = await cluster.run(*ROLES)
    await cluster.publish(RUNNING)
    await cluster.begun("charge")
    await asyncio.to_thread(own.rabbitmq.kill)
    publishing = asyncio.create_task(cluster.publish(*LATER))
    cluster.gates.open("held")
    await until(lambda: cluster.received, "the answer, without a single hint")
    assert not publishing.done()
    await asyncio.to_thread(own.rabbitmq.start)
    await publishing
    await cluster.settles(1 + len(LATER))
    cluster.judge([RUNNING, *LATER])
    assert all(member.runs for member in members)
    for role in ("ingress", "worker", "outbox"):
        await members[ROLES.index(role)].logs("connected to RabbitMQ again")


async def test_turns_end_and_nothing_happens_twice_when_postgresql_is_restarted_under_them(own, own_cluster):
    cluster = own_cluster
    members = await cluster.run("ingress", "worker", "worker", "outbox", "clock")
    text = "charge letter | reserve | charge look_up | letter"
    jobs = [
        job(f"s{number}", f"s{number}-{turn}", f"S{number}.{turn}: {text}") for turn in (1, 2) for number in range(15)
    ]
    jobs = [{**each, "queue_mode": "followup"} for each in jobs]
    await cluster.publish(*jobs)
    for restart in (own.postgres.stop_at_once, own.postgres.stop):
        ran = len(cluster.diary("tool"))
        await until(lambda ran=ran: len(cluster.diary("tool")) >= ran + 20, "tools to run")
        cluster.tables.close()
        await asyncio.to_thread(restart)
        await asyncio.to_thread(own.postgres.start)
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs, gone=len(jobs))
    assert {turn["state"] for turn in evidence.turns} == {"completed"}
    assert all(member.runs for member in members)


async def test_processes_that_start_before_their_services_wait_for_them(own, own_cluster):
    cluster = own_cluster
    for server in (own.rabbitmq, own.postgres):
        await asyncio.to_thread(server.kill)
    members = [cluster.start(role) for role in ROLES]
    for member in members:
        waiting = await member.logs("waiting")
        assert waiting["what"].startswith("the database postgresql://127.0.0.1:")
        assert "refused" in waiting["reason"]
    await asyncio.to_thread(own.postgres.start)
    for member in members:
        assert "cannot be reached" in (await member.logs("waiting", what="RabbitMQ"))["reason"]
    await asyncio.to_thread(own.rabbitmq.start)
    for member in members:
        await member.ready()
    await cluster.publish(*LATER)
    await cluster.settles(len(LATER))
    cluster.judge(LATER)


async def test_a_process_that_still_waits_ends_when_it_is_told_to(own, own_cluster):
    cluster = own_cluster
    await asyncio.to_thread(own.postgres.kill)
    waiting = [cluster.start(role) for role in ROLES]
    for member in waiting:
        await member.logs("waiting")
        assert await member.stops() == 0
        assert not member.logged("ready")
