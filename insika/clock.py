"""Time as a collaborator: the wall for people, the boot clock for leases, and the two ends of time.

`now()` is what a store's `insika_now()` answers too; tests replace both by one `ManualClock`. `monotonic()` counts
while the machine sleeps (CLOCK_BOOTTIME), because a lease runs out while it sleeps (docs: linux clock_gettime(2)).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

DUE_NOW = datetime.min.replace(tzinfo=UTC)
"""Due at once. Not `now()`: a clock that is set back must not delay what is already due."""
NEVER = datetime.max.replace(tzinfo=UTC)
"""Not due until something happens."""


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds, never going back, counting through suspend."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_BOOT)


class ManualClock:
    """A clock that stands still until it is told to move; for tests."""

    def __init__(self, now: datetime = datetime(2030, 1, 1, tzinfo=UTC), monotonic: float = 1000.0) -> None:
        self._now = now
        self._monotonic = monotonic

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock only, forwards or back, as an administrator or NTP would."""
        self._now += timedelta(seconds=seconds)


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
