"""The POST itself: one request on a fresh connection, and what can be known of it afterwards.

What decides is whether a byte of the request may have left. A gate stands right before the first one: it notes that
from here on the receiver may have been reached, and it stays shut when the claim has run out. Whatever goes wrong
before the gate certainly did not reach the receiver; whatever goes wrong behind it, without a status, is unknown.

Redirects are not followed, nothing is sent a second time, and of the answer's body nothing is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver

from insika.clock import Clock
from insika.policy.decision import Deny
from insika.tools.egress import EgressDenied, EgressGuard, Target
from insika.tools.egress_session import CONNECT_S, guarded_session, reason_of
from outbox.policy import retry_after_s
from outbox.states import Answered, AttemptResult, Forbidden, NotSent, Unknown

_BODY_READ_MAX = 4096
_BODY_READ_S = 1.0


class _GateShut(Exception):
    """Not sent: too much time has passed since the claim."""


@dataclass(slots=True)
class Attempt:
    """One request on its way. `may_start` is asked once, right before the first byte."""

    may_start: Callable[[], bool]
    _opened: bool = field(default=False, init=False)
    _answered: Answered | None = field(default=None, init=False)

    def open_gate(self) -> None:
        if not self.may_start():
            raise _GateShut
        self._opened = True

    def answered(self, answer: Answered) -> Answered:
        self._answered = answer
        return answer

    def known(self, reason: str) -> AttemptResult:
        """What can be said of it now, if it ended here for `reason`."""
        if self._answered is not None:
            return self._answered
        return Unknown(reason) if self._opened else NotSent(reason)


class Webhook:
    """Sends signed requests. An async context manager: it owns the session, whose connections are used once each."""

    def __init__(
        self,
        guard: EgressGuard,
        clock: Clock,
        *,
        resolver: Callable[[], AbstractResolver] = aiohttp.DefaultResolver,
        connect_s: float = CONNECT_S,
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._resolver = resolver
        self._connect_s = connect_s
        self._session: aiohttp.ClientSession | None = None
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        resolver = self._resolver()
        self._closing.push_async_callback(resolver.close)
        self._session = await self._closing.enter_async_context(guarded_session(self._guard, resolver))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float, attempt: Attempt
    ) -> AttemptResult:
        """One request, at most, within `timeout_s`, connection included. Raises nothing but CancelledError, after
        which `attempt.known` tells what may have happened."""
        match self._guard.check_url(url):
            case Deny(reason):
                return Forbidden(f"the egress guard refused the url: {reason}")
            case Target(target):
                pass
        try:
            async with self._open().post(
                target,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s, connect=self._connect_s),
                trace_request_ctx=attempt,
            ) as response:
                wanted_s = retry_after_s(response.headers.get("Retry-After"), self._clock.now())
                answer = attempt.answered(Answered(response.status, wanted_s))
                await _drain(response)
                return answer
        except EgressDenied as denied:
            return Forbidden(f"the egress guard refused the url: {denied.message}")
        except _GateShut:
            return NotSent("too much time passed between the claim and the sending")
        except Exception as error:
            return attempt.known(reason_of(error))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("Webhook is used outside its `async with`")
        return self._session


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Take a little of the body, so that a receiver that is still writing is not cut off in its last packet. The
    status is known by now, and nothing that happens here changes it."""
    try:
        async with asyncio.timeout(_BODY_READ_S):
            await response.content.read(_BODY_READ_MAX)
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass
