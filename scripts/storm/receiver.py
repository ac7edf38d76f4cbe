"""The receiver of a storm, a process of its own: `python -m scripts.storm.receiver BOOK SEED` prints its URL.

It checks each signature and writes each POST down before it answers. Mostly it takes what comes. At times it refuses
for certain (and takes nothing), and at times it lets the sender guess: it takes the delivery and answers too late, or
not at all, or a proxy in front of it says 502. What it does follows from the seed, the delivery and the attempt.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
import socket
import struct
import sys
from pathlib import Path

from aiohttp import web

from outbox.signing import BadSignature, verify
from scripts.storm.books import Book
from scripts.storm.folder import DELIVERY_TIMEOUT_S, SECRET

_REFUSES_AT_MOST = 2
"""Attempts of one delivery. The later ones are taken, so that none is given up."""


class Manner(enum.StrEnum):
    TAKES = "takes"
    TAKES_SLOWLY = "takes slowly"
    BUSY = "answers 503 with Retry-After"
    BROKEN = "answers 500"
    THROTTLES = "answers 429"
    TOO_LATE = "takes, and answers too late"
    RESETS = "takes, and resets"
    BAD_GATEWAY = "takes, and a proxy answers 502"
    DEAF = "resets before it takes"


TAKEN = frozenset({Manner.TAKES, Manner.TAKES_SLOWLY, Manner.TOO_LATE, Manner.RESETS, Manner.BAD_GATEWAY})
"""By these the receiver has acted on the delivery."""
REFUSED = frozenset({Manner.BUSY, Manner.BROKEN, Manner.THROTTLES})
"""By these it says, for certain, that it has not."""
LEAVES_OPEN = frozenset({Manner.TOO_LATE, Manner.RESETS, Manner.BAD_GATEWAY, Manner.DEAF})
"""By these the sender cannot know."""

_PER_THOUSAND = {
    Manner.TAKES_SLOWLY: 250,
    Manner.BUSY: 30,
    Manner.BROKEN: 20,
    Manner.THROTTLES: 20,
    Manner.TOO_LATE: 8,
    Manner.RESETS: 8,
    Manner.BAD_GATEWAY: 8,
    Manner.DEAF: 8,
}
_STATUSES = {Manner.BUSY: 503, Manner.BROKEN: 500, Manner.THROTTLES: 429, Manner.BAD_GATEWAY: 502}


def manner_of(seed: int, delivery_id: str, attempt: int) -> Manner:
    if attempt > _REFUSES_AT_MOST:
        return Manner.TAKES
    digest = hashlib.sha256(f"{seed} {delivery_id} {attempt}".encode()).digest()
    number = int.from_bytes(digest[:4], "big") % 1000
    for manner, share in _PER_THOUSAND.items():
        if number < share:
            return manner
        number -= share
    return Manner.TAKES


class StormReceiver:
    def __init__(self, book: Book, seed: int) -> None:
        self._book = book
        self._seed = seed

    async def receive(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        delivery_id, attempt = request.headers.get("webhook-id", ""), int(request.headers.get("insika-attempt", "0"))
        try:
            verify([SECRET], request.headers, body)
        except BadSignature as refused:
            self._book("forged", id=delivery_id, attempt=attempt, why=refused.message)
            return web.Response(status=401)
        manner = manner_of(self._seed, delivery_id, attempt)
        self._book(
            "post",
            id=delivery_id,
            attempt=attempt,
            manner=manner,
            taken=manner in TAKEN,
            marked=request.headers.get("insika-possible-duplicate") == "true",
            body=body.decode(),
        )
        return await self._answer(request, manner)

    async def _answer(self, request: web.Request, manner: Manner) -> web.StreamResponse:
        if manner is Manner.TAKES_SLOWLY:
            await asyncio.sleep(DELIVERY_TIMEOUT_S / 4)
        elif manner is Manner.TOO_LATE:
            await asyncio.sleep(2 * DELIVERY_TIMEOUT_S)
        elif manner in (Manner.RESETS, Manner.DEAF):
            _reset(request)
        headers = {"Retry-After": "1"} if manner is Manner.BUSY else {}
        return web.Response(status=_STATUSES.get(manner, 200), headers=headers)


def _reset(request: web.Request) -> None:
    """Close with RST, as a process that is killed does."""
    transport = request.transport
    if transport is not None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


async def serve(book: Path, seed: int) -> None:
    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.router.add_post("/hook", StormReceiver(Book(book), seed).receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}/hook\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
