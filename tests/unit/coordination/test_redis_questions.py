"""A turn waits for Redis for a moment, and for none that is known to be away; a loop that stood still is no outage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from insika.clock import ManualClock
from insika.coordination.redis import line as line_module
from insika.coordination.redis.health import RedisHealth
from insika.coordination.redis.questions import AT_ONCE, Questions
from tests.coordination_world import PATIENCE_S, Watched


class Client:
    """A Redis that does what it is asked, or not."""

    def __init__(self) -> None:
        self.away = False
        self.looks = 0
        self.looked_often = asyncio.Event()

    def register_script(self, text: str) -> Any:
        async def look() -> int:
            self.looks += 1
            if self.looks == 3:
                self.looked_often.set()
            if self.away:
                raise ConnectionError
            return 1

        return look


class World:
    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.client = Client()
        self.health = RedisHealth(ManualClock(), settled_s=0)
        self.questions = Questions(self.client, self.health, patience_s)  # type: ignore[arg-type]
        self.asked = 0

    async def answer(self) -> str:
        self.asked += 1
        if self.client.away:
            raise ConnectionError
        return "answer"

    async def ask(self) -> str | None:
        return await self.questions.ask(self.answer)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(line_module, "SHORTEST_PAUSE_S", 0)
    monkeypatch.setattr(line_module, "LONGEST_PAUSE_S", 0)


async def silence() -> None:
    await asyncio.Event().wait()


async def test_who_is_well_is_asked_each_time():
    world = World()
    assert [await world.ask() for _ in range(3)] == ["answer"] * 3
    assert (world.asked, world.client.looks, world.health.degraded) == (3, 0, False)


async def test_who_is_away_is_not_asked_again_until_it_is_back():
    world = World()
    looking = asyncio.create_task(world.questions.looking.run())
    health = Watched(world.health)
    with capture_logs() as log, world.health.listen(health):
        world.client.away = True
        assert [await world.ask() for _ in range(50)] == [None] * 50
        assert world.asked == 1
        assert world.health.reason == "Redis cannot be reached (ConnectionError)"
        async with asyncio.timeout(PATIENCE_S):
            await world.client.looked_often.wait()
        assert await world.ask() is None
        world.client.away = False
        await health.becomes(degraded=False)
        assert await world.ask() == "answer"
    looking.cancel()
    assert world.asked == 2
    assert [line["event"] for line in log] == ["coordination_degraded", "coordination_recovered"]


async def test_who_says_nothing_is_away():
    world = World(patience_s=0.01)
    async with asyncio.timeout(PATIENCE_S):
        assert await world.questions.ask(silence) is None
    assert world.health.reason == "Redis does not answer within 0.01 s"
    assert await world.ask() is None


async def test_a_loop_that_stood_still_is_not_held_against_redis():
    world = World(patience_s=0.25)
    loop = asyncio.get_running_loop()
    time, stood_still = loop.time, 0.0

    async def question() -> str:
        nonlocal stood_still
        stood_still = 10.0
        for _ in range(5):  # rounds that an answer takes from the socket to whoever waits for it
            await asyncio.sleep(0)
        return "answer"

    loop.time = lambda: time() + stood_still  # type: ignore[method-assign]
    try:
        assert await world.questions.ask(question) == "answer"
    finally:
        loop.time = time  # type: ignore[method-assign]


async def test_a_turn_that_is_cancelled_meanwhile_is_cancelled_and_nobody_is_away():
    world = World()
    asking = asyncio.create_task(world.questions.ask(silence))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not world.health.degraded
    assert await world.ask() == "answer"


async def test_a_burst_of_questions_does_not_become_a_burst_of_connections():
    world = World()
    under_way, most = 0, 0

    async def question() -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return "answer"

    answers = await asyncio.gather(*(world.questions.ask(question) for _ in range(10 * AT_ONCE)))
    assert answers == ["answer"] * (10 * AT_ONCE)
    assert most == AT_ONCE


async def test_whatever_redis_makes_of_us_it_is_never_raised():
    for error in (KeyError("x"), RecursionError(), ValueError(), OSError(), ZeroDivisionError()):
        world = World()

        async def question(error: Exception = error) -> None:
            raise error

        assert await world.questions.ask(question) is None
