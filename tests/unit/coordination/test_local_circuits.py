"""The twin of the circuits: bounded, and able to go on from how another one keeps them."""

from __future__ import annotations

import pytest

from insika.agents.reliability import CircuitBreaker
from insika.clock import ManualClock
from insika.coordination.local_circuits import LocalCircuits
from insika.reliability.circuit import Circuit, Closed, Open, Trial
from tests.limits_world import MODEL, TIMEOUT_S

AT_ONCE = CircuitBreaker(after=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_what_another_keeps_open_is_open_for_as_long(clock):
    circuits = LocalCircuits(clock)
    circuits.learn(MODEL, Open(12.5))
    assert await circuits.before(MODEL, TIMEOUT_S) == Open(12.5)
    assert await circuits.failed(MODEL, AT_ONCE) is None
    clock.advance(12.5)
    assert isinstance(await circuits.before(MODEL, TIMEOUT_S), Trial)


async def test_what_another_keeps_closed_is_closed(clock):
    circuits = LocalCircuits(clock)
    await circuits.failed(MODEL, AT_ONCE)
    circuits.learn(MODEL, Closed())
    assert await circuits.before(MODEL, TIMEOUT_S) == Closed()


async def test_a_clock_on_the_wall_that_jumps_changes_nothing(clock):
    circuits = LocalCircuits(clock)
    await circuits.failed(MODEL, AT_ONCE)
    clock.jump(86_400)
    assert await circuits.before(MODEL, TIMEOUT_S) == Open(300.0)
    clock.jump(-2 * 86_400)
    assert await circuits.before(MODEL, TIMEOUT_S) == Open(300.0)


async def test_whichever_was_not_used_for_longest_makes_room(clock):
    circuits = LocalCircuits(clock, bound=2)
    one, two, three = (Circuit("", f"offline/{name}") for name in "abc")
    for circuit in (one, two):
        await circuits.failed(circuit, AT_ONCE)
    await circuits.before(one, TIMEOUT_S)
    await circuits.failed(three, AT_ONCE)
    passages = [await circuits.before(circuit, TIMEOUT_S) for circuit in (one, two, three)]
    assert passages == [Open(300.0), Closed(), Open(300.0)]


async def test_failures_are_kept_for_a_day_at_the_most(clock):
    circuits = LocalCircuits(clock)
    never = CircuitBreaker(after=100_000, within=60)
    for _ in range(50):
        await circuits.failed(MODEL, never)
        clock.advance(7_200)
    assert len(circuits._states[MODEL].failures) == 13
