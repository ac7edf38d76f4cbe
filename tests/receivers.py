"""A receiver that lies, hangs, resets and babbles, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Seen:
    """One connection, and what came over it: the whole request, or as much of it as was read."""

    head: str = ""
    body: bytes = b""

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.strip().lower() == name:
                return value.strip()
        return None


Behaviour = Callable[["Connection"], Awaitable[None]]


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen) -> None:
        self.reader, self.writer, self.seen = reader, writer, seen

    async def read_request(self) -> None:
        head = await self.reader.readuntil(b"\r\n\r\n")
        self.seen.head = head.decode("latin-1")
        self.seen.body = await self.reader.readexactly(int(self.seen.header("content-length") or 0))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Close with RST, as a process that is killed or a host that restarts does."""
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def until_the_other_side_goes(self) -> None:
        try:
            await self.reader.read()
        except ConnectionError:
            pass


@dataclass
class LyingReceiver:
    """Behaves on its nth connection as the nth behaviour says, and as the last one ever after."""

    behaviours: list[Behaviour]
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def __aenter__(self) -> Self:
        self._handlers: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        behave = self.behaviours[min(len(self.seen), len(self.behaviours) - 1)]
        seen = Seen()
        self.seen.append(seen)
        try:
            await behave(Connection(reader, writer, seen))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self._handlers.discard(task)


def answers(status: int, *headers: str, body: bytes = b"") -> Behaviour:
    async def behave(connection: Connection) -> None:
        await connection.read_request()
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
        await connection.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return behave


def babbles(*parts: bytes) -> Behaviour:
    """Reads the request, writes these bytes, and closes."""

    async def behave(connection: Connection) -> None:
        await connection.read_request()
        for part in parts:
            await connection.send(part)

    return behave


def answers_without_end(head: bytes, chunk: bytes) -> Behaviour:
    async def behave(connection: Connection) -> None:
        await connection.read_request()
        await connection.send(head)
        while True:
            await connection.send(chunk)

    return behave


async def never_answers(connection: Connection) -> None:
    await connection.read_request()
    await connection.until_the_other_side_goes()


async def resets_after_reading(connection: Connection) -> None:
    await connection.read_request()
    connection.reset()


async def closes_after_reading(connection: Connection) -> None:
    await connection.read_request()


async def closes_before_reading(connection: Connection) -> None:
    return None


async def resets_before_reading(connection: Connection) -> None:
    connection.reset()
