"""Looks at RabbitMQ for a diagnosis: which version it is, which queues there are, and who reads them.

It makes nothing: a queue is only declared where there is one, which tells whether that one is as it should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import ChannelClosedByBroker

from actors.broker.errors import BrokerRefuses, QueueDiffers
from actors.broker.preflight import connected
from actors.broker.topology import QUEUES, Queue, declare_queue
from actors.environment import QueueType

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """`messages` that wait for a reader; those in somebody's hands are not among them. `readers`: of a queue that only
    one may read at a time, all who stand by. `differs`: why it is not as this version declares it; "" when it is."""

    messages: int
    readers: int
    differs: str = ""


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """`name` is host, port and virtual host. A queue that is None is not there."""

    name: str
    version: str
    queues: Mapping[str, QueueFacts | None]


def inspect(amqp_url: str, queue_type: QueueType) -> BrokerFacts:
    """Blocks for up to some 15 s where nothing answers. Raises BrokerAway, BrokerRefuses, or InvalidConfiguration for a
    URL that is none."""
    with connected(amqp_url, "insika doctor") as (name, connection):
        queues = {queue.name: _queue(connection, queue, queue_type) for queue in QUEUES}
        return BrokerFacts(name, _version(connection), queues)


def _queue(connection: BlockingConnection, queue: Queue, queue_type: QueueType) -> QueueFacts | None:
    channel = connection.channel()  # of its own: an answer that is no ends it
    try:
        found = channel.queue_declare(queue.name, passive=True).method
    except ChannelClosedByBroker as error:
        if error.reply_code == _NOT_FOUND:
            return None
        raise BrokerRefuses(f"RabbitMQ refuses: {error.reply_text}") from None
    try:
        declare_queue(channel, queue, queue_type)
    except (QueueDiffers, BrokerRefuses) as difference:
        return QueueFacts(found.message_count, found.consumer_count, difference.message)
    channel.close()
    return QueueFacts(found.message_count, found.consumer_count)


def _version(connection: BlockingConnection) -> str:
    """What it said when it was greeted; pika keeps it to itself."""
    properties = connection._impl.server_properties or {}
    return str(properties.get("version", ""))
