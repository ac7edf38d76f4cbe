"""The queues and the exchange, and what they are declared with.

Arguments of a queue cannot be changed later, so only what must be so stands here; limits that an operator may want to
tune (lengths, times to live) belong into policies. Everything is durable and known to RabbitMQ 3.10 and 4.x alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from actors.broker.errors import BrokerRefuses, QueueDiffers
from actors.environment import QueueType

TURNS = "insika.turns"
DEAD = "insika.turns.dead"
SESSIONS = "insika.sessions"
OUTBOX = "insika.outbox"
EXCHANGE = "insika"
TURNS_KEY = "turns"
"""With this routing key the exchange leads to `TURNS`; the default exchange leads there by the queue's name."""

_NO_DELIVERY_LIMIT = 1_000_000
"""In effect none. Left out, RabbitMQ 4.x sets 20, and each lost connection counts against every message that was
fetched ahead: jobs that nobody has looked at yet would leave the line. Its -1 is an error in 3.x."""
_DEAD_LETTERS: Mapping[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
# Without these two a quorum queue forgets a message as soon as it has sent it to the dead letters, arrived or not. They
# come as a pair, and the second changes nothing while the queue has no maximum length.
_DEAD_LETTERS_SURELY: Mapping[str, Any] = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
_INEQUIVALENT = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<kind>\w+) '(?P<name>[^']+)' in vhost '(?P<vhost>.*)': "
    r"received (?P<ours>.+) but current is (?P<theirs>.+)"
)
_ACCESS_REFUSED, _PRECONDITION_FAILED = 403, 406


@dataclass(frozen=True, slots=True)
class Queue:
    """`always` is declared on both types, `on_quorum` on that one only."""

    name: str
    always: Mapping[str, Any] = field(default_factory=dict)
    on_quorum: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self, queue_type: QueueType) -> dict[str, Any]:
        # The type is always said: what a virtual host takes for a default is the operator's, and may change.
        arguments = {"x-queue-type": str(queue_type), **self.always}
        if queue_type is QueueType.QUORUM:
            arguments |= {"x-delivery-limit": _NO_DELIVERY_LIMIT, **self.on_quorum}
        return arguments


QUEUES = (
    Queue(DEAD),
    Queue(TURNS, {"x-single-active-consumer": True, **_DEAD_LETTERS}, _DEAD_LETTERS_SURELY),
    Queue(SESSIONS),
    Queue(OUTBOX),
)


def declare(channel: BlockingChannel, queue_type: QueueType) -> None:
    """Make what is missing; what is there stays as it is. Raises QueueDiffers or BrokerRefuses, after which the channel
    is closed, and whatever pika raises when the connection is lost."""
    for queue in QUEUES:
        declare_queue(channel, queue, queue_type)
    declare_exchange(channel)
    _ask(lambda: channel.queue_bind(TURNS, EXCHANGE, TURNS_KEY))


def declare_queue(channel: BlockingChannel, queue: Queue, queue_type: QueueType) -> None:
    """One of them. Raises as `declare` does."""
    _ask(lambda: channel.queue_declare(queue.name, durable=True, arguments=queue.arguments(queue_type)))


def declare_exchange(channel: BlockingChannel) -> None:
    """Raises as `declare` does."""
    _ask(lambda: channel.exchange_declare(EXCHANGE, "topic", durable=True))


def _ask(question: Callable[[], object]) -> None:
    try:
        question()
    except ChannelClosedByBroker as error:
        text = str(error.reply_text)
        if error.reply_code == _PRECONDITION_FAILED and (found := _INEQUIVALENT.search(text)):
            raise QueueDiffers(_difference(found)) from None
        if error.reply_code == _ACCESS_REFUSED:
            why = "the user needs the permissions to configure, write and read `insika.*`, and to write `amq.default`"
            raise BrokerRefuses(f"RabbitMQ refuses: {text}; {why}") from None
        raise


def _difference(found: re.Match[str]) -> str:
    name, vhost, argument = found["name"], found["vhost"], found["argument"]
    differs = (
        f"the {found['kind']} {name} exists in virtual host {vhost} with another {argument}: "
        f"there it is {_shown(found['theirs'])}, and this process declares {_shown(found['ours'])}"
    )
    anew = f"let it run empty, delete it, and start again (rabbitmqctl delete_queue --vhost {vhost} {name})"
    if argument == "x-queue-type":
        return f"{differs}. Either set INSIKA_QUEUE_TYPE to {_shown(found['theirs'])}, or {anew}"
    if found["kind"] != "queue":
        return f"{differs}. Delete it and start again"
    return f"{differs}. A queue's arguments cannot be changed: {anew}"


def _shown(value: str) -> str:
    """RabbitMQ says `'x'`, `none`, or `the value 'x' of type 'y'`."""
    quoted = re.search(r"'([^']*)'", value)
    return quoted[1] if quoted else value
