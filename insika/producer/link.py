"""One connection to the broker with one channel that confirms, from its opening to its loss. It is never reopened.

It belongs to the thread of the loop that it was opened in, and knows no queue of messages: `LinkOwner` is told what the
broker says.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pika import spec
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout
from pika.channel import Channel
from pika.connection import Connection
from pika.exceptions import (
    AuthenticationError,
    ChannelClosed,
    ChannelClosedByBroker,
    ConnectionClosed,
    ConnectionClosedByBroker,
    ConnectionOpenAborted,
    IncompatibleProtocolError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from insika.producer.address import BrokerAddress
from insika.producer.window import Outgoing

CLOSE_S = 2.0
"""Seconds that a broker has to say good-bye."""
_FINAL = (AuthenticationError, ProbableAuthenticationError, ProbableAccessDeniedError)
_NOBODY_S_FAULT = (320, 541)
"""CONNECTION_FORCED (an operator, or a broker that stops) and INTERNAL_ERROR: not said over a message."""
_BROKER_S_WORDS = re.compile(r"ConnectionClosedByBroker: \(\d+\) (['\"])(?P<said>.*)\1")
"""How pika quotes the broker in the errors of a connection that was refused while it was opened."""


class LinkOwner(Protocol):
    """All are called on the loop's thread, and must not block."""

    def confirmed(self, tag: int, *, multiple: bool, taken: bool) -> None: ...

    def returned(self, address: tuple[str, str, str | None], why: str) -> None: ...

    def unblocked(self) -> None: ...


class Unopened(Exception):
    """No connection came about. `final`: the broker knows us not, or lets us not in; asking again changes nothing."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.final = final


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a connection is no more. `blaming`: the broker closed it over something that was published."""

    why: str
    blaming: bool


class Link:
    """Made by `open_link`. `lost` ends with the Loss when it is no longer usable."""

    def __init__(self, address: BrokerAddress, owner: LinkOwner) -> None:
        loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[Loss] = loop.create_future()
        self._owner = owner
        self._ready: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._blocked: str | None = None
        self._tag = 0
        self._channel: Channel | None = None
        self._connection: Connection | None = None
        self._unwanted = False
        AsyncioConnection.create_connection([address.parameters], on_done=self._on_opened, custom_ioloop=loop)

    @property
    def blocked(self) -> str | None:
        """Why the broker takes nothing at the moment: its own words. None when it does."""
        return self._blocked

    @property
    def usable(self) -> bool:
        return self._channel is not None and not self.lost.done()

    def publish(self, message: Outgoing) -> int:
        """Write a message to the connection. The tag under which it will be confirmed. Raises what pika raises for what
        AMQP cannot carry; then nothing was written."""
        if self._channel is None:
            raise RuntimeError("published before there was a channel")
        self._channel.basic_publish(
            message.exchange, message.routing_key, message.body, message.properties, message.mandatory
        )
        self._tag += 1
        return self._tag

    async def ready(self) -> None:
        """Raises Unopened."""
        await self._ready

    async def close(self) -> None:
        """Take leave; cut off after `CLOSE_S`."""
        self._unwanted = True
        if self._connection is not None and not (self._connection.is_closing or self._connection.is_closed):
            self._connection.close()
        await asyncio.wait([self._closed], timeout=CLOSE_S)

    def _on_opened(self, result: Connection | BaseException) -> None:
        if isinstance(result, BaseException):
            self._lose(result)
            self._closed.set_result(None)
            return
        self._connection = result
        result.add_on_close_callback(self._on_connection_closed)
        result.add_on_connection_blocked_callback(self._on_blocked)
        result.add_on_connection_unblocked_callback(self._on_unblocked)
        if self._unwanted:
            # Not earlier: pika 1.4 stumbles over a connection that is closed, or given up, while it is made.
            result.close()
        else:
            result.channel(on_open_callback=self._on_channel_open)

    def _on_channel_open(self, channel: Channel) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirmation, callback=self._on_confirming)

    def _on_confirming(self, frame: Any) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def _on_connection_closed(self, connection: Any, error: BaseException) -> None:
        self._lose(error)
        self._closed.set_result(None)

    def _on_channel_closed(self, channel: Channel, error: BaseException) -> None:
        self._lose(error)
        if self._connection is not None and self._connection.is_open:
            self._connection.close()

    def _lose(self, error: BaseException) -> None:
        """The first reason is the one that counts: what follows, follows from it."""
        if not self.lost.done():
            self.lost.set_result(Loss(told(error), _blames(error)))
        if not self._ready.done():
            final = next((it for it in _causes(error) if isinstance(it, _FINAL)), None)
            self._ready.set_exception(Unopened(told(final or error), final=final is not None))

    def _on_confirmation(self, frame: Any) -> None:
        taken = isinstance(frame.method, spec.Basic.Ack)
        self._owner.confirmed(frame.method.delivery_tag, multiple=frame.method.multiple, taken=taken)

    def _on_return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        address = (method.exchange, method.routing_key, properties.message_id)
        self._owner.returned(address, f"{method.reply_text}".lower().replace("_", " "))

    def _on_blocked(self, connection: Any, frame: Any) -> None:
        self._blocked = str(frame.method.reason or "no reason given")

    def _on_unblocked(self, connection: Any, frame: Any) -> None:
        self._blocked = None
        self._owner.unblocked()


async def open_link(address: BrokerAddress, owner: LinkOwner) -> Link:
    """A connection that is ready to publish. Raises Unopened."""
    link = Link(address, owner)
    try:
        async with asyncio.timeout(2 * (address.parameters.stack_timeout or CLOSE_S)):
            await link.ready()
    except TimeoutError:
        await link.close()
        raise Unopened("it let us in and then said nothing") from None
    except asyncio.CancelledError:
        await link.close()
        raise
    return link


def _blames(error: BaseException) -> bool:
    if not isinstance(error, ConnectionClosedByBroker | ChannelClosedByBroker):
        return False
    return error.reply_code not in _NOBODY_S_FAULT


def told(error: BaseException) -> str:
    """What went wrong, in the words of the broker or the system, without pika's wrapping."""
    if isinstance(error, ConnectionClosed | ChannelClosed):
        return str(error.reply_text)
    if isinstance(error, ConnectionOpenAborted | AMQPConnectorStackTimeout):
        return "it did not answer in time"
    if quoted := _BROKER_S_WORDS.search(str(error)):
        return quoted["said"]
    *_, cause = _causes(error)
    if cause is not error:
        return told(cause)
    if isinstance(error, IncompatibleProtocolError):
        return "it does not speak AMQP 0-9-1"
    said = error.strerror if isinstance(error, OSError) else str(error)
    return said or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What pika has wrapped into the error: one for each address that was tried, in their order."""
    held = [*getattr(error, "exceptions", ()), getattr(error, "exception", None), *error.args]
    within = [it for it in held if isinstance(it, BaseException)]
    if not within:
        yield error
    for it in within:
        yield from _causes(it)
