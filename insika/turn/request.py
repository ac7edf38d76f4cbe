"""One request to a model: streamed, within the turn's time, and measured.

A provider may fail only by a `ProviderError`; whatever else comes out of one is unknown, and unknown is fatal: trying
again a request that broke in a way nobody has thought of costs money and helps nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from insika.errors import ProviderError, ProviderFatal, TurnTimeout
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.ports import Finished, ModelRequest, TextDelta
from insika.turn.estimate import estimate_usage
from insika.turn.log import Superseded
from insika.turn.ports import TurnPorts
from insika.turn.state import TurnIdentity, TurnState

T = TypeVar("T")


class ModelAsker:
    """Asks one turn's model, and keeps the turn's time."""

    def __init__(self, turn: TurnIdentity, ports: TurnPorts) -> None:
        self._turn = turn
        self._ports = ports
        self._clock = ports.clock
        self._began = ports.clock.monotonic()
        self._model_s = 0.0
        self._tools_s = 0.0
        self._unsettled: ModelRequest | None = None
        self._streamed = 0
        self._measured: Usage | None = None
        self._asking: asyncio.Timeout | None = None
        self._cut = False

    @property
    def owed(self) -> Usage:
        """What the request at hand is booked at if the turn is left now: what it cost, or may have cost. Nothing when
        none was sent, or the last one has been booked."""
        if self._unsettled is None:
            return NO_USAGE
        if self._measured is not None:
            return self._measured
        return estimate_usage(self._turn.instructions, self._unsettled.messages, self._streamed)

    def booked(self) -> None:
        """What the last request cost has been written."""
        self._unsettled = None

    async def ask(self, state: TurnState, *, offer_tools: bool) -> Finished:
        """Raises ProviderError, ProviderFatal, TurnTimeout or LeaseLost; Superseded when it was cut."""
        tools = self._ports.toolbox.specs() if offer_tools else ()
        request = ModelRequest(self._turn.model_name, self._turn.instructions, tuple(state.history), tools)
        self.check_time()
        self._ports.log.may_start()
        self._unsettled, self._streamed, self._measured = request, 0, None
        asked_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._left()) as self._asking:
                return await self._stream(request, state.step)
        except TimeoutError:
            if self._cut:
                raise Superseded from None
            raise self._timeout() from None
        finally:
            self._asking, self._cut = None, False
            self._model_s += self._clock.monotonic() - asked_at

    @property
    def asking(self) -> bool:
        """A request is under way."""
        return self._asking is not None

    def cut(self) -> None:
        """Abandon the request under way, if there is one: its stream is closed, and whoever waits for it is told
        that the turn is superseded. A tool that runs is left alone; its owner looks again at the boundary."""
        if self._asking is not None and not self._asking.expired():
            self._cut = True
            self._asking.reschedule(asyncio.get_running_loop().time())

    async def timed_tools(self, running: Awaitable[T]) -> T:
        began = self._clock.monotonic()
        try:
            return await running
        finally:
            self._tools_s += self._clock.monotonic() - began

    def out_of_time(self) -> bool:
        """The turn has had its time."""
        return self._left() <= 0

    def check_time(self) -> None:
        """Raises TurnTimeout when the turn has had its time."""
        if self.out_of_time():
            raise self._timeout()

    def timing(self) -> Mapping[str, Any]:
        """Milliseconds, for the turn's record."""
        return {
            "total_ms": round((self._clock.monotonic() - self._began) * 1000, 1),
            "model_ms": round(self._model_s * 1000, 1),
            "tools_ms": round(self._tools_s * 1000, 1),
        }

    async def _stream(self, request: ModelRequest, step: int) -> Finished:
        emit = self._ports.emit
        finished: Finished | None = None
        try:
            async with aclosing(self._ports.provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        self._streamed += len(event.text)
                        emit(EventType.CONTENT, {"step": step, "text": event.text})
                    elif isinstance(event, Finished):
                        finished = event
        except ProviderError:
            raise
        except Exception as error:
            # A TimeoutError is no exception: it is the provider's own. Our clock speaks by cancelling.
            raise ProviderFatal(f"the provider of {self._turn.model} broke: {type(error).__name__}") from error
        if finished is None:
            raise ProviderError(f"the stream of {self._turn.model} ended before the answer was whole")
        self._measured = finished.usage
        return finished

    def _left(self) -> float:
        return self._turn.time_s - (self._clock.monotonic() - self._began)

    def _timeout(self) -> TurnTimeout:
        limit_s = self._turn.limits.turn_timeout_s
        return TurnTimeout(f"the turn had not ended within {limit_s:g} s; raise limits.turn_timeout if it needs longer")
