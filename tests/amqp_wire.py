"""A wire to RabbitMQ that can be cut, held and spoken into, for what a real broker does only when it must."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pika
from pika import frame, spec


@dataclass
class Wire:
    """`url` leads to the broker through here. `connections`: how many were made. `open`: whether new ones are taken."""

    url: str
    connections: int = 0
    open: bool = True
    _answers: asyncio.Event = field(default_factory=asyncio.Event)
    _questions: asyncio.Event = field(default_factory=asyncio.Event)
    _clients: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Every connection is gone at once, with no word to either side."""
        for writer in self._clients:
            writer.transport.abort()

    def hold_answers(self) -> None:
        """What is sent to the broker arrives, and what it says does not come back."""
        self._answers.clear()

    def hold_questions(self) -> None:
        """Nothing more arrives at the broker."""
        self._questions.clear()

    def let_go(self) -> None:
        self._answers.set()
        self._questions.set()

    def say(self, channel: int, method: Any) -> None:
        """A frame to the client, as if the broker had sent it. Only while the broker is silent."""
        for writer in self._clients:
            writer.write(frame.Method(channel, method).marshal())

    def block(self, reason: str) -> None:
        self.say(0, spec.Connection.Blocked(reason))

    def unblock(self) -> None:
        self.say(0, spec.Connection.Unblocked())


@asynccontextmanager
async def wire(url: str) -> AsyncIterator[Wire]:
    parts = urlsplit(url)
    handlers: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        made.connections += 1
        made._clients.add(writer)
        try:
            if made.open:
                await _carry(made, reader, writer, parts.hostname or "", parts.port or 5672)
        except (OSError, asyncio.CancelledError):
            pass  # asyncio looks at how this ends, and stumbles over one that was cancelled
        finally:
            made._clients.discard(writer)
            handlers.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user = f"{parts.username}:{parts.password}@" if parts.username else ""
    made = Wire(urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}")))
    made.let_go()
    try:
        yield made
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


async def _carry(made: Wire, reader: Any, writer: Any, host: str, port: int) -> None:
    upstream, to_broker = await asyncio.open_connection(host, port)
    from_client = asyncio.create_task(_pump(reader, to_broker, made._questions))
    from_broker = asyncio.create_task(_pump(upstream, writer, made._answers))
    try:
        await asyncio.wait([from_client, from_broker], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in (from_client, from_broker):
            pump.cancel()
        await asyncio.gather(from_client, from_broker, return_exceptions=True)
        to_broker.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            await may.wait()
            writer.write(data)
            await writer.drain()


@contextmanager
def channel(url: str) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    """A channel straight to the broker, for what a test looks at and prepares."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


def drain(url: str, queue: str) -> list[tuple[Any, bytes]]:
    """All that is on the queue, as (properties, body)."""
    found = []
    with channel(url) as reading:
        while True:
            got, properties, body = reading.basic_get(queue, auto_ack=True)
            if got is None:
                return found
            found.append((properties, body))


def declare(url: str, queue: str, **arguments: Any) -> None:
    with channel(url) as making:
        making.queue_declare(
            queue, durable=True, arguments={name.replace("_", "-"): it for name, it in arguments.items()}
        )
