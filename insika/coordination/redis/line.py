"""A line is one of the conversations with Redis: whatever fails in it is told to the health, and tried again until it
works. Nobody outside this package waits for one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from insika.coordination.redis.connection import described

SHORTEST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

Answer = TypeVar("Answer")


class Outcomes(Protocol):
    """Who is told how it goes. `line` is the name of the one that tells."""

    def failed(self, line: str, reason: str) -> None: ...

    def worked(self, line: str) -> None: ...


class Untold:
    """For a line that may be given up in the middle, and so could leave a failure that nobody takes back."""

    def failed(self, line: str, reason: str) -> None:
        return None

    def worked(self, line: str) -> None:
        return None


class Line:
    """`name` says in the log which conversation it is, e.g. `signals in`."""

    def __init__(self, name: str, outcomes: Outcomes) -> None:
        self._name = name
        self._outcomes = outcomes

    async def insist(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        """What `attempt` answers, once it does not raise. It is made again however it failed: what a server that is
        broken, full, read-only or no Redis at all may make of us is more than can be listed."""
        tries = AsyncRetrying(
            retry=retry_if_exception_type(Exception),
            wait=wait_random_exponential(multiplier=SHORTEST_PAUSE_S, max=LONGEST_PAUSE_S, min=SHORTEST_PAUSE_S),
            before_sleep=self._failed,
        )
        answer: Answer = await tries(attempt)
        self._outcomes.worked(self._name)
        return answer

    def _failed(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, Exception):
            self._outcomes.failed(self._name, described(error))
