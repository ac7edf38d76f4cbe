"""One connection to RabbitMQ that reads, where pika's own would not do. All of it belongs to one thread.

Two things differ from pika's, and both need its inner parts, which the tests of this file hold to account:

- A message whose headers pika cannot read (a time after the year 9999, tables a thousand deep) is delivered without
  them. pika's own takes the whole connection down, and does so again with each redelivery, for ever.
- Consumed messages can be given back by closing the channel and nothing else. pika cancels the consumer first; with a
  single active consumer the next one then begins *behind* what is still held here, and the order is lost. The broker
  takes a plain Channel.Close as one step: messages back in their places, consumer gone, then the next one's turn.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.adapters.select_connection import SelectConnection
from pika.exceptions import ChannelClosedByClient, InvalidFrameError, StreamLostError
from pika.frame import Header

from insika.producer.address import BrokerAddress

HEADERS_UNREADABLE = "insika-headers-unreadable"
"""The one header of a message whose own could not be read."""
ANSWER_S = 2.0
"""Seconds that a broker has to say good-bye."""
_CONTENT_CLASS = 12
"""Bytes before the properties in a content header: class, weight, body size (AMQP 0-9-1, section 2.3.5.2)."""
_EMPTY_TABLE = bytes(4)


def connect(address: BrokerAddress) -> BlockingConnection:
    """Raises what pika raises, and OSError."""
    return BlockingConnection(address.parameters, _impl_class=_Tolerant)  # type: ignore[arg-type]


def give_back(channel: BlockingChannel) -> None:
    """Close the channel as it is: the broker puts back what is not settled, in order, and only then looks for another
    consumer. Raises what pika raises when the connection is lost meanwhile, which has the same effect."""
    inner = channel._impl
    inner._closing_reason = ChannelClosedByClient(200, "given back")
    inner._set_state(inner.CLOSING)
    inner._rpc(spec.Channel.Close(200, "given back", 0, 0), inner._on_closeok, [spec.Channel.CloseOk])
    with no_longer_than(ANSWER_S, channel.connection):
        channel._flush_output(lambda: channel.is_closed)


class _Tolerant(SelectConnection):
    def _read_frame(self) -> Any:
        try:
            return super()._read_frame()
        except InvalidFrameError:
            raise
        except Exception:
            # Among others RecursionError, OverflowError and OSError, by what came from outside.
            read = _without_headers(self._frame_buffer)
            if read is None:
                raise
            return read


def _without_headers(data: bytes) -> tuple[int, Header] | None:
    """The content header at the start of `data`, which is complete, and how long it is. None: it is another frame."""
    kind, channel, size = struct.unpack_from(">BHL", data)
    if kind != spec.FRAME_HEADER:
        return None
    content = data[spec.FRAME_HEADER_SIZE : spec.FRAME_HEADER_SIZE + size]
    (body_size,) = struct.unpack_from(">Q", content, 4)
    try:
        properties = spec.BasicProperties().decode(_cut(content[_CONTENT_CLASS:]))
    except Exception:
        properties = pika.BasicProperties()
    properties.headers = {HEADERS_UNREADABLE: True}
    return spec.FRAME_HEADER_SIZE + size + spec.FRAME_END_SIZE, Header(channel, body_size, properties)


def _cut(properties: bytes) -> bytes:
    """The same properties with an empty table for headers. Those before it are short strings."""
    (flags,) = struct.unpack_from(">H", properties)
    at = 2
    for flag in (spec.BasicProperties.FLAG_CONTENT_TYPE, spec.BasicProperties.FLAG_CONTENT_ENCODING):
        if flags & flag:
            at += 1 + properties[at]
    (length,) = struct.unpack_from(">I", properties, at)
    return properties[:at] + _EMPTY_TABLE + properties[at + 4 + length :]


@contextmanager
def no_longer_than(seconds: float, connection: BlockingConnection) -> Iterator[None]:
    """A broker that does not answer what is asked within is cut off then, which ends the waiting as a loss."""
    inner = connection._impl
    alarm = inner._adapter_call_later(
        seconds, lambda: inner._terminate_stream(StreamLostError("the broker did not answer"))
    )
    try:
        yield
    finally:
        if connection.is_open:
            inner._adapter_remove_timeout(alarm)


def why_closed(channel: BlockingChannel) -> BaseException | None:
    """Why the broker closed a channel. None: it did not."""
    return channel._closing_reason
