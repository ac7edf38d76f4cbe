"""Fault 27: messages that are too large, for a job and for the broker, among others on one connection.

Their neighbours do not notice: each is confirmed and run once. What the broker took is kept as it came.
"""

from __future__ import annotations

import asyncio
import json

import pika
import pytest

from insika.jobs import MAX_BODY_BYTES
from insika.producer.connection import AmqpPublisher
from insika.producer.errors import NotPublished
from tests.amqp_wire import channel
from tests.faults.cluster.conftest import MESSAGE_MAX
from tests.faults.cluster.member import until
from tests.faults.shop import job, raw

NEIGHBOURS = [job(f"s{number}", f"s{number}-1", f"N{number}: charge") for number in range(20)]
TOO_LARGE = raw(job("large", "large-1", "x" * (MAX_BODY_BYTES + 1)))
FAR_TOO_LARGE = raw(job("larger", "larger-1", "x" * (2 * MESSAGE_MAX)))


def published(publisher, body, id_):
    properties = pika.BasicProperties(message_id=id_, delivery_mode=2)
    future = publisher.publish("", "insika.turns", body, properties, mandatory=True, repeatable=True)
    return asyncio.wrap_future(future)


async def test_their_neighbours_do_not_notice(own_cluster):
    cluster = own_cluster
    members = await cluster.run("ingress", "worker", "outbox")
    publisher = AmqpPublisher(cluster.services.amqp, body_max=4 * MESSAGE_MAX)
    half = len(NEIGHBOURS) // 2
    sent = [published(publisher, raw(each), each["id"]) for each in NEIGHBOURS[:half]]
    large, larger = published(publisher, TOO_LARGE, "large-1"), published(publisher, FAR_TOO_LARGE, "larger-1")
    sent += [published(publisher, raw(each), each["id"]) for each in NEIGHBOURS[half:]]
    await asyncio.gather(*sent, large)
    with pytest.raises(NotPublished):
        await larger
    await asyncio.to_thread(publisher.close)
    await cluster.settles(len(NEIGHBOURS))
    cluster.judge(NEIGHBOURS)
    await until(lambda: cluster.tables.of("SELECT 1 FROM rejected_jobs"), "the large one to be kept")
    # Perhaps twice: what was on its way when the broker refused the other goes out again.
    for kept in cluster.tables.of("SELECT source, raw, error FROM rejected_jobs"):
        assert (kept["source"], bytes(kept["raw"])) == ("amqp", TOO_LARGE)
        assert json.loads(kept["error"])["type"] == "invalid_job"
    told = json.loads(cluster.insika("rejected", "list", "--json").stdout)
    assert {each["error"]["message_id"] for each in told} == {"large-1"}
    assert not any(member.logged("connection to RabbitMQ lost") for member in members)


async def test_somebody_elses_that_costs_him_his_channel_costs_nobody_else_anything(own_cluster):
    cluster = own_cluster
    members = await cluster.run("ingress", "worker", "outbox")
    before = cluster.queues.connections()
    with channel(cluster.services.amqp) as other:
        other.confirm_delivery()
        with pytest.raises(pika.exceptions.AMQPError):
            other.basic_publish("", "insika.turns", FAR_TOO_LARGE)
    await cluster.publish(*NEIGHBOURS)
    await cluster.settles(len(NEIGHBOURS))
    cluster.judge(NEIGHBOURS)
    assert before <= cluster.queues.connections()
    assert not any(member.logged("connection to RabbitMQ lost") for member in members)
    assert cluster.tables.of("SELECT 1 FROM rejected_jobs") == []
