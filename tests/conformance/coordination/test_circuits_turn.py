"""A circuit's life, with the order's own numbers (10 failures, 60 s, 300 s, 30 s), by whichever process."""

from __future__ import annotations

import pytest

from insika.agents.reliability import CircuitBreaker
from insika.reliability.circuit import Circuit, Closed, Open, Trial, Tripped
from tests.limits_world import BREAKER, MODEL, TIMEOUT_S, TRIAL_S


async def opened(counting):
    """By ten failures of two processes in turn. What the tenth was told."""
    ours, others = counting.processes
    for _ in range(4):
        assert await ours.fail(1) == await others.fail(1) == [None]
    assert await ours.fail(1) == [None]
    (tripped,) = await others.fail(1)
    return tripped


async def half_open(counting):
    await opened(counting)
    counting.clock.advance(300)


async def test_it_is_closed_until_the_tenth_failure_and_then_open(counting):
    ours, others = counting.processes
    for _ in range(9):
        assert await ours.before() == Closed()
        assert await others.fail(1) == [None]
    assert await ours.before() == Closed()
    assert await ours.fail(1) == [Tripped(counting.clock.now(), 300.0, reopened=False)]
    for process in counting.processes:
        assert await process.before() == Open(300.0)


async def test_open_lasts_as_long_as_it_has_to_cool_down(counting):
    ours, others = counting.processes
    await opened(counting)
    counting.clock.advance(299.5)
    assert await others.before() == Open(0.5)
    counting.clock.advance(0.5)
    assert isinstance(await ours.before(), Trial)


@pytest.mark.parametrize(("between_s", "trips"), [(60.0, True), (60.001, False)])
async def test_failures_count_for_the_time_they_are_asked_within(counting, between_s, trips):
    ours, others = counting.processes
    assert await ours.fail(1) == [None]
    counting.clock.advance(between_s)
    told = await others.fail(9)
    assert (told[:8], told[8] is not None) == ([None] * 8, trips)


async def test_failures_age_out_one_by_one(counting):
    ours, _ = counting.processes
    for _ in range(100):
        assert await ours.fail(1) == [None]
        counting.clock.advance(6.7)
    assert await ours.fail(1) == [None]
    assert await ours.before() == Closed()


async def test_a_success_between_takes_no_failure_back(counting):
    ours, others = counting.processes
    await ours.fail(9)
    await others.circuits.succeeded(MODEL)
    (tripped,) = await ours.fail(1)
    assert isinstance(tripped, Tripped)


async def test_an_opening_is_told_once_and_what_fails_afterwards_changes_nothing(counting):
    ours, others = counting.processes
    assert isinstance(await opened(counting), Tripped)
    counting.clock.advance(10)
    assert await others.fail(30) == [None] * 30
    assert await ours.before() == Open(290.0)


async def test_a_late_failure_does_not_count_in_a_half_open_circuit(counting):
    ours, others = counting.processes
    await half_open(counting)
    assert await others.fail(10) == [None] * 10
    trial = await ours.trial()
    assert await others.fail(10) == [None] * 10
    await ours.circuits.succeeded(MODEL, trial.token)
    assert await others.before() == Closed()


async def test_half_open_has_one_trial_and_all_others_wait_for_its_end(counting):
    ours, others = counting.processes
    await half_open(counting)
    await ours.trial()
    assert await others.before() == await ours.before() == Open(TRIAL_S)
    counting.clock.advance(34.5)
    assert await others.before() == Open(0.5)


async def test_a_trial_that_dies_frees_its_place_at_the_end_of_its_time_and_its_late_result_is_ignored(counting):
    ours, others = counting.processes
    await half_open(counting)
    dead = await ours.trial()
    counting.clock.advance(TRIAL_S)
    late = [await others.circuits.failed(MODEL, BREAKER, dead.token), await ours.circuits.succeeded(MODEL, dead.token)]
    assert late == [None, None]
    trial = await others.trial()
    assert trial.token != dead.token
    await ours.circuits.succeeded(MODEL, dead.token)
    assert await ours.circuits.failed(MODEL, BREAKER, dead.token) is None
    await ours.circuits.abandoned(MODEL, dead.token)
    assert await ours.before() == Open(TRIAL_S)


