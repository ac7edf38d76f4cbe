"""Sends one request, once, and reads as much of the answer as may be read. What goes wrong is told by whether a byte
of the request may have left: before that, nothing has happened, for certain; behind it, nobody knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver

from insika.policy.decision import Deny
from insika.tools.egress import EgressDenied, EgressGuard, Target
from insika.tools.egress_session import CONNECT_S, guarded_session, reason_of
from insika.tools.http.request import Outgoing
from insika.tools.tool import OutcomeUnknown, ToolError

ERROR_BYTES = 16 * 1024
"""Of the body of an answer that is no success, at least so many are read."""
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True, repr=False)
class Incoming:
    """One answer. `content_type` and `charset` are in small letters and "" where they were not said; `cut`: the body
    was longer than may be read, and `body` is its beginning."""

    status: int
    content_type: str
    charset: str
    body: bytes
    cut: bool

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


class Sender:
    def __init__(
        self, guard: EgressGuard, *, resolver: Callable[[], AbstractResolver] = aiohttp.DefaultResolver
    ) -> None:
        self._guard = guard
        self._resolver = resolver

    async def send(self, request: Outgoing, max_bytes: int, connect_s: float = CONNECT_S) -> Incoming:
        """Raises ToolError when the request was certainly not sent, or was answered by something unreadable, and
        OutcomeUnknown when it may have arrived and nobody answered. There is no limit of time but that for the
        connection: whoever calls cuts what takes too long."""
        match self._guard.check_url(request.url):
            case Deny(reason):
                raise ToolError(f"nothing was sent: the egress guard refused the url: {reason}")
            case Target(url):
                pass
        gate = _Opened()
        resolver = self._resolver()
        try:
            async with (
                guarded_session(self._guard, resolver) as session,
                session.request(
                    request.method,
                    url,
                    data=request.body,
                    headers=request.headers,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, connect=connect_s),
                    trace_request_ctx=gate,
                ) as response,
            ):
                return await _incoming(response, max_bytes)
        except ToolError:
            raise
        except EgressDenied as denied:
            raise ToolError(f"nothing was sent: the egress guard refused the url: {denied.message}") from None
        except Exception as error:
            if gate.opened:
                raise OutcomeUnknown(reason_of(error)) from None
            raise ToolError(f"nothing was sent: {reason_of(error)}") from None
        finally:
            await resolver.close()


@dataclass(slots=True)
class _Opened:
    opened: bool = False

    def open_gate(self) -> None:
        self.opened = True


async def _incoming(response: aiohttp.ClientResponse, max_bytes: int) -> Incoming:
    status = response.status
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise ToolError(f"it was answered with {status}, in an encoding that was not asked for and is not read")
    try:
        body, cut = await _body(response, max_bytes if 200 <= status < 300 else max(max_bytes, ERROR_BYTES))
    except (aiohttp.ClientError, OSError):
        raise ToolError(f"it was answered with {status}, but the answer broke off") from None
    said = response.headers.get("Content-Type", "").lower()
    content_type, _, options = said.partition(";")
    charset = _CHARSET.search(options)
    return Incoming(status, content_type.strip(), charset[1] if charset else "", body, cut)


async def _body(response: aiohttp.ClientResponse, max_bytes: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    read = 0
    while read <= max_bytes and (piece := await response.content.read(min(_PIECE, max_bytes + 1 - read))):
        pieces.append(piece)
        read += len(piece)
    return b"".join(pieces)[:max_bytes], read > max_bytes


_CHARSET = re.compile(r'charset="?([a-z0-9_:.-]+)')
