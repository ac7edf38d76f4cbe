"""OpenAI's chat completions, and what speaks them, as a provider of models: one stream is one HTTP request.

The SDK takes half a second to import, and most commands never ask a model: it is imported by the first request, in a
thread, so that the turns of a worker go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from insika.clock import Clock, SystemClock
from insika.ports import ModelEvent, ModelRequest
from insika.providers.endpoint import Endpoint
from insika.providers.openai.dialects import WAYS
from insika.providers.openai.failures import Failures
from insika.providers.openai.request import parameters
from insika.providers.openai.stream import Answer
from insika.providers.openai.wording import BrokenOff

if TYPE_CHECKING:
    from insika.providers.openai.wire import Opened, Wire

LAST_WORD_S = 5.0
"""For the usage of an answer that is whole, and the end of the stream."""

_CLOCK = SystemClock()
"""Tells how far off a date is that a vendor asks to wait for."""


class OpenAIProvider:
    """A `ModelProvider` for one endpoint, in its dialect. Use it on one event loop, and close it there.

    An endpoint without a key is asked without an Authorization header. Raises ValueError for a dialect without a vendor
    of its own where no `base_url` says where it is spoken."""

    def __init__(self, endpoint: Endpoint, clock: Clock = _CLOCK) -> None:
        if not (endpoint.base_url or WAYS[endpoint.dialect].base_url):
            raise ValueError(f"provider {endpoint.name} needs a base_url: nobody is known to speak {endpoint.dialect}")
        self._endpoint = endpoint
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wire: Wire | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As the port says. An answer is whole once the model has said why it stopped: where the line breaks after
        that, before its usage has come, it is given with an estimate."""
        dialect = self._endpoint.dialect
        failures = Failures(self._endpoint, request, self._clock)
        answer = Answer(request, dialect)
        wire = await self._connected(failures)
        headers, failure = None, None
        try:
            async with wire.open(parameters(request, dialect)) as opened:
                headers = opened.headers
                async with aclosing(_chunks(opened, answer)) as chunks:
                    async for chunk in chunks:
                        for event in answer.read(chunk):
                            yield event
            if not answer.has_begun and not opened.is_stream:
                failure = failures.impossible("answered with no stream; is its base_url that of a chat API?", 200)
            elif not answer.is_whole:
                raise BrokenOff
        except Exception as error:
            if not (answer.is_whole and wire.is_only_the_line(error)):
                failure = wire.failure_of(error, failures, headers)
        if failure is not None:
            # Raised out here so that it does not drag along the SDK's exception, which holds the key and the prompt.
            raise failure
        for event in answer.rest():
            yield event
        yield answer.finished()

    async def aclose(self) -> None:
        """Close the connections. Requests under way break; a later one connects anew."""
        wire, self._wire, self._loop = self._wire, None, None
        if wire is not None:
            await wire.aclose()

    async def _connected(self, failures: Failures) -> Wire:
        """The connections of the running loop: those of another cannot be used."""
        loop, failure = asyncio.get_running_loop(), None
        if self._wire is not None and self._loop is loop:
            return self._wire
        try:
            made = await asyncio.to_thread(_wire_to, self._endpoint)
        except Exception as error:
            failure = failures.impossible(f"could not be asked: {type(error).__name__}", sent=False)
        if failure is not None:
            raise failure
        if self._wire is None or self._loop is not loop:  # another request may have been first
            self._wire, self._loop = made, loop
        return self._wire


async def _chunks(opened: Opened, answer: Answer) -> AsyncGenerator[object, None]:
    """Each chunk as it comes; once the answer is whole, what is still to come is not waited for long."""
    coming = aiter(opened.chunks)
    while True:
        try:
            chunk = await asyncio.wait_for(anext(coming), LAST_WORD_S if answer.is_whole else None)
        except StopAsyncIteration:
            return
        yield chunk


def _wire_to(endpoint: Endpoint) -> Wire:
    from insika.providers.openai.wire import Wire

    return Wire(endpoint)
