"""Tokens on their way to Redis: each call, in order, never more than the bound, and the same batch until it arrived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from insika.clock import ManualClock
from insika.coordination.redis.line import Line, Untold
from insika.coordination.redis.spending import BATCH, Spending
from tests.limits_world import TOKEN_WINDOW_S, settled


class Script:
    """Remembers what it was given; fails as long as it is told to."""

    namespace = "insika"

    def __init__(self) -> None:
        self.tried: list[list[str]] = []
        self.away = False

    def load(self, name: str) -> Any:
        return self.run

    async def run(self, keys: Sequence[str], args: Sequence[str | int]) -> list[int]:
        assert len(keys) == len(args)
        self.tried.append([str(call).split(":")[1] for call in args[1::3]])
        if self.away:
            raise ConnectionError
        return [len(keys) // 3]

    def steps(self) -> list[int]:
        return [int(step) for steps in self.tried for step in steps]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def spending(script: Script, clock: ManualClock, bound: int = 10_000) -> Spending:
    return Spending(script, Line("tokens out", Untold()), clock, bound)  # type: ignore[arg-type]


async def send_all(waiting: Spending) -> None:
    while await waiting.send():
        pass


def put(waiting: Spending, steps: range) -> None:
    for step in steps:
        waiting.put(settled(1, step=step))


async def test_what_was_put_down_goes_out_in_order_by_the_batch(script, clock):
    waiting = spending(script, clock)
    put(waiting, range(2 * BATCH + 1))
    await send_all(waiting)
    assert [len(steps) for steps in script.tried] == [BATCH, BATCH, 1]
    assert script.steps() == list(range(2 * BATCH + 1))


async def test_nothing_is_sent_where_nothing_waits(script, clock):
    await send_all(spending(script, clock))
    assert script.tried == []


async def test_a_batch_that_did_not_arrive_is_sent_again(script, clock):
    waiting = spending(script, clock)
    put(waiting, range(3))
    script.away = True
    with pytest.raises(ConnectionError):
        await waiting.send()
    put(waiting, range(3, 5))
    script.away = False
    await send_all(waiting)
    assert script.tried == [["0", "1", "2"], ["0", "1", "2"], ["3", "4"]]


async def test_beyond_the_bound_the_oldest_are_left_out_and_that_is_said(script, clock):
    waiting = spending(script, clock, bound=10)
    put(waiting, range(25))
    with capture_logs() as log:
        await send_all(waiting)
        await send_all(waiting)
    assert script.steps() == list(range(15, 25))
    assert log == [{"event": "tokens_uncounted", "log_level": "warning", "calls": 15}]


async def test_what_waited_until_its_window_ended_is_not_held_against_the_next(script, clock):
    waiting = spending(script, clock)
    script.away = True
    put(waiting, range(2))
    with pytest.raises(ConnectionError):
        await waiting.send()
    put(waiting, range(2, 4))
    clock.advance(TOKEN_WINDOW_S)
    put(waiting, range(4, 6))
    script.away = False
    await send_all(waiting)
    assert script.tried[1:] == [["4", "5"]]
