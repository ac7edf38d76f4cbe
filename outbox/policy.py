"""How long to wait before a delivery is tried again: values only, nothing here sleeps.

The waits are tenacity's strategies, asked for their number; the wait itself is a due time on the row, so that it
outlives the process.
"""

from __future__ import annotations

import email.utils
import math
from datetime import UTC, datetime

from tenacity import RetryCallState, Retrying
from tenacity.wait import wait_base, wait_chain, wait_fixed, wait_random

RETRY_AFTER_MAX_S = 3600.0
"""A receiver may ask for this long and no longer: beyond it, answers arrive too late to be of use."""


def delivery_waits() -> wait_base:
    """1 s, then 5 s each, and up to a quarter of a second on top so that many do not come back at once."""
    return wait_chain(wait_fixed(1), wait_fixed(5)) + wait_random(0, 0.25)


class RetryWaits:
    """The wait after an attempt: the strategy's, or what the receiver asked for where that is longer."""

    def __init__(self, strategy: wait_base, retry_after_max_s: float = RETRY_AFTER_MAX_S) -> None:
        self._strategy = strategy
        self._retry_after_max_s = retry_after_max_s

    def after(self, attempts: int, retry_after_s: float | None) -> float:
        """Seconds, at least 0, after the attempt of this number (from 1)."""
        wait_s = strategy_wait_s(self._strategy, attempts)
        if retry_after_s is None:
            return wait_s
        return max(wait_s, min(retry_after_s, self._retry_after_max_s))


def strategy_wait_s(strategy: wait_base, attempts: int) -> float:
    """What a tenacity strategy would wait after so many attempts, in seconds."""
    state = RetryCallState(Retrying(), fn=None, args=(), kwargs={})
    state.attempt_number = attempts
    return max(0.0, float(strategy(state)))


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header, as a number or an HTTP date (RFC 9110, 10.2.3); None for anything else.

    `now` is what the date is compared with; a date that has passed means at once.
    """
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        at = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    wait_s = (at - now).total_seconds()
    return max(0.0, wait_s) if math.isfinite(wait_s) else None
