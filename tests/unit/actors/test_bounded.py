"""Blocking work has an answer, an error, or an end to the waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from actors.bounded import bounded


async def test_what_it_answers_and_raises_comes_back() -> None:
    assert await bounded(lambda: 42, 60) == 42
    with pytest.raises(ZeroDivisionError):
        await bounded(lambda: 1 // 0, 60)


async def test_it_runs_beside_the_loop() -> None:
    """Work that waits for the loop comes to its end."""
    loop, went_on = asyncio.get_running_loop(), threading.Event()
    loop.call_later(0, went_on.set)
    assert await bounded(lambda: went_on.wait(60), 60)


async def test_work_that_takes_too_long_is_left_alone_and_harms_nobody() -> None:
    release, through = threading.Event(), threading.Event()

    def work() -> None:
        release.wait(60)
        through.set()

    with pytest.raises(TimeoutError):
        await bounded(work, 0)
    release.set()
    assert await bounded(lambda: through.wait(60), 60)


def test_a_loop_that_has_ended_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    release, ended = threading.Event(), threading.Event()

    def work() -> None:
        release.wait(60)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await bounded(work, 0)
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "insika-bounded"]
        threads.append(thread)

    threads: list[threading.Thread] = []
    asyncio.run(give_up())
    release.set()
    threads[0].join(60)
    ended.set()
    assert died == []
    assert not threads[0].is_alive()
