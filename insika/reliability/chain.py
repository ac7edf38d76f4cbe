"""The models of one turn in the order in which they are asked, and what a failure of one leads to. Pure.

What holds: a failure that may pass is tried again at the same model, up to its retries; then, and at once where the
vendor asks for a long wait, comes the next model, with retries of its own; a fatal failure ends it all, since another
model would be asked the same wrong thing. No wait is longer than what the turn has left.

Source: the order's "Reliability": retries, fallback.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from insika.errors import FailureAction, ProviderError
from insika.reliability.attempts import FailedAttempt, GiveUp, TryAgain


class Waits(Protocol):
    def after(self, attempts: int, retry_after_s: float | None) -> float:
        """Seconds to wait after so many attempts at one model (from 1), which has asked for `retry_after_s`."""
        ...


class ModelSource(enum.StrEnum):
    """Whether the model that the profile names speaks, or one that is asked when it cannot."""

    PRIMARY = "primary"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class NextModel:
    """Leave this model; the one behind it in the chain is asked at once, if there is one."""


@dataclass(frozen=True, slots=True)
class Chain:
    """`models`: whole references, the profile's own first, none twice. `retries`: further attempts at each of them."""

    models: tuple[str, ...]
    retries: int

    @classmethod
    def of(cls, model: str, fallback: Sequence[str], platform: Sequence[str], retries: int) -> Chain:
        """The agent's model, then its own fallbacks, then the platform's."""
        return cls(tuple(dict.fromkeys((model, *fallback, *platform))), retries)

    def behind(self, model: str) -> Sequence[str]:
        """The models that are asked after this one; all but the first where the chain does not hold it."""
        at = self.models.index(model) if model in self.models else 0
        return self.models[at + 1 :]

    def source(self, model: str) -> ModelSource:
        return ModelSource.PRIMARY if model == self.models[0] else ModelSource.FALLBACK

    def after(self, failed: Sequence[FailedAttempt], left_s: float, waits: Waits) -> TryAgain | NextModel | GiveUp:
        """What follows from the failures of one step so far, at least one, in order."""
        model, error = failed[-1].model, failed[-1].error
        if error.action is FailureAction.FATAL:
            return GiveUp(error)
        tries = _tries(failed, model)
        if error.action is FailureAction.RATE_LIMITED_LONG or tries > self.retries:
            return NextModel()
        wait_s = waits.after(tries, error.retry_after)
        return TryAgain(wait_s, model) if wait_s < left_s else NextModel()


def _tries(failed: Sequence[FailedAttempt], model: str) -> int:
    return sum(1 for attempt in failed if attempt.model == model)


def kindest(errors: Sequence[ProviderError]) -> ProviderError:
    """Of the failures of a whole chain the one to end the turn with: the last, with the shortest wait that any model
    that may be asked again has asked for."""
    waits = [error.retry_after for error in errors if error.retry_after is not None]
    last = errors[-1]
    if waits:
        last.retry_after = min(waits)
    return last
