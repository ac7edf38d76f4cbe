"""What is done after a model has failed: tried again, or given up. Pure: a policy is asked after each failure and
answers with a value; to wait, to ask and to write rows is the loop's.

Each attempt is one request, built anew from the log, with a row of its own; of a failed one nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from insika.errors import FailureAction, ProviderError


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """`model`: the whole reference of the model that was asked."""

    model: str
    error: ProviderError


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Ask `model` (a whole reference), in `after_s` seconds, from 0."""

    after_s: float
    model: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The turn ends with `error`."""

    error: ProviderError


Decision = TryAgain | GiveUp


class Attempts(Protocol):
    """The policy of one turn. For each attempt `before` is called once, then one of `after`, `succeeded` and `left`.
    To call `left` when none of them is owed changes nothing."""

    @property
    def timeout_s(self) -> float:
        """How long one attempt may take as a whole; past it, it has failed in a way that may pass."""
        ...

    async def before(self, model: str, failed: Sequence[FailedAttempt]) -> str:
        """The model to ask now where `model` was to be asked: the same, or one behind it. `failed` as in `after`, or
        none. Raises ProviderError where none may be asked."""
        ...

    async def after(self, failed: Sequence[FailedAttempt], left_s: float) -> Decision:
        """`failed`: every attempt that this owner has made at the step at hand, in order, from one; those of owners
        that died are not among them. `left_s`: seconds that the turn has left, above 0."""
        ...

    async def succeeded(self) -> None:
        """The attempt gave a whole message."""
        ...

    async def left(self) -> None:
        """The attempt was abandoned: the turn was cut, or its owner had to stop."""
        ...


UNSENT_WAITS_S = (0.0, 0.5)
"""Before the second and before the third try at a connection that could not be made."""


class OneAttempt:
    """What holds for an agent without a reliability policy: its model is asked once.

    A connection that failed before anything was sent is no attempt at the model yet: it is made anew twice, at once and
    after half a second, since a load balancer that restarts has mended itself by then.
    """

    timeout_s = math.inf

    async def before(self, model: str, failed: Sequence[FailedAttempt]) -> str:
        return model

    async def after(self, failed: Sequence[FailedAttempt], left_s: float) -> Decision:
        last = failed[-1]
        if len(failed) > len(UNSENT_WAITS_S) or not all(_never_sent(each.error) for each in failed):
            return GiveUp(last.error)
        wait_s = UNSENT_WAITS_S[len(failed) - 1]
        return TryAgain(wait_s, last.model) if wait_s < left_s else GiveUp(last.error)

    async def succeeded(self) -> None:
        return None

    async def left(self) -> None:
        return None


def _never_sent(error: ProviderError) -> bool:
    return not error.sent and error.action is FailureAction.RETRYABLE
