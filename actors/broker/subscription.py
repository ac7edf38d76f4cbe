"""One channel that consumes one queue, from its opening to its end. It is never reopened, so a tag is never mistaken
for one of another channel. It belongs to the thread of its connection; `ended` may be read from any.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from pika import spec
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPChannelError

from actors.broker.link import give_back, why_closed


class SubscriptionLost(AMQPChannelError):
    """The broker ended it: the queue is gone, or it found fault with the channel."""


@dataclass(frozen=True, slots=True)
class Arrived:
    method: spec.Basic.Deliver
    properties: spec.BasicProperties
    body: bytes


class Subscription:
    """`prefetch`: how many messages may be here unsettled, from 1. `arrived` are those nobody has taken yet, in order.

    Made on an open connection; raises what pika raises."""

    def __init__(self, connection: BlockingConnection, queue: str, prefetch: int) -> None:
        self.arrived: deque[Arrived] = deque()
        self.ended = False
        self._cancelled = False
        self._prefetch = prefetch
        self._channel = connection.channel()
        self._channel.add_on_cancel_callback(self._on_cancelled)
        self._channel.basic_qos(prefetch_count=prefetch)
        self._channel.basic_consume(queue, self._on_message)

    def check(self) -> None:
        """Raises SubscriptionLost when the broker has ended it, and says why."""
        if self._cancelled:
            raise SubscriptionLost("the queue was deleted or has moved")
        if self._channel.is_closed:
            raise why_closed(self._channel) or SubscriptionLost("the channel was closed")

    def settle(self, tag: int) -> None:
        self._channel.basic_ack(tag)

    def settle_up_to(self, tag: int) -> None:
        """This one and all that were fetched before it."""
        self._channel.basic_ack(tag, multiple=True)

    def settle_surely(self, tag: int) -> None:
        """Returns when the broker has read it: it does things on one channel in order, and answers this question."""
        self._channel.basic_ack(tag)
        self._channel.basic_qos(prefetch_count=self._prefetch)

    def give_back(self) -> None:
        """Everything unsettled goes back to its place in the queue, in one step."""
        self.end()
        if self._channel.is_open:
            give_back(self._channel)

    def end(self) -> None:
        """Nothing of it counts any more."""
        self.ended = True
        self.arrived.clear()

    def _on_message(
        self, channel: Any, method: spec.Basic.Deliver, properties: spec.BasicProperties, body: bytes
    ) -> None:
        if not self.ended:
            self.arrived.append(Arrived(method, properties, body))

    def _on_cancelled(self, frame: Any) -> None:
        self._cancelled = True
