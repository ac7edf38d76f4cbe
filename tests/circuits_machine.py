"""Circuits under several processes that ask, fail, try, die and come too late.

The model is one sentence a state, on lists that nothing is ever taken out of but by the circuit's own closing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from insika.agents.reliability import CircuitBreaker
from insika.reliability.circuit import Circuit, Closed, Open, Trial, Tripped
from tests.limits_world import TIMEOUT_S, TRIAL_S, Counting

PROCESSES = 3
WHO = st.integers(0, PROCESSES - 1)
CIRCUITS = st.sampled_from([Circuit("acme", "offline/a"), Circuit("", "offline/a")])
BREAKERS = st.builds(
    CircuitBreaker,
    after=st.integers(1, 4),
    within=st.sampled_from([5.0, 60.0]),
    cooldown=st.sampled_from([10.0, 300.0]),
)
T = TypeVar("T")


@dataclass
class Model:
    """`failures`: when, in seconds. `trials`: of each token, until when it lives."""

    failures: list[float] = field(default_factory=list)
    open_until: float | None = None
    trials: dict[str, float] = field(default_factory=dict)
    openings: list[datetime] = field(default_factory=list)

    def live(self, now: float) -> list[str]:
        return [token for token, until in self.trials.items() if now < until]


class CircuitsMachine(RuleBasedStateMachine):
    """Subclasses say who keeps them, by `open`."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.counting = self.run(self.closing.enter_async_context(self.open()))
        self.models: dict[Circuit, Model] = defaultdict(Model)
        self.tokens: list[tuple[Circuit, str]] = []

    def teardown(self) -> None:
        self.run(self.closing.aclose())
        self.runner.close()

    def open(self) -> AbstractAsyncContextManager[Counting]:
        raise AssertionError("a subclass says who")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def circuits(self, who: int) -> Any:
        return self.counting.processes[who].circuits

    @property
    def now(self) -> float:
        return self.counting.clock.monotonic()

    @rule(who=WHO, circuit=CIRCUITS)
    def ask(self, who: int, circuit: Circuit) -> None:
        model, passage = self.models[circuit], self.run(self.circuits(who).before(circuit, TIMEOUT_S))
        if model.open_until is None:
            assert passage == Closed()
        elif self.now < model.open_until:
            assert passage == Open(pytest.approx(model.open_until - self.now))
        elif live := model.live(self.now):
            assert passage == Open(pytest.approx(model.trials[live[0]] - self.now))
        else:
            assert isinstance(passage, Trial)
            assert passage.token not in model.trials
            model.trials[passage.token] = self.now + TRIAL_S
            self.tokens.append((circuit, passage.token))

    @rule(who=WHO, circuit=CIRCUITS, breaker=BREAKERS, times=st.integers(1, 3))
    def fail(self, who: int, circuit: Circuit, breaker: CircuitBreaker, times: int) -> None:
        model = self.models[circuit]
        for _ in range(times):
            told = self.run(self.circuits(who).failed(circuit, breaker))
            if model.open_until is not None:
                assert told is None
                continue
            model.failures.append(self.now)
            recent = [at for at in model.failures if self.now - at <= breaker.within]
            if len(recent) >= breaker.after:
                self.opens(model, breaker, told, reopened=False)
            else:
                assert told is None

    @rule(who=WHO, circuit=CIRCUITS, breaker=BREAKERS)
    def break_down(self, who: int, circuit: Circuit, breaker: CircuitBreaker) -> None:
        self.fail(who, circuit, breaker, breaker.after)

    @precondition(lambda self: any(model.open_until for model in self.models.values()))
    @rule(short_s=st.sampled_from([0.0, 0.0, 0.001]))
    def cool_down(self, short_s: float) -> None:
        """The one that is open for longest, or nearly."""
        until = max(model.open_until or 0.0 for model in self.models.values())
        self.counting.clock.advance(max(until - self.now - short_s, 0.0))

    @precondition(lambda self: self.tokens)
    @rule(who=WHO, data=st.data(), how=st.sampled_from(["succeeded", "failed", "abandoned"]), breaker=BREAKERS)
    def end_a_trial(self, who: int, data: st.DataObject, how: str, breaker: CircuitBreaker) -> None:
        """Also one that is over, or was another's."""
        circuit, token = data.draw(st.sampled_from(list(reversed(self.tokens))[:3]))
        model, circuits = self.models[circuit], self.circuits(who)
        live = token in model.live(self.now)
        if how == "failed":
            told = self.run(circuits.failed(circuit, breaker, token))
            if live:
                self.opens(model, breaker, told, reopened=True)
            else:
                assert told is None
            return
        self.run(getattr(circuits, how)(circuit, token))
        if live:
            model.trials.clear()
            if how == "succeeded":
                model.failures, model.open_until = [], None

    def opens(self, model: Model, breaker: CircuitBreaker, told: Tripped | None, *, reopened: bool) -> None:
        assert told == Tripped(self.counting.clock.now(), breaker.cooldown, reopened)
        model.openings.append(told.opened_at)
        model.failures, model.open_until = [], self.now + breaker.cooldown
        model.trials.clear()

    @rule(seconds=st.sampled_from([0.001, 1, 5, 10, 34.999, 35, 60, 300]))
    def time_passes(self, seconds: float) -> None:
        self.counting.clock.advance(seconds)

    @invariant()
    def one_trial_at_a_time_and_no_two_openings_alike(self) -> None:
        for model in self.models.values():
            assert len(model.live(self.now)) <= 1
            assert len(set(model.openings)) == len(model.openings)
