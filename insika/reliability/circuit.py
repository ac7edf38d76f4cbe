"""The circuit of one model in one tenant: what it lets through, and the port of whoever keeps it. Pure.

What holds: it opens when `after` failures have come within `within` seconds, whatever succeeded between them, because
that is what a profile says; failures age out one by one, and only a trial's success forgets them. While it is open the
model is not asked. Once it has cooled down it is half open: one trial for each time to live, whose own result alone
decides. A trial that dies, or says nothing, frees its place by the end of that time.

There is one circuit however many agents meet in it: each counts all failures by its own `after` and `within`, and the
one that opens it says for how long.

Source: the order's "Circuit breaker": per (tenant, provider/model).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from insika.agents.reliability import CircuitBreaker

TRIAL_GRACE_S = 5.0
"""For how long beyond its attempt's own time limit a trial keeps its place: its result must still find it."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """Which one. `tenant` is "" for the platform; `model` a whole reference, `provider/model`."""

    tenant: str
    model: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Ask the model."""


@dataclass(frozen=True, slots=True)
class Open:
    """Leave the model alone. `retry_after_s`: until it has cooled down, or until the trial under way is over for
    certain."""

    retry_after_s: float


@dataclass(frozen=True, slots=True)
class Trial:
    """Ask the model, as the only one, and say with this token how it went."""

    token: str


Passage = Closed | Open | Trial


@dataclass(frozen=True, slots=True)
class Tripped:
    """This failure has opened the circuit. Told once for each time it opens, also `reopened`, by a trial that failed.
    `opened_at` stays as it is for as long as the circuit is open, and no other opening of it has the same."""

    opened_at: datetime
    retry_after_s: float
    reopened: bool


class Circuits(Protocol):
    """Keeps circuits for all processes. It never raises, and nobody waits long for it: where the processes cannot be
    asked together, each keeps circuits of its own."""

    async def before(self, circuit: Circuit, attempt_timeout_s: float) -> Passage:
        """Whether the model may be asked now. `attempt_timeout_s`: how long the attempt may take, by which a trial's
        time to live is reckoned."""
        ...

    async def succeeded(self, circuit: Circuit, token: str = "") -> None:
        """An attempt ended well. With the token of the trial under way this closes the circuit, otherwise it changes
        nothing."""
        ...

    async def failed(self, circuit: Circuit, breaker: CircuitBreaker, token: str = "") -> Tripped | None:
        """An attempt failed in a way that counts. With the token of the trial under way this opens the circuit again;
        with any other it changes nothing. Without one it counts where the circuit is closed, and changes nothing where
        it is not: what began before it opened says nothing new."""
        ...

    async def abandoned(self, circuit: Circuit, token: str) -> None:
        """The trial with this token ended without a result, as one that was cancelled: its place is free at once."""
        ...
