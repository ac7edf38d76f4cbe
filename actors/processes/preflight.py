"""What a process waits for before it begins: services that are still starting, and not for ever.

A service that is away is waited for, saying for what; one that answers and will not do (a database that is not
migrated, a queue declared otherwise, a wrong password) ends the process at once, since waiting cannot help. Either way
it ends with one sentence, and a supervisor may start it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay
from tenacity.wait import wait_exponential_jitter

from insika.errors import InsikaError

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a process waits for a service at its start."""

_log = structlog.get_logger("insika.preflight")


class NotReady(InsikaError):
    """A service could not be reached for as long as a process waits at its start."""

    type = "not_ready"


class ToldToStop(Exception):
    """The process was told to end before it began. It has done nothing, and ends well."""


Sleep = Callable[[float], Awaitable[None]]


def sleeping_until(stop: asyncio.Event) -> Sleep:
    """Sleeps as long as it is told to, and raises ToldToStop as soon as `stop` is set."""

    async def sleep(seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stop.wait()
                raise ToldToStop

    return sleep


async def wait_for(
    what: str,
    ready: Callable[[], Awaitable[T]],
    away: type[InsikaError],
    *,
    patience_s: float = PATIENCE_S,
    sleep: Sleep = asyncio.sleep,
) -> T:
    """Try `ready` until it answers. `away` is what it raises while the service cannot be reached; all else it raises
    passes through, and what `sleep` raises between two tries. Raises NotReady after `patience_s`."""

    def waiting(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        _log.warning("waiting", what=what, reason=error.message if isinstance(error, InsikaError) else str(error))

    tries = AsyncRetrying(
        retry=retry_if_exception_type(away),
        wait=wait_exponential_jitter(multiplier=0.2, max=5.0, jitter=0.2),
        stop=stop_after_delay(patience_s),
        sleep=sleep,
        before_sleep=waiting,
        reraise=True,
    )
    try:
        async for attempt in tries:
            with attempt:
                return await ready()
    except away as error:
        raise NotReady(f"{what} could not be reached within {patience_s:g} s: {error.message}") from error
    raise AssertionError("retrying neither answered nor raised")
