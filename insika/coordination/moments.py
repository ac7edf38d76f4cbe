"""Moments as those count them who keep windows and circuits: whole milliseconds since 1970, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def in_ms(moment: datetime) -> int:
    return (moment - _EPOCH) // _MS


def from_ms(ms: int) -> datetime:
    return _EPOCH + ms * _MS


def duration_ms(seconds: float) -> int:
    """At least one, so that no time to live is over before it began."""
    return max(round(seconds * 1000), 1)


def window_end_ms(now_ms: int, window_s: int) -> int:
    """The end of the fixed window that holds `now_ms`; it belongs to the next one."""
    length = window_s * 1000
    return (now_ms // length + 1) * length
