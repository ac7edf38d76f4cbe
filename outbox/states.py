"""What one attempt to deliver came to, and what follows from it. Pure: no I/O, no clock.

    pending -> delivering -> delivered | failed | uncertain
    delivering -> pending         refused for certain, tries are left (or unknown, with at_least_once)
    uncertain  -> delivered       the holder of the last claim learned it late
    failed, uncertain -> pending  an operator resends

The line that matters runs between *certainly refused*, which may be tried again, and *unknown*, which may not: a
receiver that has acted and could not say so must never be asked a second time by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from insika.choices import Guarantee
from outbox.message import DeliveryState

# --- what an attempt came to ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """The receiver's status, whatever it is. `retry_after_s` is its Retry-After in seconds; None when it sent none
    that can be understood."""

    status: int
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class NotSent:
    """Certainly no byte of the request has left: no address, no connection, no TLS, or the claim had run out."""

    reason: str


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Certainly not sent, and it never may be: the egress guard refuses the address, or it cannot be signed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Some of the request may have left, and no answer came."""

    reason: str


AttemptResult = Answered | NotSent | Forbidden | Unknown


# --- what follows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivered:
    status: int


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Back to pending, due after `delay_s`. `possible_duplicate`: the receiver may have had this one."""

    delay_s: float
    reason: str
    possible_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    reason: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    reason: str


Decision = Delivered | RetryIn | Failed | Uncertain


def state_after(decision: Decision) -> DeliveryState:
    """Where a delivery stands once this is written."""
    match decision:
        case Delivered():
            return DeliveryState.DELIVERED
        case RetryIn():
            return DeliveryState.PENDING
        case Failed():
            return DeliveryState.FAILED
        case Uncertain():
            return DeliveryState.UNCERTAIN


class Waits(Protocol):
    def after(self, attempts: int, retry_after_s: float | None) -> float:
        """Seconds to wait after the attempt of this number (from 1)."""
        ...


CERTAIN_REFUSALS = frozenset({408, 429, 500, 503})
"""Statuses by which a receiver says that it did not take the delivery and may be asked again. 500 and a 503 without
Retry-After are taken at their word too; a receiver that acts and then answers 500 sees the same id again."""


def decide(result: AttemptResult, *, attempts: int, max_attempts: int, guarantee: Guarantee, waits: Waits) -> Decision:
    """What becomes of a delivery after its attempt number `attempts` (counted since it was last sent by hand)."""
    match result:
        case Answered(status, wanted_s) if status in CERTAIN_REFUSALS:
            return _refused(f"the receiver answered {status}", attempts, max_attempts, waits, wanted_s)
        case Answered(status) if 200 <= status <= 499:
            return _final(status)
        case Answered(status):
            return _unknown(f"the answer was {status}", attempts, max_attempts, guarantee, waits)
        case NotSent(reason):
            return _refused(reason, attempts, max_attempts, waits, None)
        case Forbidden(reason):
            return Failed(reason)
        case Unknown(reason):
            return _unknown(reason, attempts, max_attempts, guarantee, waits)


def expired(*, attempts: int, max_attempts: int, guarantee: Guarantee) -> Decision:
    """What becomes of a delivery whose holder let its claim run out: it may have been sent just before."""
    return _unknown("the process that was sending it went away", attempts, max_attempts, guarantee, _AtOnce())


def _final(status: int) -> Decision:
    if status <= 299:
        return Delivered(status)
    if status <= 399:
        return Failed(f"the receiver answered {status}: redirects are not followed, set the channel's final url")
    if status == 410:
        return Failed("the receiver answered 410: it wants no more deliveries at this url")
    return Failed(f"the receiver answered {status}")


def _refused(reason: str, attempts: int, max_attempts: int, waits: Waits, retry_after_s: float | None) -> Decision:
    if attempts >= max_attempts:
        return Failed(f"{reason}; given up after {attempts} of {max_attempts} attempts")
    return RetryIn(waits.after(attempts, retry_after_s), reason)


def _unknown(reason: str, attempts: int, max_attempts: int, guarantee: Guarantee, waits: Waits) -> Decision:
    if guarantee is Guarantee.AT_LEAST_ONCE and attempts < max_attempts:
        return RetryIn(waits.after(attempts, None), reason, possible_duplicate=True)
    return Uncertain(reason)


class _AtOnce:
    def after(self, attempts: int, retry_after_s: float | None) -> float:
        return 0.0
