"""What stands before each attempt at a model: its circuit. A port with two sides, so that an agent without a breaker is
asked nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from insika.agents.reliability import CircuitBreaker
from insika.reliability.circuit import Circuit, Circuits, Closed, Open, Passage, Trial, Tripped

OnTripped = Callable[[str, Tripped], Awaitable[None]]
"""Told of each circuit that an attempt of this turn has opened: the model's reference, and since when."""


class Gate(Protocol):
    """Of one turn. At most one attempt is under way at a time."""

    async def enter(self, model: str, timeout_s: float) -> Closed | Open:
        """Whether the model may be asked now, in an attempt of at most `timeout_s` seconds. After Closed exactly one of
        the three that follow must be called."""
        ...

    async def succeeded(self) -> None: ...

    async def failed(self) -> None:
        """In a way that counts against the model."""
        ...

    async def left(self) -> None:
        """Without a result that says anything of the model. Without an attempt under way this changes nothing."""
        ...


class NoGate:
    async def enter(self, model: str, timeout_s: float) -> Closed | Open:
        return Closed()

    async def succeeded(self) -> None:
        return None

    async def failed(self) -> None:
        return None

    async def left(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Inside:
    circuit: Circuit
    token: str


class CircuitGate:
    """The circuits of one tenant, as one agent's breaker sees them."""

    def __init__(self, circuits: Circuits, tenant: str, breaker: CircuitBreaker, on_tripped: OnTripped) -> None:
        self._circuits = circuits
        self._tenant = tenant
        self._breaker = breaker
        self._on_tripped = on_tripped
        self._inside: _Inside | None = None

    async def enter(self, model: str, timeout_s: float) -> Closed | Open:
        circuit = Circuit(self._tenant, model)
        passage: Passage = await self._circuits.before(circuit, timeout_s)
        if isinstance(passage, Open):
            return passage
        self._inside = _Inside(circuit, passage.token if isinstance(passage, Trial) else "")
        return Closed()

    async def succeeded(self) -> None:
        inside = self._leave()
        if inside is not None:
            await self._circuits.succeeded(inside.circuit, inside.token)

    async def failed(self) -> None:
        inside = self._leave()
        if inside is None:
            return
        tripped = await self._circuits.failed(inside.circuit, self._breaker, inside.token)
        if tripped is not None:
            await self._on_tripped(inside.circuit.model, tripped)

    async def left(self) -> None:
        inside = self._leave()
        if inside is not None and inside.token:
            await self._circuits.abandoned(inside.circuit, inside.token)

    def _leave(self) -> _Inside | None:
        inside, self._inside = self._inside, None
        return inside
