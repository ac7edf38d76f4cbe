"""Speaks to the models of one endpoint that has Anthropic's Messages API.

Nothing but a `ProviderError` leaves `stream`. It asks once; whether to ask again is the engine's to decide, and so is
how long to wait: closing the generator, or cancelling whoever iterates it, closes the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from insika.clock import Clock, SystemClock
from insika.errors import ProviderError
from insika.ports import ModelEvent, ModelRequest
from insika.providers.anthropic import failures
from insika.providers.anthropic.blocks import Malformed
from insika.providers.anthropic.request import wire_request
from insika.providers.anthropic.stream import Reading, read_event
from insika.providers.endpoint import Endpoint

if TYPE_CHECKING:
    from insika.providers.anthropic.sdk import Connection

LAST_BYTES_S = 1.0
"""For the end of a stream whose message is whole. Who gets there in time is asked over the same connection again."""


class AnthropicProvider:
    """A `ModelProvider`. It connects when it is first asked, on the running loop."""

    def __init__(self, endpoint: Endpoint, clock: Clock | None = None) -> None:
        """`clock` tells how far ahead a Retry-After lies that is a date; None: the system's."""
        self._endpoint = endpoint
        self._clock = clock or SystemClock()
        self._home: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._connection: Connection | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As the port says. Of what goes wrong the error holds no word of the vendor's but its kind (`failures`)."""
        who = f"{request.model} at {self._endpoint.shown}"
        async with aclosing(self._answer(request, who)) as events:
            while True:
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
                except ProviderError:
                    raise
                except Malformed as error:
                    raise failures.broken_off(who, str(error)) from None
                except Exception as error:
                    raise self._failure(error, who) from error
                yield event

    async def aclose(self) -> None:
        """Close the connections; requests under way break. What is asked after that connects anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    async def _answer(self, request: ModelRequest, who: str) -> AsyncGenerator[ModelEvent, None]:
        asked = wire_request(request)
        reading = Reading(request.reference, asked)
        connection = await self._connected()
        async with connection.opened(asked) as events:
            async for name, data in events:
                read = read_event(name, data)
                if read.get("type") == "error":
                    raise failures.refused(who, failures.told(0, read))
                for event in reading.take(read):
                    yield event
                if reading.done:
                    yield reading.finished()
                    await _read_to_the_end(events)
                    return
        raise failures.broken_off(who, "the stream ended before the message did")

    async def _connected(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._home is not loop:  # what belongs to another loop is of no use here, nor can it be closed
            self._home, self._opening, self._connection = loop, asyncio.Lock(), None
        async with self._opening:
            if self._connection is None:
                self._connection = await asyncio.to_thread(_connection, self._endpoint)
            return self._connection

    def _failure(self, error: Exception, who: str) -> ProviderError:
        if self._connection is None:
            return failures.surprise(who, error)
        from insika.providers.anthropic.sdk import failure

        return failure(error, who, self._clock.now())


def _connection(endpoint: Endpoint) -> Connection:
    """Imports the SDK, which takes a second or more, in a thread: nothing else may wait for it."""
    from insika.providers.anthropic.sdk import Connection

    return Connection(endpoint)


async def _read_to_the_end(events: AsyncIterator[tuple[str | None, str]]) -> None:
    with suppress(Exception):  # the message is whole: nothing that comes now can change it
        async with asyncio.timeout(LAST_BYTES_S):
            async for _ in events:
                pass
