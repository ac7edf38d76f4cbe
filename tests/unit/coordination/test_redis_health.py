"""One outage is told once, however many lines notice it and in whichever order they recover."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from insika.clock import ManualClock
from insika.coordination.redis.health import RedisHealth
from tests.coordination_world import Watched


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_the_first_failure_is_told_and_no_other(clock):
    health = RedisHealth(clock)
    watched = Watched(health)
    with capture_logs() as log, health.listen(watched):
        began = clock.now()
        health.failed("events out", "Redis is away")
        clock.advance(5)
        health.failed("signals out", "Redis is away")
        health.failed("events out", "Redis is full")
    assert watched.told == [True]
    assert (health.degraded, health.since, health.reason) == (True, began, "Redis is full; Redis is away")
    assert log == [
        {"event": "coordination_degraded", "log_level": "warning", "line": "events out", "reason": "Redis is away"}
    ]


async def test_it_is_well_again_when_the_last_line_is(clock):
    health = RedisHealth(clock, settled_s=0)
    watched = Watched(health)
    with capture_logs() as log, health.listen(watched):
        began = clock.now()
        health.failed("events out", "Redis is away")
        health.failed("signals in", "Redis is away")
        clock.advance(7)
        health.worked("signals in")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert health.degraded
        health.worked("events out")
        await watched.becomes(degraded=False)
    assert (health.since, health.reason) == (clock.now(), "")
    assert watched.told == [True, False]
    assert log[1:] == [
        {"event": "coordination_recovered", "log_level": "info", "degraded_at": began.isoformat()},
    ]


async def test_a_line_that_fails_meanwhile_makes_no_second_outage(clock):
    health = RedisHealth(clock, settled_s=3_600)
    watched = Watched(health)
    with capture_logs() as log, health.listen(watched):
        health.failed("events out", "Redis is away")
        health.worked("events out")
        health.failed("events in", "Redis is away")
        health.worked("events in")
    health.close()
    assert watched.told == [True]
    assert len(log) == 1


async def test_what_works_without_having_failed_changes_nothing(clock):
    health = RedisHealth(clock, settled_s=0)
    watched = Watched(health)
    with health.listen(watched):
        health.worked("events out")
        await asyncio.sleep(0)
    assert (watched.told, health.degraded, health.since) == ([], False, None)


async def test_after_the_end_nobody_is_told(clock):
    health = RedisHealth(clock, settled_s=0)
    watched = Watched(health)
    with health.listen(watched):
        health.failed("events out", "Redis is away")
        health.worked("events out")
        health.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert watched.told == [True]


async def test_a_listener_that_raises_takes_it_from_nobody(clock):
    def broken(health: object) -> None:
        raise RuntimeError

    health = RedisHealth(clock)
    watched = Watched(health)
    with capture_logs() as log, health.listen(broken), health.listen(watched):
        health.failed("events out", "Redis is away")
    assert watched.told == [True]
    assert [line["event"] for line in log] == ["coordination_degraded", "listener_failed"]
