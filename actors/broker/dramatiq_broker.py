"""dramatiq's broker for RabbitMQ, with everything left to others that is not reading: queues are declared by topology,
and what travels is published by the producer's thread. Messages are built by the consumer, from raw bodies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from actors.broker.consumer import Line, QueueConsumer
from actors.broker.kept_connection import KeptConnection
from actors.broker.middleware import middleware
from actors.environment import QueueType
from insika.producer.address import BrokerAddress


class InsikaBroker(RabbitmqBroker):
    """`lines` are the queues it reads, by actor's name; what they hold is only ever given to that actor. `jobs` are
    those of them whose messages must not be lost."""

    def __init__(
        self, address: BrokerAddress, queue_type: QueueType, lines: Mapping[str, Line], jobs: frozenset[str]
    ) -> None:
        super().__init__(confirm_delivery=True, middleware=middleware(jobs))
        self.parameters = address.parameters  # type: ignore[assignment]  # for what someone enqueues through dramatiq itself
        self.stopping = threading.Event()
        self._address = address
        self._queue_type = queue_type
        self._lines = {line.queue: line for line in lines.values()}
        self._connections: list[KeptConnection] = []

    def act(self, actor: str, queue: str, act: Callable[..., None]) -> None:
        """Give what is read from `queue` to `act`."""
        dramatiq.actor(actor_name=actor, queue_name=queue, broker=self)(act)

    def stop_reading(self) -> None:
        """Hand out nothing more. What is with actors is still settled."""
        self.stopping.set()
        for connection in self._connections:
            connection.nudge()

    def declare_queue(self, queue_name: str, *, ensure: bool = False) -> None:
        """Let the Worker know that there is one. dramatiq would add a queue for delays and one for the dead to it."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Any:
        """How many are fetched ahead is the line's to say, not the Worker's."""
        connection = KeptConnection(self._address, self._queue_type, queue_name)
        self._connections.append(connection)
        return QueueConsumer(self._lines[queue_name], connection, self.stopping, timeout / 1000)
