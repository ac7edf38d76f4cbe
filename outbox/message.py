"""The values of a delivery: one that a process has claimed, and one as people look at it.

A row is written with its cause (`insika.storage.operations.NewDelivery`); what bounds its sending is frozen on it, so
that a change of settings never changes what is already on its way.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from insika.choices import Guarantee


class DeliveryState(enum.StrEnum):
    """See `outbox.states` for what leads from one to another."""

    PENDING = "pending"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    FAILED = "failed"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A row that this process, and no other, may now POST once.

    `claim` proves it when settling. `attempts` counts this attempt; `tries` counts it too, but from the last time the
    row was sent by hand, and is what `max_attempts` bounds. `claimed_at` is the store's time and goes into the
    signature. `overtook`: an earlier delivery of the lane is still open, and has held this one up long enough.
    """

    id: str
    claim: str
    channel: str
    recipient: str
    kind: str
    payload: Mapping[str, Any]
    url: str
    guarantee: Guarantee
    attempts: int
    tries: int
    max_attempts: int
    timeout_s: float
    claimed_at: datetime
    possible_duplicate: bool = False
    overtook: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One delivery as it stands. `reason` tells why the last attempt did not deliver it; `due_at` counts only while
    it is pending; `claimed_at` is its last claim, which runs or ran until `claim_until`. `payload` holds what was said:
    show it, never log it."""

    id: str
    state: DeliveryState
    channel: str
    recipient: str
    kind: str
    lane: str
    lane_pos: int
    url: str
    guarantee: Guarantee
    attempts: int
    max_attempts: int
    resends: int
    possible_duplicate: bool
    reason: str | None
    payload: Mapping[str, Any]
    created_at: datetime
    due_at: datetime
    claimed_at: datetime | None
    settled_at: datetime | None
    claim_until: datetime | None


class Subject(Protocol):
    """A delivery, claimed or as a row."""

    @property
    def id(self) -> str: ...
    @property
    def channel(self) -> str: ...
    @property
    def attempts(self) -> int: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
