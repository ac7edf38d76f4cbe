"""Connections that are closed, cut or fall silent while messages are read: everything comes, in order, and repeats are
only what was not settled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from actors.broker.consuming import TURNS_PREFETCH
from actors.broker.messages import Delivery
from actors.environment import QueueType
from insika.producer.connection import AmqpPublisher
from scripts.private_services.together import PrivateServices
from tests.amqp_wire import channel, wire
from tests.broker_world import (
    ListActors,
    Vhost,
    numbered,
    reading,
    reading_beside_the_loop,
    texts,
    turns_of,
    until,
    until_beside_the_loop,
)

LOST = "connection to RabbitMQ lost"


def first_times(actors: ListActors) -> list[str]:
    return list(dict.fromkeys(actors.handled))


def test_closed_by_an_operator_again_and_again(vhost: Vhost, log: list[dict[str, object]]) -> None:
    bodies = numbered(1_000)
    closing = {"00100", "00300", "00500", "00700", "00900"}

    def close(delivery: Delivery) -> None:
        if delivery.body.decode() in closing:
            closing.discard(delivery.body.decode())
            vhost.close_connections()

    vhost.publish(bodies)
    actors = ListActors(close)
    with reading(turns_of(vhost, actors)):
        until(lambda: len(set(actors.handled)) == len(bodies), "the last message")
        until(lambda: vhost.waiting() == 0)

    assert first_times(actors) == texts(bodies)
    assert len(actors.handled) - len(bodies) <= 5 * TURNS_PREFETCH  # what was not settled
    lines = [line["reason"] for line in log if line["event"] == LOST and line["queue"] == "insika.turns"]
    assert lines == ["CONNECTION_FORCED - closed by a test"] * 5


async def test_a_message_that_is_being_handled_meanwhile_comes_again_when_that_is_over(quorum_vhost: Vhost) -> None:
    """Its first handling goes on; a second beside it would be two at once."""
    go_on, at_once, most = threading.Event(), 0, 0

    def hold(delivery: Delivery) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        go_on.wait(60)
        at_once -= 1

    async with wire(quorum_vhost.url) as cuttable:
        quorum_vhost.publish([b"once"])
        actors = ListActors(hold)
        cut = Vhost(cuttable.url, quorum_vhost.type, quorum_vhost.console)
        async with reading_beside_the_loop(turns_of(cut, actors)):
            await until_beside_the_loop(lambda: actors.begun)
            before = cuttable.connections
            cuttable.cut()
            await until_beside_the_loop(lambda: cuttable.connections > before)
            await until_beside_the_loop(lambda: quorum_vhost.waiting() == 0, "the second fetching")
            assert len(actors.begun) == 1
            go_on.set()
            await until_beside_the_loop(lambda: len(actors.handled) == 2)
    assert [delivery.deliveries for delivery in actors.begun] == [1, 2]
    assert most == 1


async def test_a_broker_that_falls_silent_is_left_after_some_heartbeats(
    quorum_vhost: Vhost, log: list[dict[str, object]]
) -> None:
    async with wire(quorum_vhost.url) as holdable:
        actors = ListActors()
        silent = Vhost(holdable.url, quorum_vhost.type, quorum_vhost.console)
        async with reading_beside_the_loop(turns_of(silent, actors, query="?heartbeat=1")):
            quorum_vhost.publish(numbered(3))
            await until_beside_the_loop(lambda: len(actors.handled) == 3)
            before = holdable.connections
            holdable.hold_answers()
            await until_beside_the_loop(lambda: any(line["event"] == LOST for line in log))
            holdable.let_go()
            quorum_vhost.publish(numbered(6)[3:])
            await until_beside_the_loop(lambda: len(set(actors.handled)) == 6)
            assert holdable.connections > before
    assert first_times(actors) == texts(numbered(6))


async def test_a_silent_broker_does_not_keep_a_process_from_ending(quorum_vhost: Vhost) -> None:
    async with wire(quorum_vhost.url) as holdable:
        actors = ListActors()
        silent = Vhost(holdable.url, quorum_vhost.type, quorum_vhost.console)
        consuming = turns_of(silent, actors, query="?heartbeat=600")
        consuming.start()
        quorum_vhost.publish(numbered(3))
        await until_beside_the_loop(lambda: len(actors.handled) == 3)
        holdable.hold_answers()
        async with asyncio.timeout(60):
            await asyncio.to_thread(consuming.stop, 10)


def test_a_queue_that_is_deleted_is_made_again(vhost: Vhost) -> None:
    actors = ListActors()
    with reading(turns_of(vhost, actors)):
        vhost.publish([b"before"])
        until(lambda: actors.handled == ["before"])
        with channel(vhost.url) as deleting:
            deleting.queue_delete("insika.turns")
        until(lambda: _publishes(vhost, b"after"))
        until(lambda: "after" in actors.handled)


def _publishes(vhost: Vhost, body: bytes) -> bool:
    publisher = AmqpPublisher(vhost.url)
    try:
        return publisher.publish("", "insika.turns", body, mandatory=True).exception(30) is None
    finally:
        publisher.close()


@pytest.fixture(scope="module")
def own_rabbitmq() -> Iterator[PrivateServices]:
    with PrivateServices.start(which=["rabbitmq"]) as services:
        yield services


def test_a_broker_that_is_killed_and_started_again(own_rabbitmq: PrivateServices, queue_type: QueueType) -> None:
    node = own_rabbitmq.rabbitmq
    node.console.empty_vhost("killed")
    vhost = Vhost(node.url_of("killed"), queue_type, node.console)
    vhost.declare()
    bodies = numbered(600)
    vhost.publish(bodies)
    reached, go_on = threading.Event(), threading.Event()

    def stop_there(delivery: Delivery) -> None:
        if delivery.body == b"00200":
            reached.set()
            go_on.wait(60)

    actors = ListActors(stop_there)
    with reading(turns_of(vhost, actors)):
        assert reached.wait(60)
        node.kill()
        go_on.set()
        node.start()
        until(lambda: len(set(actors.handled)) == len(bodies), "the last message")
    assert first_times(actors) == texts(bodies)
