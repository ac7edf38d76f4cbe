"""Services that go away for a while, or are not there yet. What can go on goes on; what cannot waits, and says so."""

from __future__ import annotations

import asyncio

from tests.faults.cluster.member import until
from tests.faults.shop import job

ROLES = ("ingress", "worker", "outbox", "clock")
RUNNING = job("ana", "ana-1", "A: charge@held | letter")
NO_ANSWER = "configuration not refreshed"
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
    cluster.variables["INSIKA_LEASE_S"] = "5"
    ingress, *others = await cluster.run("ingress", "worker", "worker", "outbox", "clock")
    jobs = rounds(3)
    await cluster.publish(*jobs[0])
    for stop, more in ((own.postgres.stop_at_once, jobs[1]), (own.postgres.stop, jobs[2])):
        ran = len(cluster.diary("tool"))
        await until(lambda ran=ran: len(cluster.diary("tool")) >= ran + 20, "tools to run")
        cluster.tables.close()
        await asyncio.to_thread(stop)
        await cluster.publish(*more)
        noticed = len(ingress.logged(NO_ANSWER))
        await until(lambda noticed=noticed: len(ingress.logged(NO_ANSWER)) > noticed, "the ingress to get no answer")
        await asyncio.to_thread(own.postgres.start)
    all_jobs = [job for each in jobs for job in each]
    await cluster.settles(len(all_jobs))
    evidence = cluster.judge(all_jobs, gone=len(all_jobs))
    assert {turn["state"] for turn in evidence.turns} == {"completed"}
    assert all(member.runs for member in (ingress, *others))


def rounds(count):
    """Each with a turn of every session."""
    text = "charge letter | reserve | charge look_up | letter"
    return [
        [job(f"s{n}", f"s{n}-{turn}", f"S{n}.{turn}: {text}", queue_mode="followup") for n in range(10)]
        for turn in range(count)
    ]


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
