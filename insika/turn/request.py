"""One request to a model: streamed, within the turn's time, and measured.

A provider may fail only by a `ProviderError`; whatever else comes out of one is unknown, and unknown is fatal: trying
again a request that broke in a way nobody has thought of costs money and helps nobody.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from insika.errors import ProviderError, ProviderFatal, TurnTimeout
from insika.events import EventType
from insika.messages import NO_USAGE, Usage
from insika.ports import Finished, ModelRequest, Stop, TextDelta, ThinkingDelta, UsageSoFar
from insika.storage.operations import ModelCallKey
from insika.turn.estimate import estimate_usage, plausible
from insika.turn.log import Superseded
from insika.turn.outgoing import ShownAttempt
from insika.turn.ports import TurnPorts
from insika.turn.state import TurnIdentity, TurnState

T = TypeVar("T")

_HTTP_ERROR = 400


class ModelAsker:
    """Asks one turn's model, and keeps the turn's time."""

    def __init__(self, turn: TurnIdentity, ports: TurnPorts) -> None:
        self._turn = turn
        self._ports = ports
        self._times = ports.times
        self._unsettled: ModelRequest | None = None
        self._streamed = 0
        self._found_thinking: Mapping[str, int] = {}
        self._so_far: Usage | None = None
        self._measured: Usage | None = None
        self._waiting: asyncio.Timeout | None = None
        self._cut = False

    @property
    def owed(self) -> Usage:
        """What the request at hand is booked at if the turn is left now: what it cost, or may have cost. Nothing when
        none was sent, or the last one has been booked."""
        if self._unsettled is None:
            return NO_USAGE
        if self._measured is not None:
            return self._measured
        request = self._unsettled
        guess = estimate_usage(request.instructions, request.messages, self._streamed, request.tools)
        told = self._so_far
        return guess if told is None else replace(told, output=max(told.output, guess.output))

    def booked(self) -> None:
        """What the last request cost has been written."""
        self._unsettled = None

    @property
    def said_something(self) -> bool:
        """The last request's stream has shown something: text, or reasoning."""
        return self._streamed > 0

    @property
    def found_thinking(self) -> Mapping[str, int]:
        """How often each kind was taken out of what the last attempt that was whole had thought."""
        return self._found_thinking

    async def ask(self, state: TurnState, key: ModelCallKey, *, may_call: bool, limit_s: float = math.inf) -> Finished:
        """One attempt of at most `limit_s` seconds, built anew from the log. Raises ProviderError, also when that time
        is over, ProviderFatal, TurnTimeout or LeaseLost; Superseded when it was cut."""
        request = self._request(state, key, may_call=may_call)
        self.check_time()
        self._ports.log.may_start()
        self._unsettled, self._streamed, self._so_far, self._measured = request, 0, None, None
        self._times.asked(key.step, key.attempt)
        try:
            return await self._in_time(self._stream(request, key), limit_s)
        except ProviderError as error:
            if self._costs_nothing(error):
                self._unsettled = None
            raise
        finally:
            self._times.answered()

    def _costs_nothing(self, error: ProviderError) -> bool:
        """Nobody was asked, or the vendor refused with an HTTP error before it had said anything, which none bills."""
        refused = error.status >= _HTTP_ERROR and self._so_far is None and not self._streamed
        return refused or not error.sent

    async def rest(self, seconds: float) -> None:
        """Between two attempts. Raises TurnTimeout, or Superseded when the turn is cut meanwhile."""
        if seconds > 0:
            await self._in_time(self._ports.sleep(seconds))

    @property
    def asking(self) -> bool:
        """A request is under way, or about to be made again."""
        return self._waiting is not None

    def cut(self) -> None:
        """Abandon the request under way, if there is one: its stream is closed, and whoever waits for it is told
        that the turn is superseded. A tool that runs is left alone; its owner looks again at the boundary."""
        if self._waiting is not None and not self._waiting.expired():
            self._cut = True
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def timed_tools(self, running: Awaitable[T]) -> T:
        self._times.acting()
        try:
            return await running
        finally:
            self._times.acted()

    @property
    def left_s(self) -> float:
        """Seconds of the turn's time; 0 or less: none."""
        return self._turn.time_s - self._times.elapsed_s

    def out_of_time(self) -> bool:
        """The turn has had its time."""
        return self.left_s <= 0

    def check_time(self) -> None:
        """Raises TurnTimeout when the turn has had its time."""
        if self.out_of_time():
            raise self._timeout()

    def _request(self, state: TurnState, key: ModelCallKey, *, may_call: bool) -> ModelRequest:
        turn = self._turn
        provider, _, model = key.model.partition("/")
        return ModelRequest(
            model,
            turn.instructions,
            tuple(state.history),
            self._ports.toolbox.specs(),
            provider=provider,
            may_call=may_call,
            thinking=turn.limits.thinking,
            max_tokens=turn.limits.max_output_tokens,
            turn_from=state.turn_from,
            note=turn.note,
        )

    async def _in_time(self, waiting: Awaitable[T], limit_s: float = math.inf) -> T:
        left_s = self.left_s
        try:
            async with asyncio.timeout(min(left_s, limit_s)) as self._waiting:
                return await waiting
        except TimeoutError:
            if self._cut:
                raise Superseded from None
            if limit_s < left_s:
                raise ProviderError(f"the model gave no whole answer within {limit_s:g} s") from None
            raise self._timeout() from None
        finally:
            self._waiting, self._cut = None, False

    async def _stream(self, request: ModelRequest, key: ModelCallKey) -> Finished:
        finished: Finished | None = None
        shown = self._shown(key)
        try:
            async with aclosing(self._ports.provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        self._hear(event.text)
                        shown.says(event.text)
                    elif isinstance(event, ThinkingDelta):
                        self._hear(event.text)
                        shown.thinks(event.text)
                    elif isinstance(event, UsageSoFar):
                        self._so_far = event.usage if plausible(event.usage) else self._so_far
                    else:
                        finished = event
        except ProviderError:
            raise
        except Exception as error:
            # A TimeoutError is no exception: it is the provider's own. Our clock speaks by cancelling.
            raise ProviderFatal(f"the provider of {key.model} broke: {type(error).__name__}") from error
        if finished is None:
            raise ProviderError(f"the stream of {key.model} ended before the answer was whole")
        if not self._streamed:
            self._times.heard()
        if not plausible(finished.usage):
            finished = replace(finished, usage=self.owed, measured=False)
        self._measured = finished.usage
        shown.ends()
        self._found_thinking = shown.found_thinking
        _must_say_something(finished, request)
        return finished

    def _hear(self, text: str) -> None:
        if not self._streamed:
            self._times.heard()
        self._streamed += len(text)

    def _shown(self, key: ModelCallKey) -> ShownAttempt:
        emit = self._ports.emit

        def show(type: EventType, text: str) -> None:
            emit(type, {"step": key.step, "attempt": key.attempt, "text": text})

        return ShownAttempt(self._ports.outgoing, show)

    def _timeout(self) -> TurnTimeout:
        limit_s = self._turn.limits.turn_timeout_s
        return TurnTimeout(f"the turn had not ended within {limit_s:g} s; raise limits.turn_timeout if it needs longer")


def _must_say_something(finished: Finished, request: ModelRequest) -> None:
    """Raises ProviderFatal where nothing came of a request that was paid for, and asking again would change nothing."""
    if finished.message.tool_calls or finished.message.content.strip():
        return
    if finished.stop is Stop.LENGTH:
        limit = "its output limit" if request.max_tokens is None else f"its limit of {request.max_tokens} output tokens"
        raise ProviderFatal(
            f"{request.reference} reached {limit} before it had said anything; raise params.max_tokens, in which its "
            "reasoning counts, or lower params.thinking"
        )
    if finished.stop is Stop.REFUSAL:
        raise ProviderFatal(
            f"{request.reference}, or its vendor, refused to answer and said nothing; see what the instructions and "
            "the conversation ask of it, or name another model"
        )
