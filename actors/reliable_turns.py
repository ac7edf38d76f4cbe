"""Gives each turn its policy for models that fail: by its agent's profile, the platform's fallbacks, and the circuits.

A circuit that an attempt has opened is told of once, whoever sees it first: by the alert's key, then by its event.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog
from tenacity.wait import wait_base, wait_exponential, wait_fixed, wait_random

from actors.configuration import Configuration
from insika.agents.profile import Profile
from insika.agents.reliability import Backoff, Reliability
from insika.clock import Clock
from insika.events import EventType
from insika.limits.alerts import About, new_alert
from insika.ports import Emit
from insika.reliability.attempts import Attempts, OneAttempt
from insika.reliability.chain import Chain
from insika.reliability.circuit import Circuits, Tripped
from insika.reliability.gate import CircuitGate, NoGate, OnTripped
from insika.reliability.reliable import ReliableAttempts
from insika.storage.port import AlertStore, StoreUnavailable
from outbox.policy import RetryWaits


@functools.cache
def backoff_waits(backoff: Backoff) -> wait_base:
    """Half a second, doubled with each attempt up to eight, or one second each; and up to half a second on top, so that
    not all who failed together come back together."""
    grown = wait_exponential(multiplier=0.5, max=8) if backoff is Backoff.EXPONENTIAL else wait_fixed(1)
    return grown + wait_random(0, 0.5)


class TurnPolicies(Protocol):
    def attempts(self, profile: Profile, tenant: str, turn_id: str, session: str, emit: Emit) -> Attempts: ...


class OneAttemptEach:
    """Nobody's profile is asked: for those who bring a world of their own."""

    def attempts(self, profile: Profile, tenant: str, turn_id: str, session: str, emit: Emit) -> Attempts:
        return OneAttempt()


class ReliableTurns:
    """`cannot_ask` says why a model cannot be asked from this process, "" where it can: such a one is passed over,
    unless it is the agent's own."""

    def __init__(
        self,
        configuration: Configuration,
        circuits: Circuits,
        alerts: AlertStore,
        clock: Clock,
        cannot_ask: Callable[[str], str],
    ) -> None:
        self._configuration = configuration
        self._cannot_ask = cannot_ask
        self._circuits = circuits
        self._alerts = alerts
        self._clock = clock
        self._log = structlog.get_logger("insika.reliability")

    def attempts(self, profile: Profile, tenant: str, turn_id: str, session: str, emit: Emit) -> Attempts:
        reliability = profile.reliability
        if reliability is None:
            return OneAttempt()
        about = About(profile.id, self._clock.now(), tenant, turn_id, session)
        webhook = profile.alerts.webhook if profile.alerts is not None else None

        async def on_tripped(model: str, tripped: Tripped) -> None:
            await self._tell(model, tripped, about, webhook, emit)

        return ReliableAttempts(
            self.chain(profile, reliability),
            self._gate(reliability, tenant, on_tripped),
            RetryWaits(backoff_waits(reliability.backoff)),
            reliability.timeout,
        )

    def chain(self, profile: Profile, reliability: Reliability) -> Chain:
        return Chain.of(
            profile.model,
            self._askable(reliability.fallback),
            self._askable(self._configuration.settings().fallback_models),
            reliability.retries,
        )

    def _askable(self, models: Sequence[str]) -> Sequence[str]:
        return [model for model in models if not self._cannot_ask(model)]

    def _gate(self, reliability: Reliability, tenant: str, on_tripped: OnTripped) -> CircuitGate | NoGate:
        if reliability.circuit_breaker is None:
            return NoGate()
        return CircuitGate(self._circuits, tenant, reliability.circuit_breaker, on_tripped)

    async def _tell(self, model: str, tripped: Tripped, about: About, webhook: str | None, emit: Emit) -> None:
        data = {"model": model, "retry_after": round(tripped.retry_after_s, 1)}
        key = f"breaker/{about.tenant}/{model}/{tripped.opened_at.timestamp():.6f}"
        try:
            new = await self._alerts.raise_alerts([new_alert(key, EventType.BREAKER_OPEN, data, about, webhook)])
        except StoreUnavailable as error:
            # The turn that failed goes on; whoever watches the circuits still sees that it is open.
            self._log.warning("breaker alert not kept", model=model, agent=about.agent, reason=str(error))
            new = frozenset({key})
        if key in new:
            emit(EventType.BREAKER_OPEN, data)
