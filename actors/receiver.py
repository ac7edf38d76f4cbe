"""A small receiver of deliveries, for the terminal, the demo and tests: checks each signature and writes down each
request before it answers.

It is no part of the engine. What it answers 2xx to is in its journal, also when the machine fails right after.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from outbox.signing import BadSignature, verify

BODY_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery that was accepted. `count` is how often this id was accepted by this receiver, from 1; `verified`
    False means that the receiver has no secret to check with."""

    id: str
    attempt: int
    possible_duplicate: bool
    payload: Any
    count: int
    verified: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "attempt": self.attempt,
            "possible_duplicate": self.possible_duplicate,
            "count": self.count,
            "verified": self.verified,
            "payload": self.payload,
        }


class Journal:
    """A file of JSON lines, each on the disk before `write` returns. None of them is ever changed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def write(self, received: Received) -> None:
        self._file.write(json.dumps(received.as_dict()).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class NoJournal:
    def write(self, received: Received) -> None:
        return None

    def close(self) -> None:
        return None


class Receiver:
    """Takes POSTs at any path. An async context manager; `port` 0 takes a free one, which `url` then tells.

    `secrets` are what one of the signatures must be made with; without any, everything is taken unverified."""

    def __init__(
        self,
        secrets: Sequence[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        journal: Journal | NoJournal | None = None,
        on_received: Callable[[Received], None] = lambda received: None,
        on_refused: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._secrets = tuple(secrets)
        self._host = host
        self._port = port
        self._journal = journal or NoJournal()
        self._on_received = on_received
        self._on_refused = on_refused
        self._counts: dict[str, int] = {}
        self._one_at_a_time = asyncio.Lock()
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_post("/{path:.*}", self._receive)
        self._runner = web.AppRunner(app, access_log=None)

    @property
    def url(self) -> str:
        """Where it listens, once entered."""
        host, port = self._runner.addresses[0][:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        self._journal.close()

    async def _receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            if self._secrets:
                verify(self._secrets, request.headers, body)
        except BadSignature as refused:
            self._on_refused(refused.message)
            return web.json_response({"error": refused.as_dict()}, status=401)
        try:
            payload = json.loads(body)
            attempt = int(request.headers.get("insika-attempt", "1"))
        except ValueError:
            return _bad_request("the body must be JSON and insika-attempt a number")
        async with self._one_at_a_time:
            received = self._count(request.headers, attempt, payload)
            await asyncio.to_thread(self._journal.write, received)
        self._on_received(received)
        return web.json_response({"received": received.id})

    def _count(self, headers: Mapping[str, str], attempt: int, payload: Any) -> Received:
        delivery_id = headers.get("webhook-id", "")
        self._counts[delivery_id] = self._counts.get(delivery_id, 0) + 1
        return Received(
            id=delivery_id,
            attempt=attempt,
            possible_duplicate=headers.get("insika-possible-duplicate") == "true",
            payload=payload,
            count=self._counts[delivery_id],
            verified=bool(self._secrets),
        )


def _bad_request(message: str) -> web.Response:
    return web.json_response({"error": {"type": "invalid_request", "message": message}}, status=400)
