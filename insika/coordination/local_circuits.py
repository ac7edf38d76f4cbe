"""Circuits, as one process keeps them: by itself, or while Redis is away.

Bounded: whichever circuit has not been used for longest makes room, and is closed when it comes again.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from insika.agents.reliability import CircuitBreaker
from insika.clock import Clock
from insika.coordination.moments import duration_ms
from insika.reliability.circuit import TRIAL_GRACE_S, Circuit, Closed, Open, Passage, Trial, Tripped

CIRCUITS = 10_000
MOST_FAILURES = 100_000
"""Kept of one circuit: as many as a profile may ask for."""
FAILURES_KEPT_S = 86_400
"""And for as long."""


@dataclass(slots=True)
class _State:
    """In milliseconds of the clock that never goes back. `open_until` None: it is closed. `token` "": no trial."""

    failures: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_FAILURES))
    open_until: int | None = None
    token: str = ""
    trial_until: int = 0


class LocalCircuits:
    """`bound`: how many circuits are kept."""

    def __init__(self, clock: Clock, bound: int = CIRCUITS) -> None:
        self._clock = clock
        self._bound = bound
        self._states: OrderedDict[Circuit, _State] = OrderedDict()

    async def before(self, circuit: Circuit, attempt_timeout_s: float) -> Passage:
        state, now = self._states.get(circuit), self._now()
        if state is None or state.open_until is None:
            return Closed()
        self._states.move_to_end(circuit)
        if now < state.open_until:
            return Open((state.open_until - now) / 1000)
        if state.token and now < state.trial_until:
            return Open((state.trial_until - now) / 1000)
        state.token = uuid.uuid4().hex
        state.trial_until = now + duration_ms(attempt_timeout_s + TRIAL_GRACE_S)
        return Trial(state.token)

    async def succeeded(self, circuit: Circuit, token: str = "") -> None:
        if self.on_trial(circuit, token):
            del self._states[circuit]

    async def failed(self, circuit: Circuit, breaker: CircuitBreaker, token: str = "") -> Tripped | None:
        if token:
            return self._open(circuit, breaker, reopened=True) if self.on_trial(circuit, token) else None
        state, now = self._used(circuit), self._now()
        if state.open_until is not None:
            return None
        state.failures.append(now)
        while now - state.failures[0] > FAILURES_KEPT_S * 1000:
            state.failures.popleft()
        if len(state.failures) < breaker.after:
            return None
        oldest = state.failures[-breaker.after]
        return self._open(circuit, breaker, reopened=False) if now - oldest <= duration_ms(breaker.within) else None

    async def abandoned(self, circuit: Circuit, token: str) -> None:
        if self.on_trial(circuit, token):
            self._states[circuit].token = ""

    def on_trial(self, circuit: Circuit, token: str) -> bool:
        """Whether the trial under way here, which is not over yet, has this token."""
        state = self._states.get(circuit)
        return state is not None and token != "" and state.token == token and self._now() < state.trial_until

    def learn(self, circuit: Circuit, passage: Closed | Open) -> None:
        """How another one keeps this circuit, to go on from there."""
        if isinstance(passage, Closed):
            self._states.pop(circuit, None)
            return
        state = self._used(circuit)
        state.open_until, state.token = self._now() + duration_ms(passage.retry_after_s), ""

    def _open(self, circuit: Circuit, breaker: CircuitBreaker, *, reopened: bool) -> Tripped:
        self._states[circuit] = _State(open_until=self._now() + duration_ms(breaker.cooldown))
        return Tripped(self._clock.now(), breaker.cooldown, reopened)

    def _used(self, circuit: Circuit) -> _State:
        state = self._states.setdefault(circuit, _State())
        self._states.move_to_end(circuit)
        if len(self._states) > self._bound:
            self._states.popitem(last=False)
        return state

    def _now(self) -> int:
        return round(self._clock.monotonic() * 1000)
