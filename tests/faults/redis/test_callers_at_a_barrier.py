"""Parallel turns that all passed one check, and a half-open circuit that let everyone through: 8 and 50 callers at a
barrier, in four processes, on a key that is known or brand new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.faults.redis.callers import Callers
from tests.limits_world import TOKEN_WINDOW_S, TRIAL_S

MANY = pytest.mark.parametrize("callers", [8, 50])
LIMIT = 5
ROUNDS = 5
"""A race that is there need not show at once."""


@pytest.fixture(scope="module")
def started(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    with Callers(redis_url, tmp_path_factory.mktemp("callers") / "barrier") as callers:
        yield callers


@pytest.fixture
def processes(started: Callers, redis_url: str) -> Callers:
    """All of them, and nothing in Redis."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    started.revive()
    return started


@MANY
@pytest.mark.parametrize("known", [0, 3])
def test_no_more_turns_begin_at_once_than_the_limit_says(processes, callers, known):
    for round_ in range(ROUNDS):
        session = f"session-{round_}"
        before = processes.all("begin", known, session=session, limit=LIMIT)
        answers = processes.all("begin", callers, session=session, limit=LIMIT)
        counted = [number for number, _ in answers]
        # The first `known` callers begin the same turns again: they keep their numbers.
        assert answers[:known] == before
        assert sorted(counted) == list(range(1, callers + 1))
        assert [breached for _, breached in answers] == [number > LIMIT for number in counted]


@MANY
@pytest.mark.parametrize("turns", [1, 3])
def test_a_turn_that_begins_everywhere_at_once_counts_once(processes, callers, turns):
    for round_ in range(ROUNDS):
        session = f"session-{round_}"
        answers = processes.all("begin", callers, session=session, limit=2, turns=turns)
        assert answers == answers[:turns] * (callers // turns) + answers[: callers % turns]
        assert sorted(answers[:turns]) == [[1, False], [2, False], [3, True]][:turns]


@MANY
@pytest.mark.parametrize("known", [0, 1])
def test_a_ceiling_is_overshot_by_one_call_of_each_turn_and_no_more(processes, callers, known):
    """All arrive just under the ceiling and are let through, as documented; what each spends is told twice."""
    ceiling = 10 * known + 1
    for round_ in range(ROUNDS):
        agent = f"agent-{round_}"
        processes.all("spend", known, agent=agent, tokens=10 * known, calls=1_000)
        spent = 10 * known
        assert processes.all("look", callers, agent=agent, ceiling=ceiling) == [[spent, False]] * callers
        processes.all("spend", 2 * callers, agent=agent, tokens=7, calls=callers)
        overshot = 7 * callers + 3 * known  # the call that was known was told again
        assert processes.all("look", callers, agent=agent, ceiling=ceiling) == [[overshot, True]] * callers
    later = processes.all("look", callers, agent="agent-0", ceiling=1, advance_s=TOKEN_WINDOW_S)
    assert later == [[0, False]] * callers


@MANY
def test_a_circuit_opens_once_however_many_see_it(processes, callers):
    for round_ in range(ROUNDS):
        told = [*processes.all("fail", callers, advance_s=61), *processes.all("fail", callers)]
        opened = [each for each in told if each is not None]
        assert len(opened) == 1, f"in round {round_}"
        assert opened[0][1:] == [300.0, False]
        token = trial_of_one(processes.all("ask", callers, advance_s=300))
        processes.one("succeed", token=token)
        assert processes.all("ask", callers) == [{"closed": True}] * callers


@MANY
def test_after_the_cooldown_one_of_all_tries_and_no_other_while_it_hangs(processes, callers):
    processes.all("fail", 10)
    assert processes.all("ask", callers, advance_s=299.999) == [{"open": 0.001}] * callers
    trial_of_one(processes.all("ask", callers, advance_s=0.001))
    for _ in range(ROUNDS):
        assert processes.all("ask", callers) == [{"open": TRIAL_S}] * callers
        assert processes.all("ask", callers, advance_s=TRIAL_S - 0.001) == [{"open": 0.001}] * callers
        trial_of_one(processes.all("ask", callers, advance_s=0.001))


def test_a_trial_that_dies_frees_its_place_within_its_time(processes):
    processes.all("fail", 10)
    answers = processes.all("ask", 50, advance_s=300)
    token = trial_of_one(answers)
    processes.kill_whoever_called(answers.index({"trial": token}))
    assert processes.all("ask", 50, advance_s=TRIAL_S - 0.001) == [{"open": 0.001}] * 50
    second = trial_of_one(processes.all("ask", 50, advance_s=0.001))
    # A result that comes from beyond the grave says nothing about the one under way.
    assert processes.all("fail", 50, token=token) == [None] * 50
    processes.all("succeed", 50, token=token)
    assert processes.all("ask", 50) == [{"open": TRIAL_S}] * 50
    processes.one("succeed", token=second)
    assert processes.all("ask", 50) == [{"closed": True}] * 50


def test_a_trial_that_is_cancelled_makes_room_for_one_other_at_once(processes):
    processes.all("fail", 10)
    token = trial_of_one(processes.all("ask", 50, advance_s=300))
    for _ in range(ROUNDS):
        processes.all("abandon", 50, token=token)
        token = trial_of_one(processes.all("ask", 50))


def test_the_failure_of_a_trial_opens_it_again_once_whoever_tells(processes):
    processes.all("fail", 10)
    for _ in range(ROUNDS):
        token = trial_of_one(processes.all("ask", 50, advance_s=300))
        told = [each for each in processes.all("fail", 50, token=token) if each is not None]
        assert len(told) == 1
        assert told[0][1:] == [300.0, True]
        assert processes.all("ask", 50) == [{"open": 300.0}] * 50


def trial_of_one(answers: list[Any]) -> str:
    """The token of the only trial among them; all others are told how long it may take."""
    tokens = [answer["trial"] for answer in answers if "trial" in answer]
    assert len(tokens) == 1
    assert [answer for answer in answers if "trial" not in answer] == [{"open": TRIAL_S}] * (len(answers) - 1)
    return str(tokens[0])
