"""Retries, fallback and circuits put together, against real circuits in one process."""

from __future__ import annotations

import pytest

from insika.agents.reliability import CircuitBreaker
from insika.clock import ManualClock
from insika.coordination.local_circuits import LocalCircuits
from insika.errors import CircuitOpen, ProviderError, ProviderFatal
from insika.reliability.attempts import FailedAttempt, GiveUp, TryAgain
from insika.reliability.chain import Chain
from insika.reliability.circuit import Tripped
from insika.reliability.gate import CircuitGate, NoGate
from insika.reliability.reliable import ReliableAttempts

A, B = "openai/a", "anthropic/b"
BREAKER = CircuitBreaker(after=2, within=60, cooldown=300)


class AtOnce:
    def after(self, attempts: int, retry_after_s: float | None) -> float:
        return retry_after_s or 0.0


class World:
    def __init__(self, *fallback: str, retries: int = 0) -> None:
        self.clock = ManualClock()
        self.circuits = LocalCircuits(self.clock)
        self.tripped: list[tuple[str, Tripped]] = []
        self.chain = Chain.of(A, fallback, (), retries)

    def turn(self) -> ReliableAttempts:
        async def on_tripped(model: str, tripped: Tripped) -> None:
            self.tripped.append((model, tripped))

        return ReliableAttempts(
            self.chain, CircuitGate(self.circuits, "acme", BREAKER, on_tripped), AtOnce(), timeout_s=30.0
        )

    async def fails(self, error: ProviderError | None = None) -> TryAgain | GiveUp:
        turn = self.turn()
        model = await turn.before(A, [])
        return await turn.after([FailedAttempt(model, error or ProviderError("busy"))], 100.0)


async def test_the_circuit_opens_after_its_failures_and_is_told_of_once() -> None:
    world = World()
    await world.fails()
    await world.fails()
    assert [model for model, _ in world.tripped] == [A]
    with pytest.raises(CircuitOpen) as refused:
        await world.turn().before(A, [])
    assert refused.value.retry_after == pytest.approx(300.0)


async def test_an_open_model_is_skipped_for_the_next() -> None:
    world = World(B)
    await world.fails()
    await world.fails()
    assert await world.turn().before(A, []) == B


async def test_fatal_failures_do_not_count() -> None:
    world = World()
    for _ in range(5):
        decision = await world.fails(ProviderFatal("no such model"))
        assert isinstance(decision, GiveUp)
    assert world.tripped == []
    assert await world.turn().before(A, []) == A


async def test_half_open_lets_one_through_and_its_success_closes() -> None:
    world = World()
    await world.fails()
    await world.fails()
    world.clock.advance(301)
    trial = world.turn()
    assert await trial.before(A, []) == A
    with pytest.raises(CircuitOpen):
        await world.turn().before(A, [])
    await trial.succeeded()
    assert await world.turn().before(A, []) == A


async def test_a_trial_that_is_left_frees_its_place_at_once() -> None:
    world = World()
    await world.fails()
    await world.fails()
    world.clock.advance(301)
    trial = world.turn()
    await trial.before(A, [])
    await trial.left()
    assert await world.turn().before(A, []) == A


async def test_where_the_rest_of_the_chain_is_open_the_failure_itself_ends_the_turn() -> None:
    world = World(B)
    for _ in range(2):
        gate = world.turn()
        await gate.before(B, [])
        await gate.after([FailedAttempt(B, ProviderError("b is busy"))], 100.0)
    turn = world.turn()
    assert await turn.before(A, []) == A
    failed = [FailedAttempt(A, ProviderError("a is busy"))]
    decision = await turn.after(failed, 100.0)
    assert decision == TryAgain(0.0, B)
    with pytest.raises(ProviderError, match="a is busy"):
        await turn.before(B, failed)


async def test_without_a_breaker_nothing_is_ever_open() -> None:
    attempts = ReliableAttempts(Chain.of(A, [], [], 0), NoGate(), AtOnce(), 30.0)
    for _ in range(20):
        assert await attempts.before(A, []) == A
        assert isinstance(await attempts.after([FailedAttempt(A, ProviderError("busy"))], 100.0), GiveUp)
