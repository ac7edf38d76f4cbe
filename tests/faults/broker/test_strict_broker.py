"""A broker that gives a consumer three seconds for a message, and takes none over 1 MiB."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from actors.broker.topology import SESSIONS, TURNS
from actors.environment import QueueType
from scripts.private_services.together import PrivateServices
from tests.amqp_wire import channel
from tests.broker_world import Door, Outages, Vhost, job, until_beside_the_loop

LOST = "connection to RabbitMQ lost"


@pytest.fixture
def strict_vhost(strict_rabbitmq: PrivateServices, queue_type: QueueType) -> Vhost:
    node = strict_rabbitmq.rabbitmq
    node.console.empty_vhost("strict")
    made = Vhost(node.url_of("strict"), queue_type, node.console)
    made.declare()
    return made


class Holder:
    """A consumer that settles nothing, until the broker has had enough of it."""

    def __init__(self, vhost: Vhost) -> None:
        vhost.publish([b"1"], SESSIONS)
        self._connection = pika.BlockingConnection(pika.URLParameters(vhost.url))
        self._channel = self._connection.channel()
        self._channel.basic_consume(SESSIONS, lambda *_: None)

    def thrown_out(self) -> str | None:
        try:
            self._channel._process_data_events(0.05)
        except ChannelClosedByBroker as error:
            return str(error.reply_text)
        return None

    def close(self) -> None:
        self._connection.close()


async def test_nothing_is_held_for_longer_than_it_allows_while_the_store_is_away(
    strict_vhost: Vhost, door: Callable[..., Awaitable[Door]], log: list[dict[str, Any]]
) -> None:
    made = await door(strict_vhost)
    outage = Outages(made)
    holder = Holder(strict_vhost)
    async with made.open():
        outage.away = True
        strict_vhost.publish([job(f"{n}", id=f"j{n}") for n in range(20)])
        await until_beside_the_loop(lambda: strict_vhost.waiting() == 20)
        # So much time has passed since that whoever held a message would have been thrown out by now.
        await until_beside_the_loop(
            lambda: "delivery acknowledgement on channel 1 timed out" in str(holder.thrown_out())
        )
        outage.away = False

        async def all_accepted() -> bool:
            return len(await made.accepted()) == 20

        await made.until(all_accepted)
    holder.close()
    assert await made.accepted() == [f"{n}" for n in range(20)]
    assert made.closings == 1
    assert [line for line in log if line["event"] == LOST] == []


async def test_an_oversized_publish_beside_it_disturbs_nobody(
    strict_vhost: Vhost, door: Callable[..., Awaitable[Door]], log: list[dict[str, Any]]
) -> None:
    made = await door(strict_vhost)
    too_large = b"x" * (300 * 1024)
    async with made.open():
        for n in range(3):
            strict_vhost.publish([job(f"before {n}"), too_large])
            with channel(strict_vhost.url) as neighbour:
                neighbour.confirm_delivery()
                with pytest.raises(ChannelClosedByBroker, match="is larger than configured max size"):
                    neighbour.basic_publish("", TURNS, b"x" * (2 * 1024 * 1024))
            strict_vhost.publish([job(f"after {n}")])

        async def all_there() -> bool:
            return len(await made.accepted()) == 6 and len(await made.kept()) == 3

        await made.until(all_there)
    assert await made.accepted() == [f"{when} {n}" for n in range(3) for when in ("before", "after")]
    assert {row.raw for row in await made.kept()} == {too_large}
    assert [line for line in log if line["event"] == LOST] == []
