"""Anthropic's SDK, held to what the house wants of it. The one file that imports it, and so is itself imported late.

One call is one request: no retries, no redirects. Nothing comes from the environment: the SDK looks there for keys, a
base URL, headers, proxies, tracing and its log level. It is told key and URL, and the rest is switched off. At its
lowest log level it writes whole requests, so that it is not let below warnings.

Its raw events are read instead of its objects: those come without the events that carry no name, and with fields that
it made up for what was missing, so that a broken stream would look like a short answer.

Source: the SDK's own documentation and code (`anthropic.AsyncAnthropic`, `AsyncStream.raw_events`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime
from typing import Any, cast

import aiohttp
import anthropic
import httpx2
from anthropic import AsyncStream

from insika.errors import ProviderError
from insika.model_endpoints import VENDOR_URLS
from insika.providers.anthropic import failures
from insika.providers.anthropic.request import WireRequest
from insika.providers.endpoint import Endpoint
from insika.reliability.classify import retry_after_s

CONNECT_S = 10.0
"""For the name, the connection and TLS together."""
SILENCE_S = 600.0
"""Without a byte: the vendor sends pings in between. How long an answer may take is the engine's business."""

_TIMEOUT = anthropic.Timeout(SILENCE_S, connect=CONNECT_S, pool=CONNECT_S)
_NO_LIMIT = httpx2.Limits(max_connections=0)
"""0 is none for aiohttp. How much runs at once is decided by a worker's slots, not by waiting here."""


class Connection:
    """To one endpoint. Its connections belong to the loop on which it is first used. `bytes`-level work is the
    SDK's."""

    def __init__(self, endpoint: Endpoint) -> None:
        for name in ("anthropic", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._client = anthropic.AsyncAnthropic(
            api_key=endpoint.key,
            base_url=endpoint.base_url or VENDOR_URLS[endpoint.kind],
            webhook_key="",
            max_retries=0,
            timeout=_TIMEOUT,
            http_client=anthropic.DefaultAioHttpClient(
                timeout=_TIMEOUT, limits=_NO_LIMIT, follow_redirects=False, trust_env=False
            ),
            open_telemetry=False,
        )
        # It puts ANTHROPIC_CUSTOM_HEADERS here, and there is no other way to be rid of them.
        own: Mapping[str, Any] = {} if endpoint.key else {"Authorization": anthropic.omit}
        self._client._custom_headers = own

    @asynccontextmanager
    async def opened(self, asked: WireRequest) -> AsyncIterator[AsyncIterator[tuple[str | None, str]]]:
        """The events of one answer, as name and data. The connection is closed with the block, unless all was read.
        Raises what the SDK raises."""
        headers = {"anthropic-beta": ",".join(asked.betas)} if asked.betas else {}
        ask = cast(Any, self._client.messages.create)  # the parameters are judged by the vendor
        stream: AsyncStream[object] = await ask(**asked.parameters, stream=True, extra_headers=headers)
        try:
            async with aclosing(_events(stream)) as events:
                yield events
        finally:
            with suppress(Exception):  # a connection that breaks while it is closed is closed
                await stream.response.aclose()

    async def aclose(self) -> None:
        await self._client.close()


async def _events(stream: AsyncStream[object]) -> AsyncGenerator[tuple[str | None, str], None]:
    async for event in AsyncStream.raw_events(stream.response):
        yield event.event, event.data


def failure(error: Exception, who: str, now: datetime) -> ProviderError:
    """What the SDK, its transport or its decoder raised, in the house's words. `who`: the model and where it is."""
    if isinstance(error, anthropic.APIStatusError):
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        said = failures.told(error.status_code, error.body, error.request_id, retry_after_s(headers, now))
        return failures.refused(who, said)
    for cause in _causes(error):
        if isinstance(cause, _BEFORE_SENDING):
            return failures.unreachable(who, _why(cause))
    if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException):
        return failures.broken_off(who, f"nothing came for {SILENCE_S:g} s")
    if isinstance(error, anthropic.APIConnectionError | httpx2.RequestError | UnicodeDecodeError):
        return failures.broken_off(who, "the connection broke off, or what came could not be read")
    return failures.surprise(who, error)


_BEFORE_SENDING = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""What aiohttp raises only while it connects (docs.aiohttp.org, "Hierarchy of exceptions")."""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _why(cause: BaseException) -> str:
    if isinstance(cause, aiohttp.ClientConnectorDNSError):
        return "its name could not be resolved"
    if isinstance(cause, aiohttp.ClientSSLError):
        return "TLS failed, or its certificate is not trusted"
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return f"there was no connection within {CONNECT_S:g} s"
    return "nobody took the connection"
