"""Looks at RabbitMQ for a diagnosis: which version it is, which queues there are, and who reads them.

It makes nothing: a queue is only declared where there is one, which tells whether that one is as it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker

from actors.broker.errors import BrokerRefuses, QueueDiffers
from actors.broker.preflight import connected
from actors.broker.topology import EXCHANGE, QUEUES, Queue, declare_exchange, declare_queue
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
    """`name` is host, port and virtual host. A queue that is None is not there. `exchange`: why that one is not as this
    version declares it, "" when it is, None when it is not there."""

    name: str
    version: str
    queues: Mapping[str, QueueFacts | None]
    exchange: str | None = ""


def inspect(amqp_url: str, queue_type: QueueType) -> BrokerFacts:
    """Blocks for up to some 15 s where nothing answers. Raises BrokerAway, BrokerRefuses, or InvalidConfiguration for a
    URL that is none."""
    with connected(amqp_url, "insika doctor") as (name, connection):
        queues = {queue.name: _queue(connection, queue, queue_type) for queue in QUEUES}
        return BrokerFacts(name, _version(connection), queues, _exchange(connection))


def _queue(connection: BlockingConnection, queue: Queue, queue_type: QueueType) -> QueueFacts | None:
    channel = connection.channel()  # of its own: an answer that is no ends it
    there = _there(lambda: channel.queue_declare(queue.name, passive=True))
    if there is None:
        return None
    differs = _differs(channel, lambda: declare_queue(channel, queue, queue_type))
    return QueueFacts(there.method.message_count, there.method.consumer_count, differs)


def _exchange(connection: BlockingConnection) -> str | None:
    channel = connection.channel()
    if _there(lambda: channel.exchange_declare(EXCHANGE, passive=True)) is None:
        return None
    return _differs(channel, lambda: declare_exchange(channel))


def _there(ask: Callable[[], Any]) -> Any:
    """What is told of something that is there, else None."""
    try:
        return ask()
    except ChannelClosedByBroker as error:
        if error.reply_code == _NOT_FOUND:
            return None
        raise BrokerRefuses(f"RabbitMQ refuses: {error.reply_text}") from None


def _differs(channel: BlockingChannel, declare: Callable[[], None]) -> str:
    """Of something that is there: why it cannot be declared as this version does."""
    try:
        declare()
    except (QueueDiffers, BrokerRefuses) as difference:
        return difference.message
    channel.close()
    return ""


def _version(connection: BlockingConnection) -> str:
    """What it said when it was greeted; pika keeps it to itself."""
    properties = connection._impl.server_properties or {}
    return str(properties.get("version", ""))
