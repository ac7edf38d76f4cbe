"""Processes that count together, in a time that stands still until it is told to move."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from insika.agents.reliability import CircuitBreaker
from insika.clock import ManualClock
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.local_windows import LocalWindows
from insika.coordination.redis.coordination import RedisCoordination
from insika.coordination.redis.scripts import time_of
from insika.limits.windows import EdgeWindows, SettledTokens, TokenCeiling, TurnAttempt, WindowReading
from insika.reliability.circuit import Circuit, Circuits, Trial

PATIENT_S = 30.0
"""As a busy machine may need it. None of these tests is about a Redis that is away."""
RATE_WINDOW_S, TOKEN_WINDOW_S = 60, 86_400
TIMEOUT_S, TRIAL_S = 30.0, 35.0
BREAKER = CircuitBreaker(after=10, within=60, cooldown=300)
MODEL = Circuit("acme", "anthropic/claude-sonnet-4-5")


class Process:
    """One of those that count. `told` returns when all that it has spent is counted."""

    def __init__(self, windows: EdgeWindows, circuits: Circuits) -> None:
        self.windows = windows
        self.circuits = circuits

    async def told(self) -> None:
        return None

    async def begin(self, turn: str, limit: int = 3, session: str = "ana") -> WindowReading:
        (reading,) = await self.windows.admit([attempt(turn, limit, session)])
        return reading

    async def spent(self, agent: str = "shop", ceiling: int = 100) -> WindowReading:
        (reading,) = await self.windows.admit([TokenCeiling("acme", agent, ceiling, TOKEN_WINDOW_S)])
        return reading

    async def fail(self, times: int, circuit: Circuit = MODEL, breaker: CircuitBreaker = BREAKER) -> list[object]:
        return [await self.circuits.failed(circuit, breaker) for _ in range(times)]

    async def before(self, circuit: Circuit = MODEL) -> object:
        return await self.circuits.before(circuit, TIMEOUT_S)

    async def trial(self, circuit: Circuit = MODEL) -> Trial:
        passage = await self.before(circuit)
        assert isinstance(passage, Trial)
        return passage


class OverRedis(Process):
    """Its lines do not run: what they would do by themselves, `told` does."""

    def __init__(self, url: str, clock: ManualClock, namespace: str) -> None:
        self._redis = RedisCoordination(url, clock, namespace=namespace, time=time_of(clock), patience_s=PATIENT_S)
        super().__init__(self._redis.windows, self._redis.circuits)

    async def told(self) -> None:
        while await self._redis.spending.send():
            pass

    async def close(self) -> None:
        assert not self._redis.health.degraded, self._redis.health.reason
        await self._redis.aclose()


@dataclass
class Counting:
    """The processes of one deployment."""

    processes: list[Process]
    clock: ManualClock = field(default_factory=ManualClock)


@asynccontextmanager
async def within_one_process(processes: int) -> AsyncIterator[Counting]:
    clock = ManualClock()
    yield Counting([Process(LocalWindows(clock), LocalCircuits(clock))] * processes, clock)


@asynccontextmanager
async def over_redis(url: str, processes: int) -> AsyncIterator[Counting]:
    clock, namespace = ManualClock(), f"insika-{uuid.uuid4().hex}"
    members = [OverRedis(url, clock, namespace) for _ in range(processes)]
    try:
        yield Counting([*members], clock)
    finally:
        for member in members:
            await member.close()


def attempt(turn: str, limit: int = 3, session: str = "ana", window_s: int = RATE_WINDOW_S) -> TurnAttempt:
    return TurnAttempt("acme", session, turn, limit, window_s)


def settled(
    tokens: int, turn: str = "t1", *, agent: str = "shop", step: int = 1, number: int = 1, purpose: str = "answer"
) -> SettledTokens:
    return SettledTokens("acme", agent, TOKEN_WINDOW_S, turn, step, number, purpose, tokens)
