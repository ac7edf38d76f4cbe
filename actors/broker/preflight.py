"""Whether RabbitMQ is there and will do, asked once. Whoever starts a process asks until it is or the time is up.

await wait_for("RabbitMQ", lambda: require_broker(amqp_url, queue_type), BrokerAway)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError, ProbableAccessDeniedError, ProbableAuthenticationError

from actors.broker.errors import BrokerAway, BrokerRefuses
from actors.broker.link import connect
from actors.broker.topology import declare
from actors.environment import QueueType
from insika.producer.address import broker_address
from insika.producer.link import told


async def require_broker(amqp_url: str, queue_type: QueueType) -> None:
    """Connect, and declare what is missing. Takes up to some 10 s where nothing answers.

    Raises BrokerAway, after which to ask again; and, for a person to mend, BrokerRefuses (the password, the virtual
    host, permissions), QueueDiffers, or InvalidConfiguration for a URL that is none."""
    await asyncio.to_thread(_require, amqp_url, queue_type)


def _require(amqp_url: str, queue_type: QueueType) -> None:
    with connected(amqp_url, "insika preflight") as (_, connection):
        declare(connection.channel(), queue_type)


@contextmanager
def connected(amqp_url: str, connection_name: str) -> Iterator[tuple[str, BlockingConnection]]:
    """A connection, and what it is to be called for people. Raises as `require_broker` does, also when it is lost."""
    address = broker_address(amqp_url, connection_name=connection_name, where="INSIKA_AMQP_URL")
    try:
        connection = connect(address)
        try:
            yield address.name, connection
        finally:
            if connection.is_open:
                connection.close()
    except ProbableAuthenticationError:
        why = (
            "does not know the user or the password that INSIKA_AMQP_URL names, or does not let that user in from here"
        )
        raise BrokerRefuses(f"RabbitMQ at {address.name} {why}") from None
    except ProbableAccessDeniedError as error:
        why = "create the virtual host, or let the user in (rabbitmqctl add_vhost, set_permissions)"
        raise BrokerRefuses(f"RabbitMQ at {address.name} refuses: {told(error)}; {why}") from None
    except (AMQPError, OSError) as error:
        raise BrokerAway(f"RabbitMQ at {address.name} cannot be reached: {told(error)}") from None
