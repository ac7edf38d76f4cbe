"""The official SDK, set up so that one call is one HTTP request to one endpoint and nothing is taken from elsewhere.

No retries, no redirects, no variables of the environment (`OPENAI_*`, proxies): a key, an organization or a header that
is meant for OpenAI must not reach another vendor. Chunks are taken as they come, without the SDK's models: vendors add
fields of their own, and what is malformed must be seen here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient, Omit

from insika.errors import ProviderError
from insika.providers.endpoint import Endpoint
from insika.providers.openai.breakage import failure_of, is_only_the_line
from insika.providers.openai.dialects import WAYS
from insika.providers.openai.failures import Failures

CONNECT_S = 10.0
SILENCE_S = 600.0
"""Between two reads; the engine keeps the time of a request, and no vendor is this long silent and still there."""
_NO_LIMIT = 0
"""aiohttp's word for as many connections as there are requests: the house has its own slots."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An answer that has begun. `headers` have lower-case names."""

    headers: Mapping[str, str]
    chunks: AsyncStream[object]

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").lower().startswith("text/event-stream")


class Wire:
    """One endpoint, and the connections to it. Nothing is connected before the first request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._has_key = bool(endpoint.key)
        self._client = _Client(
            # None of these may be None, for which the SDK looks into the environment.
            api_key=endpoint.key,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=endpoint.base_url or WAYS[endpoint.dialect].base_url,
            max_retries=0,
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S, pool=CONNECT_S),
            http_client=DefaultAioHttpClient(
                trust_env=False, follow_redirects=False, limits=httpx2.Limits(max_connections=_NO_LIMIT)
            ),
        )

    @asynccontextmanager
    async def open(self, body: Mapping[str, Any]) -> AsyncIterator[Opened]:
        """Ask. The connection is closed on leaving, unless the answer has been read to its end. Raises what the SDK and
        its transport raise, which `failure_of` reads."""
        chunks = await self._client.post(
            "/chat/completions",
            body=dict(body),
            cast_to=object,
            options={
                "headers": {} if self._has_key else {"Authorization": Omit()},
                "security": {"bearer_auth": True},
            },
            stream=True,
            stream_cls=AsyncStream[object],
        )
        try:
            yield Opened({name.lower(): value for name, value in chunks.response.headers.items()}, chunks)
        finally:
            await chunks.close()

    def failure_of(self, error: Exception, failures: Failures, headers: Mapping[str, str] | None) -> ProviderError:
        """As in `breakage`."""
        return failure_of(error, failures, headers)

    def is_only_the_line(self, error: Exception) -> bool:
        """As in `breakage`."""
        return is_only_the_line(error)

    async def aclose(self) -> None:
        """Requests under way break."""
        await self._client.close()


class _Client(AsyncOpenAI):
    """The SDK's client, with no headers but these and the key: it would send those of `OPENAI_CUSTOM_HEADERS` too."""

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "insika"}
