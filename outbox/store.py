"""The outbox's port: who may send a row, when, and what is written once it is known how that went.

- One claim, one row, one POST. `claim` counts the attempt and gives out a fresh `claim`; only its holder may settle.
- A row is claimed again by itself only after its holder settled a certain refusal (or an unknown outcome, where the
  channel chose at_least_once). A claim that runs out makes the row uncertain instead, and there it stays.
- Order is kept within a lane: an open row holds all behind it until it was claimed for the first time, and from then
  on for its `order_wait_s`. Rows that are settled for good hold nobody.
- Time is the store's own `insika_now()`.

Every operation is atomic. StoreUnavailable: nobody knows whether it was written. Settling twice is harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from insika.storage.operations import NewAlert
from outbox.message import ClaimedDelivery, DeliveryRow, DeliveryState, Subject
from outbox.states import Decision

RESEND_GUARD_S = 300.0
"""A row is not sent again by hand before this long after its last claim: until then a receiver that checks signatures
would still take the first request, should it be on its way (Standard Webhooks: five minutes)."""
RESEND_DELAY_S = 1.0
"""Not at once: a claim that was being decided when the row moved must not find it due (PostgreSQL looks at a row that
changed under it once more, and at its neighbours not at all)."""


@dataclass(frozen=True, slots=True)
class Resent:
    """It is pending again, due in a second, behind everything else of its lane."""


@dataclass(frozen=True, slots=True)
class NotResent:
    """Nothing was changed. `not_before` is set when waiting until then, or forcing, would help."""

    reason: str
    not_before: datetime | None = None


class AlertsOf(Protocol):
    def __call__(self, delivery: Subject, decision: Decision, /) -> Sequence[NewAlert]:
        """What is to be raised if this delivery, which is still being sent, ends so."""
        ...


def no_alerts(delivery: Subject, decision: Decision, /) -> Sequence[NewAlert]:
    """Nobody wants to be told."""
    return ()


class OutboxStore(Protocol):
    async def claim(self, grace_s: float) -> ClaimedDelivery | None:
        """The oldest delivery that is due and not held by its lane. The claim runs for its timeout plus `grace_s`
        seconds, which must cover the connection and the settling."""
        ...

    async def settle(
        self, delivery_id: str, claim: str, decision: Decision, *, alerts: Sequence[NewAlert] = ()
    ) -> bool:
        """Write how the attempt ended. False when the claim is no longer this one or no longer open: then nothing was
        written, except that a late Delivered of the current claim turns uncertain into delivered.

        `alerts` are raised with it where it fails or becomes uncertain by this, and is an answer: an alert that could
        not be delivered raises none."""
        ...

    async def sweep_expired(self, alerts: AlertsOf = no_alerts) -> Sequence[DeliveryRow]:
        """End the claims that ran out: uncertain, or pending again with at_least_once. Answers the rows as they are
        now; two sweeps at once never answer the same row. `alerts` is asked about each before it is written, and what
        it says is raised as `settle` does."""
        ...

    async def resend(self, delivery_id: str, *, force: bool = False) -> Resent | NotResent:
        """Send a failed or uncertain delivery once more, at an operator's word, as a possible duplicate. Refused for
        five minutes after its last claim unless `force`."""
        ...

    async def list(self, state: DeliveryState | None = None, limit: int = 100) -> Sequence[DeliveryRow]:
        """The newest first."""
        ...

    async def show(self, delivery_id: str) -> DeliveryRow | None: ...

    async def ids(self, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin with `prefix`, in their order."""
        ...

    async def counts(self) -> Mapping[DeliveryState, int]:
        """How many rows there are in each state, zero included."""
        ...

    async def next_due_at(self) -> datetime:
        """When there may be something to claim or to sweep, if nothing happens before; NEVER if nothing will."""
        ...