async def test_a_trial_that_succeeds_closes_it_and_forgets_the_failures(counting):
    ours, others = counting.processes
    await half_open(counting)
    trial = await ours.trial()
    await ours.circuits.succeeded(MODEL, trial.token)
    assert await others.before() == Closed()
    assert (await others.fail(10))[:9] == [None] * 9


async def test_failures_from_before_it_opened_do_not_count_after_it_closed(counting):
    ours, others = counting.processes
    soon = CircuitBreaker(after=3, within=60, cooldown=1)
    await ours.fail(3, breaker=soon)
    counting.clock.advance(1)
    trial = await ours.trial()
    await ours.circuits.succeeded(MODEL, trial.token)
    assert (await others.fail(3, breaker=soon))[:2] == [None] * 2
    assert isinstance(await ours.before(), Open)


async def test_a_trial_that_fails_opens_it_again_and_that_is_another_opening(counting):
    ours, others = counting.processes
    first = await opened(counting)
    counting.clock.advance(300)
    trial = await ours.trial()
    counting.clock.advance(2)
    again = await ours.circuits.failed(MODEL, BREAKER, trial.token)
    assert again == Tripped(counting.clock.now(), 300.0, reopened=True)
    assert again.opened_at > first.opened_at
    assert await ours.circuits.failed(MODEL, BREAKER, trial.token) is None
    assert await others.before() == Open(300.0)


async def test_a_trial_that_is_abandoned_frees_its_place_at_once(counting):
    ours, others = counting.processes
    await half_open(counting)
    trial = await ours.trial()
    await ours.circuits.abandoned(MODEL, trial.token)
    assert (await others.trial()).token != trial.token


@pytest.mark.parametrize("token", ["", "somebody else's"])
async def test_only_its_own_token_speaks_for_a_trial(counting, token):
    ours, others = counting.processes
    await half_open(counting)
    await ours.trial()
    await others.circuits.succeeded(MODEL, token)
    await others.circuits.abandoned(MODEL, token)
    assert await others.circuits.failed(MODEL, BREAKER, token) is None
    assert await others.before() == Open(TRIAL_S)


async def test_a_token_means_nothing_where_there_is_no_trial(counting):
    ours, _ = counting.processes
    for _ in range(20):
        assert await ours.circuits.failed(MODEL, BREAKER, "made up") is None
    await ours.circuits.succeeded(MODEL, "made up")
    await ours.circuits.abandoned(MODEL, "made up")
    assert await ours.before() == Closed()


async def test_tenants_and_models_have_circuits_of_their_own(counting):
    ours, others = counting.processes
    await opened(counting)
    for circuit in (
        Circuit("", MODEL.model),
        Circuit("acme", "openai/gpt-4o-mini"),
        Circuit("acme:anthropic/claude", "sonnet-4-5"),
        Circuit("acme/anthropic", "claude-sonnet-4-5"),
    ):
        assert await others.before(circuit) == Closed()
    assert await ours.before() == Open(300.0)


async def test_agents_meet_in_one_circuit_each_with_numbers_of_its_own(counting):
    ours, others = counting.processes
    slow = CircuitBreaker(after=12, within=600, cooldown=20)
    quick = CircuitBreaker(after=3, within=1, cooldown=5)
    for _ in range(11):
        assert await ours.fail(1, breaker=quick) == [None]
        counting.clock.advance(2)
    (tripped,) = await others.fail(1, breaker=slow)
    assert isinstance(tripped, Tripped)
    assert await ours.before() == Open(20.0)


async def test_one_failure_may_be_enough(counting):
    (tripped,) = await counting.processes[0].fail(1, breaker=CircuitBreaker(after=1, within=0.001, cooldown=0.0001))
    assert isinstance(tripped, Tripped)
    counting.clock.advance(0.001)
    assert isinstance(await counting.processes[0].circuits.before(MODEL, TIMEOUT_S), Trial)
