"""How a vendor's failure is read: what may be done about it, and how long the vendor asks to wait. Pure.

An adapter gives what it saw (status, the vendor's own words for the kind of error, headers); the decision is made here
and nowhere else, so that every vendor's failures mean the same. What nobody has thought of is fatal: trying again what
broke in an unknown way costs money and helps nobody.

Sources: RFC 9110 section 10.2.3 (Retry-After: seconds or a date); platform.claude.com/docs/en/api/errors and
/api/rate-limits (a month's spend that is used up is a 429, too, told by its `error_code` alone);
platform.openai.com/docs/guides/error-codes (insufficient_quota is a 429 that no wait mends);
openrouter.ai/docs/api/errors (a 402 with Retry-After is money in flight, which a wait mends; one without is none).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from insika.errors import FailureAction

LONG_WAIT_S = 60.0
"""A wait beyond this is not one that a turn spends waiting."""
MAX_WAIT_S = 7 * 86_400.0
"""What no Retry-After is taken beyond: a vendor that says more is mistaken or lying."""

_TRANSIENT = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_RATE_LIMITED = 429
_PAYMENT_REQUIRED = 402
_STREAMED = (0, 200)
_TRANSIENT_KINDS = frozenset({"overloaded_error", "api_error", "timeout_error", "server_error", "internal_error"})
_LIMIT_KINDS = frozenset({"rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "tokens", "requests"})
_MONEY_KINDS = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_not_active",
        "billing_hard_limit_reached",
        "credits_exhausted",
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    }
)


def action_of(status: int, kinds: frozenset[str], retry_after_s: float | None) -> FailureAction:
    """`status` of the HTTP answer; 0 when the failure came as an event in a stream that had begun with 200. `kinds`:
    every word that the vendor gave for it (its type and its code), lower case."""
    if kinds & _MONEY_KINDS:
        return FailureAction.FATAL
    limited = status == _RATE_LIMITED or (status == _PAYMENT_REQUIRED and retry_after_s is not None)
    if limited or (status in _STREAMED and kinds & _LIMIT_KINDS):
        long = retry_after_s is not None and retry_after_s > LONG_WAIT_S
        return FailureAction.RATE_LIMITED_LONG if long else FailureAction.RATE_LIMITED_SHORT
    if status in _TRANSIENT or (status in _STREAMED and kinds & _TRANSIENT_KINDS):
        long = retry_after_s is not None and retry_after_s > LONG_WAIT_S
        return FailureAction.RATE_LIMITED_LONG if long else FailureAction.RETRYABLE
    return FailureAction.FATAL


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds from `now` (aware) that a vendor asks to wait, from 0 to MAX_WAIT_S; None when it does not say, or says
    what cannot be read. `headers` have lower-case names. Milliseconds (`retry-after-ms`), where given, are the finer
    word for the same."""
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return _bounded(millis / 1000)
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None:
        return _bounded(seconds)
    moment = _date(given)
    return None if moment is None else _bounded((moment - now).total_seconds())


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_WAIT_S)


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
