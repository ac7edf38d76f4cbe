"""The HTTP half of every fake: takes requests, keeps them, has them judged, and sends the answer, or the trouble.

What is vendor-specific stands behind `Vendor`'s abstract methods: reading, judging and speaking.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from insika.messages import Usage
from insika.ports import ModelRequest
from insika.providers.scene import Scene
from insika.providers.script import ALL_SAID, Call, Calls, Script
from tests.vendors.refusals import Refusal
from tests.vendors.seen import SECRET_HEADERS, Seen
from tests.vendors.spoken import CutInText, Spoken, made_id, spoken
from tests.vendors.troubles import Breaks, Cuts, Ending, Garbles, Refuses, Resets, Stalls, Trouble, Waits

Scripts = Script | Mapping[str, Script]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, ready to be sent: as events, each the bytes of one, and whole. `texts`: which of the events carry a
    piece of the visible text."""

    events: Sequence[bytes]
    texts: Sequence[int]
    whole: Mapping[str, Any]
    usage: Usage


class Vendor(abc.ABC):
    """A fake vendor. `scripts`: one for every model, or one for each by name. `keys`: the API keys that are taken.

    `troubles` are made one for each request, in order of arrival, before the script is asked; `choose`, when set, is
    asked first. `gate`, once set, lets go on what `Waits`. `shred`, when set, is the number of bytes in one write:
    events and characters are then torn anywhere. `cache_minimum` replaces the smallest prompt that is cached.
    """

    def __init__(self, scripts: Scripts, *, keys: Sequence[str], cache_minimum: int | None = None) -> None:
        self._scripts = scripts
        self.keys = frozenset(keys)
        self.cache_minimum = cache_minimum
        self.requests: list[Seen] = []
        self.troubles: deque[Trouble] = deque()
        self.choose: Callable[[Seen], Trouble | None] = lambda seen: None
        self.gate = asyncio.Event()
        self.shred: int | None = None
        self.port = 0
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until `holds` of the requests seen so far; asked after everything that happens here."""
        while not holds():
            await self._changed.wait()

    def _tell(self) -> None:
        happened, self._changed = self._changed, asyncio.Event()
        happened.set()

    # --- what a vendor does in its own way ---

    @property
    def key(self) -> str:
        """One that is taken."""
        return sorted(self.keys)[0]

    @property
    @abc.abstractmethod
    def base_url(self) -> str:
        """What the vendor's own SDK is given as `base_url`."""

    @property
    @abc.abstractmethod
    def paths(self) -> Sequence[str]:
        """Where requests are taken."""

    @abc.abstractmethod
    def judge(self, seen: Seen, key: str | None) -> Sequence[Refusal]:
        """What is wrong with the request: the first is answered, all are kept. Reads `seen.raw` into `seen.body` and
        `seen.pieces`."""

    @abc.abstractmethod
    def as_house(self, body: Mapping[str, Any]) -> ModelRequest: ...

    @abc.abstractmethod
    def speak(self, seen: Seen, said: Spoken) -> Reply: ...

    @abc.abstractmethod
    def error(self, refusal: Refusal, request_id: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Body and headers."""

    @abc.abstractmethod
    def broken(self, trouble: Breaks, request_id: str) -> bytes:
        """The event of an error in mid-stream."""

    @property
    @abc.abstractmethod
    def keep_alive(self) -> bytes: ...

    @abc.abstractmethod
    def key_of(self, headers: Mapping[str, str]) -> str | None: ...

    # --- the answer to one request ---

    async def take(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        shown = {name: value for name, value in headers.items() if name not in SECRET_HEADERS}
        seen = Seen(len(self.requests), request.method, request.path, shown, b"")
        self.requests.append(seen)
        self._tell()
        seen.raw = await request.read()
        seen.refusals = tuple(self.judge(seen, self.key_of(headers)))
        seen.trouble = self.choose(seen) or (self.troubles.popleft() if self.troubles else None)
        self._tell()
        try:
            return await self._answer(request, seen)
        except (ConnectionError, asyncio.CancelledError):
            seen.gone = True
            raise
        finally:
            self._tell()

    async def _answer(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if response := await self._before(request, seen):
            return response
        if seen.refusals:
            return self._refuse(seen, seen.refusals[0])
        said = self._ask(seen)
        if seen.trouble is None and said.trouble is not None:
            seen.trouble = said.trouble
            if response := await self._before(request, seen):
                return response
        reply = self.speak(seen, said)
        seen.status, seen.usage = 200, reply.usage
        if not seen.streamed:
            seen.finished = True
            return web.json_response(dict(reply.whole), headers=self._ids(seen))
        return await self._stream(request, seen, reply)

    async def _before(self, request: web.Request, seen: Seen) -> web.StreamResponse | None:
        """The troubles that come instead of an answer, or before one."""
        match seen.trouble:
            case Refuses() as told:
                refusal = Refusal("told", told.message, told.status, told.kind, code=told.code)
                return self._refuse(seen, refusal, told)
            case Resets():
                _reset(request)
                raise ConnectionResetError("the fake was told to")
            case Waits(headers_first=False) as wait:
                await self._wait(wait)
        return None

    def _ask(self, seen: Seen) -> Spoken:
        scripts = self._scripts
        script = scripts if isinstance(scripts, Script) else scripts[seen.model]
        scene = Scene.of(self.as_house(seen.body))
        step = script.answer(scene)
        said = spoken(step)
        if scene.tools or not said.calls or isinstance(step, (Call, Calls)):
            return said  # of its own steps a script knows when to call
        return replace(said, calls=(), text=said.text or ALL_SAID.text)

    def _refuse(self, seen: Seen, refusal: Refusal, told: Refuses | None = None) -> web.Response:
        seen.status, seen.finished = refusal.status, True
        body, headers = self.error(refusal, self._id(seen))
        all_headers = {**self._ids(seen), **headers, **(dict(told.headers) if told else {})}
        if told is not None and told.body is not None:
            return web.Response(text=told.body, status=refusal.status, headers=all_headers, content_type="text/html")
        return web.json_response(dict(body), status=refusal.status, headers=all_headers)

    async def _stream(self, request: web.Request, seen: Seen, reply: Reply) -> web.StreamResponse:
        kind = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        response = web.StreamResponse(headers={**self._ids(seen), **kind})
        response.enable_chunked_encoding()
        await response.prepare(request)
        trouble = _by_events(seen.trouble, reply)
        if isinstance(trouble, Waits):
            await self._wait(trouble)
        for index, event in enumerate(reply.events):
            if await self._disturbed(request, response, seen, trouble, index, event):
                return response
            garbled = isinstance(trouble, Garbles) and trouble.at == index
            await self._send(response, trouble.raw.encode() if garbled and isinstance(trouble, Garbles) else event)
            seen.events = index + 1
            self._tell()
        if await self._disturbed(request, response, seen, trouble, len(reply.events), b""):
            return response
        await response.write_eof()
        seen.finished = True
        return response

    async def _disturbed(
        self,
        request: web.Request,
        response: web.StreamResponse,
        seen: Seen,
        trouble: Trouble | None,
        index: int,
        event: bytes,
    ) -> bool:
        """Whether the stream ends here."""
        match trouble:
            case Cuts(after=after, bytes=part, ending=ending) if index == after:
                await self._send(response, event[:part])
                if ending is Ending.RESET:
                    _reset(request)
                elif ending is Ending.CLOSE and request.transport is not None:
                    request.transport.close()
                else:
                    await response.write_eof()
                return True
            case Breaks(after=after) if index == after:
                await self._send(response, self.broken(trouble, self._id(seen)))
                await response.write_eof()
                return True
            case Stalls(after=after, pings=pings) if index == after:
                while pings:
                    await self._send(response, self.keep_alive)
                    await asyncio.sleep(0.01)
                await asyncio.Event().wait()
        return False

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        step = self.shred or len(data) or 1
        for at in range(0, len(data), step):
            await response.write(data[at : at + step])

    async def _wait(self, trouble: Waits) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.gate.wait(), trouble.seconds)

    def _id(self, seen: Seen) -> str:
        return f"req_{made_id(seen.number, 0)}"

    def _ids(self, seen: Seen) -> dict[str, str]:
        return {"request-id": self._id(seen), "x-request-id": self._id(seen)}


def _by_events(trouble: Trouble | None, reply: Reply) -> Trouble | None:
    """A cut in the text, counted in events."""
    if not isinstance(trouble, CutInText):
        return trouble
    after = reply.texts[trouble.after] if trouble.after < len(reply.texts) else len(reply.events) - 1
    return Cuts(after, trouble.bytes, trouble.ending)


def _reset(request: web.Request) -> None:
    """Close with RST, as a process that is killed or a host that restarts does."""
    transport = request.transport
    if transport is not None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


def as_bytes(value: object) -> bytes:
    """A piece of a prompt: what it says, in the order in which it was written."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
