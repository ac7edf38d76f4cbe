"""Times as SQLite keeps them: whole microseconds since 1970 in UTC, with a number for each end of time.

Nothing here reads a clock. `0` is due now and stays due whatever the clock does; `NEVER_US` is the other end.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from insika.clock import DUE_NOW, NEVER

DUE_NOW_US = 0
NEVER_US = 2**62

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(at: datetime) -> int:
    """Aware time to microseconds; anything before 1970 is due now."""
    micros = _since_1970(at)
    if micros <= DUE_NOW_US:
        return DUE_NOW_US
    return NEVER_US if micros >= _LAST else micros


def _since_1970(at: datetime) -> int:
    # By hand: it runs in nearly every statement, and dividing a timedelta takes three times as long.
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_LAST = _since_1970(NEVER)


def from_micros(micros: int) -> datetime:
    if micros <= DUE_NOW_US:
        return DUE_NOW
    if micros >= NEVER_US:
        return NEVER
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
