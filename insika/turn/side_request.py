"""One request to a model beside the conversation: a short question whose answer the engine reads, and nobody else.

Nothing of it is shown, and it is asked once: whoever asks does without an answer where there is none. It obeys the
circuits of the turn's policy and what the turn has left of its time, and can be cut like any request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from insika.errors import CircuitOpen, ProviderError, ProviderFatal
from insika.messages import NO_USAGE, Usage
from insika.ports import Finished, ModelProvider, ModelRequest, TextDelta, ThinkingDelta, UsageSoFar
from insika.reliability.attempts import Attempts, FailedAttempt
from insika.turn.estimate import estimate_usage
from insika.turn.log import Superseded

LONGEST_S = 30.0
"""How long a question may take at most."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of it. `error` None: `text` is the whole answer. `usage` is what it cost, `measured` or not."""

    text: str
    usage: Usage
    measured: bool
    error: ProviderError | None = None


class SideRequest:
    """`may_start` is called right before the request is sent, and may raise LeaseLost."""

    def __init__(self, provider: ModelProvider, attempts: Attempts, may_start: Callable[[], None]) -> None:
        self._provider = provider
        self._attempts = attempts
        self._may_start = may_start
        self._sent: ModelRequest | None = None
        self._streamed = 0
        self._so_far: Usage | None = None
        self._finished: Finished | None = None
        self._waiting: asyncio.Timeout | None = None
        self._cut = False

    @property
    def asking(self) -> bool:
        """The request is under way."""
        return self._waiting is not None

    @property
    def owed(self) -> Usage:
        """What the request is booked at if it is left now; nothing where none was sent."""
        if self._finished is not None:
            return self._finished.usage
        if self._sent is None:
            return NO_USAGE
        guess = estimate_usage(self._sent.instructions, self._sent.messages, self._streamed)
        return guess if self._so_far is None else replace(self._so_far, output=max(self._so_far.output, guess.output))

    def cut(self) -> None:
        """Abandon the request; `ask` then raises Superseded. Without one this does nothing."""
        if self._waiting is not None and not self._waiting.expired():
            self._cut = True
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def ask(self, request: ModelRequest, left_s: float) -> Heard:
        """`left_s`: seconds that the turn has left. Raises Superseded or LeaseLost, and nothing for a model that fails:
        that is heard."""
        try:
            await self._enter(request.reference, left_s)
        except ProviderError as error:
            return Heard("", NO_USAGE, measured=False, error=error)
        try:
            self._may_start()
            finished = await self._in_time(request, min(LONGEST_S, self._attempts.timeout_s, left_s))
        except ProviderError as error:
            if not error.sent:
                self._sent = None
            await self._attempts.after([FailedAttempt(request.reference, error)], max(left_s, 0.001))
            return Heard("", self.owed, measured=False, error=error)
        except BaseException:
            await self._attempts.left()
            raise
        await self._attempts.succeeded()
        return Heard(finished.message.content, finished.usage, finished.measured)

    async def _enter(self, reference: str, left_s: float) -> None:
        """Raises ProviderError where the model may not be asked now."""
        if left_s <= 0:
            raise ProviderError("the turn has no time left", sent=False)
        if await self._attempts.before(reference, ()) != reference:
            await self._attempts.left()
            raise CircuitOpen(f"{reference} has failed too often a short while ago and is left alone for now")

    async def _in_time(self, request: ModelRequest, limit_s: float) -> Finished:
        try:
            async with asyncio.timeout(limit_s) as self._waiting:
                return await self._stream(request)
        except TimeoutError:
            if self._cut:
                raise Superseded from None
            raise ProviderError(f"{request.reference} gave no whole answer within {limit_s:g} s") from None
        finally:
            self._waiting, self._cut = None, False

    async def _stream(self, request: ModelRequest) -> Finished:
        self._sent = request
        try:
            async with aclosing(self._provider.stream(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta | ThinkingDelta):
                        self._streamed += len(event.text)
                    elif isinstance(event, UsageSoFar):
                        self._so_far = event.usage
                    else:
                        self._finished = event
        except ProviderError:
            raise
        except Exception as error:
            # A TimeoutError is the provider's own. Our clock speaks by cancelling.
            raise ProviderFatal(f"the provider of {request.reference} broke: {type(error).__name__}") from error
        if self._finished is None:
            raise ProviderError(f"the stream of {request.reference} ended before the answer was whole")
        return self._finished
