"""The twin of the windows: bounded, and able to go on from what another one has counted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from insika.clock import ManualClock
from insika.coordination import local_windows
from insika.coordination.local_windows import LocalWindows
from insika.limits.windows import TokenCeiling, WindowReading
from tests.limits_world import RATE_WINDOW_S, TOKEN_WINDOW_S, attempt, settled


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def begin(windows: LocalWindows, turn: str, session: str = "ana") -> int:
    (reading,) = await windows.admit([attempt(turn, session=session)])
    return reading.counted


async def spent(windows: LocalWindows) -> int:
    (reading,) = await windows.admit([ceiling()])
    return reading.counted


def ceiling() -> TokenCeiling:
    return TokenCeiling("acme", "shop", 100, TOKEN_WINDOW_S)


def read_elsewhere(clock: ManualClock, turn: str, counted: int, tokens: int, ahead_s: float = 0) -> list[WindowReading]:
    """As a process reads whose clock is that far ahead."""
    now = clock.now() + timedelta(seconds=ahead_s)
    ends = [now + timedelta(seconds=seconds) for seconds in (RATE_WINDOW_S, TOKEN_WINDOW_S)]
    return [
        WindowReading(attempt(turn), counted, ends[0], RATE_WINDOW_S),
        WindowReading(ceiling(), tokens, ends[1], TOKEN_WINDOW_S),
    ]


async def test_it_goes_on_from_what_another_has_counted(clock):
    windows = LocalWindows(clock)
    windows.learn(read_elsewhere(clock, "t7", counted=7, tokens=90))
    windows.spend(settled(4))
    assert [await begin(windows, turn) for turn in ("t7", "t8", "t7")] == [7, 8, 7]
    assert await spent(windows) == 94


async def test_what_it_has_counted_itself_is_not_taken_back(clock):
    windows = LocalWindows(clock)
    windows.spend(settled(40))
    assert [await begin(windows, f"t{number}") for number in range(3)] == [1, 2, 3]
    windows.learn(read_elsewhere(clock, "elsewhere", counted=1, tokens=30))
    assert await begin(windows, "t3") == 4
    assert await spent(windows) == 40


@pytest.mark.parametrize("ahead_s", [-TOKEN_WINDOW_S, TOKEN_WINDOW_S])
async def test_it_learns_nothing_of_another_window_than_its_own(clock, ahead_s):
    windows = LocalWindows(clock)
    windows.learn(read_elsewhere(clock, "t7", counted=7, tokens=90, ahead_s=ahead_s))
    assert (await begin(windows, "t7"), await spent(windows)) == (1, 0)


async def test_whoever_was_not_seen_for_longest_makes_room(clock):
    windows = LocalWindows(clock, bound=2)
    for session in ("ana", "ben", "ana", "cleo"):
        await begin(windows, f"{session}-1", session)
    assert [await begin(windows, f"{session}-2", session) for session in ("ana", "cleo", "ben")] == [2, 2, 1]


async def test_a_window_that_has_ended_is_not_kept(clock):
    windows = LocalWindows(clock)
    for session in range(100):
        await begin(windows, "t1", f"s{session}")
    clock.advance(RATE_WINDOW_S)
    await windows.admit([attempt("t2", window_s=3_600)])
    assert list(windows._attempts._windows) == [3_600]


async def test_of_a_flood_only_so_many_turns_are_known_again(clock, monkeypatch):
    monkeypatch.setattr(local_windows, "ATTEMPTS_BEYOND", 2)
    windows = LocalWindows(clock)
    flood = [await begin(windows, f"t{number}") for number in range(1, 8)]
    assert flood == list(range(1, 8))
    assert [await begin(windows, turn) for turn in ("t5", "t6", "t6")] == [5, 8, 9]


async def test_of_an_agents_calls_the_newest_are_known_again(clock, monkeypatch):
    monkeypatch.setattr(local_windows, "CALLS_KNOWN", 3)
    windows = LocalWindows(clock)
    for step in (1, 2, 3, 4, 1, 4, 5, 6, 7, 4, 7):
        windows.spend(settled(1, step=step))
    assert await spent(windows) == 7
    windows.spend(settled(1, step=1))
    assert await spent(windows) == 8
