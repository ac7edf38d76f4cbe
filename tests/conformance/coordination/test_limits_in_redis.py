"""What windows and circuits are in Redis itself: small, of its own time, and one round trip."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator

import pytest
import redis

from insika.agents.reliability import CircuitBreaker
from insika.clock import ManualClock, SystemClock
from insika.coordination.local_windows import ATTEMPTS_BEYOND, CALLS_KNOWN
from insika.coordination.redis.coordination import RedisCoordination
from insika.coordination.redis.keys import circuit_keys, spent_keys, window_key
from insika.coordination.redis.scripts import time_of
from insika.limits.windows import TokenCeiling
from tests.limits_world import BREAKER, MODEL, PATIENT_S, TIMEOUT_S, TOKEN_WINDOW_S, attempt, settled

NAMESPACE = f"insika-{uuid.uuid4().hex}"


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    return client


@pytest.fixture
async def ours(redis_url: str, client: redis.Redis) -> AsyncIterator[RedisCoordination]:
    clock = ManualClock()
    coordination = RedisCoordination(redis_url, clock, namespace=NAMESPACE, time=time_of(clock), patience_s=PATIENT_S)
    yield coordination
    assert not coordination.health.degraded
    await coordination.aclose()


async def test_a_flood_of_one_session_stays_small(ours, client):
    check = attempt("t", limit=2)
    for number in range(1_500):
        await ours.windows.admit([attempt(f"t{number}", limit=2)])
    assert client.hlen(window_key(NAMESPACE, check)) == 2 + ATTEMPTS_BEYOND + 2  # and when it ends, and the count
    assert client.hget(window_key(NAMESPACE, check), "count") == b"1500"


async def test_of_an_agents_calls_the_newest_are_known_again(ours, client):
    async def spend(*numbers: int) -> int:
        for number in numbers:
            ours.windows.spend(settled(1, step=number))
            if number % 5_000 == 0:
                while await ours.spending.send():
                    pass
        while await ours.spending.send():
            pass
        (reading,) = await ours.windows.admit([TokenCeiling("acme", "shop", 1, TOKEN_WINDOW_S)])
        return reading.counted

    _, calls, older = spent_keys(NAMESPACE, settled(1))
    assert await spend(*range(CALLS_KNOWN + 1)) == CALLS_KNOWN + 1
    assert (client.scard(calls), client.scard(older)) == (1, CALLS_KNOWN)
    assert await spend(0, 1, CALLS_KNOWN) == CALLS_KNOWN + 1
    assert await spend(*range(CALLS_KNOWN + 1, 2 * CALLS_KNOWN + 1)) == 2 * CALLS_KNOWN + 1
    assert (client.scard(calls), client.scard(older)) == (1, CALLS_KNOWN)
    assert await spend(CALLS_KNOWN) == 2 * CALLS_KNOWN + 1
    assert await spend(0) == 2 * CALLS_KNOWN + 2
    assert client.pttl(older) > 0


async def test_failures_are_kept_for_a_day_at_the_most(redis_url, client):
    clock = ManualClock()
    ours = RedisCoordination(redis_url, clock, namespace=NAMESPACE, time=time_of(clock), patience_s=PATIENT_S)
    for _ in range(50):
        await ours.circuits.failed(MODEL, CircuitBreaker(after=100_000, within=60))
        clock.advance(7_200)
    _, failures = circuit_keys(NAMESPACE, MODEL)
    assert client.llen(failures) == 13
    await ours.aclose()


async def test_by_itself_redis_goes_by_its_own_time_whatever_a_process_says(redis_url, client):
    slow, quick = ManualClock(), ManualClock()
    quick.advance(10**9)
    processes = [
        RedisCoordination(redis_url, clock, namespace=NAMESPACE, patience_s=PATIENT_S) for clock in (slow, quick)
    ]
    for number, process in enumerate(processes, 1):
        (reading,) = await process.windows.admit([attempt(f"t{number}", window_s=366 * 86_400)])
        assert reading.counted == number
        left = reading.ends_at - SystemClock().now()
        assert left.total_seconds() == pytest.approx(reading.retry_after_s, abs=PATIENT_S)
        await process.circuits.failed(MODEL, BREAKER)
    for process in processes:
        assert client.llen(circuit_keys(NAMESPACE, MODEL)[1]) == 2
        await process.aclose()


async def test_each_question_is_one_round_trip(ours, client):
    """Once Redis knows the scripts."""
    checks = [attempt("t1"), TokenCeiling("acme", "shop", 1, TOKEN_WINDOW_S), attempt("t1", limit=9)]

    async def everything() -> None:
        await ours.windows.admit(checks)
        await ours.circuits.before(MODEL, TIMEOUT_S)
        await ours.circuits.failed(MODEL, BREAKER)
        await ours.circuits.abandoned(MODEL, "a token")
        await ours.circuits.succeeded(MODEL, "a token")
        await ours.circuits.succeeded(MODEL)
        await ours.windows.admit([])

    await everything()
    here = client.connection_pool.connection_kwargs["db"]
    with client.monitor() as monitor:
        await everything()
        client.echo(NAMESPACE)
        commands = list(itertools.takewhile(lambda each: each["command"] != f"ECHO {NAMESPACE}", monitor.listen()))
    ours_alone = [each["command"].split()[0] for each in commands if (each["db"], each["client_type"]) == (here, "tcp")]
    assert [name for name in ours_alone if name != "SELECT"] == ["EVALSHA"] * 5
