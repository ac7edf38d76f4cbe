"""Whatever fails is told and tried again; whoever puts something down for a sender never waits for it."""

from __future__ import annotations

import asyncio

import pytest

from insika.coordination.redis import line as line_module
from insika.coordination.redis.line import Line
from insika.coordination.redis.sender import Sender
from tests.coordination_world import PATIENCE_S


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(line_module, "SHORTEST_PAUSE_S", 0)
    monkeypatch.setattr(line_module, "LONGEST_PAUSE_S", 0)


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def failed(self, line: str, reason: str) -> None:
        self.lines.append(f"{line} failed: {reason}")

    def worked(self, line: str) -> None:
        self.lines.append(f"{line} worked")


async def test_it_insists_until_it_works_whatever_was_wrong():
    told = Told()
    errors: list[Exception] = [TimeoutError(), KeyError("x"), RecursionError(), ConnectionResetError()]

    async def attempt() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert await Line("events out", told).insist(attempt) == "done"
    assert [each.split(":")[0] for each in told.lines] == ["events out failed"] * 4 + ["events out worked"]


async def test_it_can_be_given_up_at_any_time():
    told = Told()
    waiting = asyncio.Event()

    async def attempt() -> None:
        waiting.set()
        await asyncio.Event().wait()

    insisting = asyncio.create_task(Line("events out", told).insist(attempt))
    await waiting.wait()
    insisting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await insisting
    assert told.lines == []


async def test_a_sender_sends_all_that_waits_each_time_it_is_rung():
    waiting = [1, 2, 3]
    sent: list[int] = []
    all_sent = asyncio.Event()

    async def send() -> bool:
        if waiting:
            sent.append(waiting.pop(0))
        if not waiting:
            all_sent.set()
        return bool(waiting)

    sender = Sender(Line("events out", Told()), send)
    running = asyncio.create_task(sender.run())
    for more in ([], [4, 5]):
        waiting.extend(more)
        all_sent.clear()
        sender.ring()
        async with asyncio.timeout(PATIENCE_S):
            await all_sent.wait()
    assert sent == [1, 2, 3, 4, 5]
    sender.end()
    await running


async def test_a_sender_that_ends_before_it_began_sends_what_waits():
    sent: list[str] = []

    async def send() -> bool:
        sent.append("all")
        return False

    sender = Sender(Line("events out", Told()), send)
    running = asyncio.create_task(sender.run())
    sender.end()
    async with asyncio.timeout(PATIENCE_S):
        await running
    assert sent == ["all"]


async def test_a_sender_rests_after_a_batch_and_then_sends_all_that_came_meanwhile_as_one():
    waiting, sent, rests = ["first"], list[list[str]](), list[float]()
    rested = asyncio.Event()

    async def send() -> bool:
        sent.append(list(waiting))
        waiting.clear()
        return False

    async def sleep(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 1:
            for more in ("second", "third"):
                waiting.append(more)
                sender.ring()
        else:
            rested.set()

    sender = Sender(Line("events out", Told()), send, 0.5, sleep)
    running = asyncio.create_task(sender.run())
    sender.ring()
    async with asyncio.timeout(PATIENCE_S):
        await rested.wait()
    assert (sent, rests) == ([["first"], ["second", "third"]], [0.5, 0.5])
    sender.end()
    await running
