"""A small receiver of deliveries, for the terminal, the demo and tests: checks each signature and writes down each
request before it answers.

It is no part of the engine. What it answers 2xx to is in its journal, also when the machine fails right after; what it
answers otherwise, for trying out retries, is not.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from outbox.signing import BadSignature, verify

BODY_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What the first `times` requests of each delivery are answered with (all of them when None); the later ones get
    200. `retry_after_s`: the seconds of a `Retry-After` header; None for no such header."""

    status: int = 200
    times: int | None = None
    retry_after_s: int | None = None

    def to(self, request: int) -> Answer:
        """The answer to a delivery's request of this number, from 1."""
        return self if self.times is None or request <= self.times else Answer()

    @property
    def accepts(self) -> bool:
        return 200 <= self.status < 300

    @property
    def headers(self) -> Mapping[str, str]:
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}


@dataclass(frozen=True, slots=True)
class Received:
    """One request with a delivery. `count` is how often this id was accepted by this receiver; `verified` False means
    that the receiver has no secret to check with; `answered` is the status of its answer."""

    id: str
    attempt: int
    possible_duplicate: bool
    payload: Any
    count: int
    verified: bool
    answered: int = 200

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "attempt": self.attempt,
            "possible_duplicate": self.possible_duplicate,
            "count": self.count,
            "verified": self.verified,
            "answered": self.answered,
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

    `secrets` are what one of the signatures must be made with; without any, everything is taken unverified. A delivery
    that `answer` does not accept is neither written down nor counted: `on_turned_away` hears of it."""

    def __init__(
        self,
        secrets: Sequence[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        journal: Journal | NoJournal | None = None,
        answer: Answer = Answer(),
        on_received: Callable[[Received], None] = lambda received: None,
        on_turned_away: Callable[[Received], None] = lambda received: None,
        on_refused: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._secrets = tuple(secrets)
        self._host = host
        self._port = port
        self._journal = journal or NoJournal()
        self._answer = answer
        self._on_received = on_received
        self._on_turned_away = on_turned_away
        self._on_refused = on_refused
        self._requests: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
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
            answer, received = self._take(request.headers, attempt, payload)
            if answer.accepts:
                await asyncio.to_thread(self._journal.write, received)
        (self._on_received if answer.accepts else self._on_turned_away)(received)
        told = {"received" if answer.accepts else "turned_away": received.id}
        return web.json_response(told, status=answer.status, headers=answer.headers)

    def _take(self, headers: Mapping[str, str], attempt: int, payload: Any) -> tuple[Answer, Received]:
        delivery_id = headers.get("webhook-id", "")
        self._requests[delivery_id] += 1
        answer = self._answer.to(self._requests[delivery_id])
        self._accepted[delivery_id] += answer.accepts
        return answer, Received(
            id=delivery_id,
            attempt=attempt,
            possible_duplicate=headers.get("insika-possible-duplicate") == "true",
            payload=payload,
            count=self._accepted[delivery_id],
            verified=bool(self._secrets),
            answered=answer.status,
        )


def _bad_request(message: str) -> web.Response:
    return web.json_response({"error": {"type": "invalid_request", "message": message}}, status=400)
