"""Sessions that send a request at most once, through the egress guard, and know when its first byte leaves.

Redirects are the caller's to refuse (`allow_redirects=False`). Proxies, cookies, kept connections and compressed
bodies are not used: a body that is never unpacked cannot grow. aiohttp sends GET, HEAD, PUT and DELETE a second time
by itself when a connection is lost under them, also when it was a fresh one (seen with aiohttp 3.14); here it does not.
"""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace
from typing import Protocol

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
from aiohttp.abc import AbstractResolver

from insika.tools.egress import EgressGuard
from insika.tools.egress_connector import guarded_connector

CONNECT_S = 10.0
"""How long a connection, its name and its TLS may take."""


class Gate(Protocol):
    """Stands before the first byte of one request: to be given as `trace_request_ctx`."""

    def open_gate(self) -> None:
        """From here on the receiver may have been reached. Raises to keep the request from being sent."""
        ...


def guarded_session(guard: EgressGuard, resolver: AbstractResolver) -> aiohttp.ClientSession:
    """A session whose every request has a connection of its own, and must bring its `Gate`. Whoever made the resolver
    closes it. Must be made on the running loop."""
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_before_the_first_byte)
    return aiohttp.ClientSession(
        connector=guarded_connector(guard, resolver),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        trace_configs=[trace],
        middlewares=(_once,),
        headers={"User-Agent": f"insika/{version('insika')}"},
    )


def reason_of(error: BaseException) -> str:
    """What went wrong, without the URL or anything that the receiver wrote: both may hold secrets."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    return f"sending broke down ({type(error).__name__})"


async def _once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as lost:
        # These two, and none but these, make the session try again.
        raise aiohttp.ClientConnectionError("the connection was lost") from lost


async def _before_the_first_byte(
    session: aiohttp.ClientSession, context: SimpleNamespace, params: aiohttp.TraceRequestHeadersSentParams
) -> None:
    gate: Gate = context.trace_request_ctx
    gate.open_gate()


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientSSLError, "no TLS connection could be made"),
    (aiohttp.ClientConnectorDNSError, "the host's name could not be resolved"),
    (aiohttp.ClientConnectorError, "no connection could be made"),
    (aiohttp.ConnectionTimeoutError, "no connection in time"),
    (TimeoutError, "no answer in time"),
    (aiohttp.ClientResponseError, "the answer was not HTTP"),
    (aiohttp.ClientConnectionError, "the connection was lost before an answer came"),
)
