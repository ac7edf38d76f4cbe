from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from insika.tools.threads import NotStarted, Raised, Returned, ToolThreads

SHORT_S = 0.1
LONG_S = 30.0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds up what waits for it, and lets everything go at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing tells us, and nothing but the test wants to know
        await asyncio.sleep(0)


async def test_a_function_runs_off_the_loop_and_its_value_comes_back() -> None:
    ended = await ToolThreads().run(threading.current_thread, LONG_S)
    assert isinstance(ended, Returned)
    assert ended.value is not threading.current_thread()
    assert ended.value.daemon


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), StopIteration(2), asyncio.CancelledError()]
)
async def test_whatever_is_raised_comes_back_as_a_value(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert await ToolThreads().run(fail, LONG_S) == Raised(error)


async def test_context_variables_reach_the_thread_and_stay_there() -> None:
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("outer")

    def read_and_change() -> str:
        seen = variable.get()
        variable.set("inner")
        return seen

    assert await ToolThreads().run(read_and_change, LONG_S) == Returned("outer")
    assert variable.get() == "outer"


async def test_a_call_past_its_limit_is_given_up(gate: threading.Event) -> None:
    threads = ToolThreads()
    with pytest.raises(TimeoutError):
        await threads.run(gate.wait, SHORT_S)
    assert threads.stuck == 1


async def test_many_stuck_calls_use_up_no_slot(gate: threading.Event) -> None:
    threads = ToolThreads(slots=2)
    while threads.stuck < 60:  # on a busy machine a call may be given up before its thread began: then it is not stuck
        with pytest.raises(TimeoutError):
            await threads.run(gate.wait, SHORT_S / 50)
    assert await threads.run(lambda: "still working", LONG_S) == Returned("still working")
    gate.set()
    await _until(lambda: threads.stuck == 0)


async def test_many_calls_that_hang_at_once_all_come_back(gate: threading.Event) -> None:
    threads = ToolThreads(slots=8)
    ended = await asyncio.gather(*(threads.run(gate.wait, SHORT_S) for _ in range(8)), return_exceptions=True)
    assert [type(one) for one in ended] == [TimeoutError] * 8
    assert await asyncio.gather(*(threads.run(int, LONG_S) for _ in range(50))) == [Returned(0)] * 50


async def test_no_more_than_the_slots_run_at_once() -> None:
    threads = ToolThreads(slots=3)
    lock = threading.Lock()
    running: list[int] = [0]
    most: list[int] = [0]
    barrier = threading.Barrier(3)

    def work() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        barrier.wait(LONG_S)
        with lock:
            running[0] -= 1

    await asyncio.gather(*(threads.run(work, LONG_S) for _ in range(9)))
    assert most[0] == 3


async def test_a_call_that_gets_no_slot_in_time_was_certainly_not_run(gate: threading.Event) -> None:
    threads = ToolThreads(slots=1)
    ran: list[str] = []
    first = asyncio.create_task(threads.run(gate.wait, LONG_S))
    await asyncio.sleep(0)
    with pytest.raises(NotStarted, match="1 other calls of tools were running"):
        await threads.run(lambda: ran.append("second"), SHORT_S)
    gate.set()
    assert await first == Returned(True)
    assert ran == []
    assert await threads.run(int, LONG_S) == Returned(0)


async def test_too_many_stuck_calls_stop_further_ones_with_a_reason(gate: threading.Event) -> None:
    threads = ToolThreads(slots=4, max_stuck=2)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await threads.run(gate.wait, SHORT_S)
    with pytest.raises(NotStarted, match="2 earlier calls"):
        await threads.run(int, LONG_S)
    gate.set()
    await _until(lambda: threads.stuck == 0)
    assert await threads.run(int, LONG_S) == Returned(0)


async def test_a_cancelled_caller_gives_its_slot_back(gate: threading.Event) -> None:
    threads = ToolThreads(slots=1)
    running = asyncio.create_task(threads.run(gate.wait, LONG_S))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert threads.stuck == 1
    assert await threads.run(int, LONG_S) == Returned(0)


async def test_threads_are_used_again() -> None:
    threads = ToolThreads()
    names = {(await threads.run(threading.get_ident, LONG_S)).value for _ in range(50)}  # type: ignore[union-attr]
    assert len(names) == 1


async def test_no_thread_to_be_had_means_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads = ToolThreads(slots=1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(NotStarted, match="no thread"):
            await threads.run(int, LONG_S)
    assert threads.stuck == 0
    assert await threads.run(int, LONG_S) == Returned(0)


@pytest.mark.parametrize("bad", [{"slots": 0}, {"max_stuck": 0}])
def test_the_bounds_must_be_positive(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ToolThreads(**bad)


def test_a_process_with_a_hanging_tool_can_end() -> None:
    program = """
import asyncio, threading
from insika.tools.threads import ToolThreads

async def main():
    try:
        await ToolThreads().run(threading.Event().wait, 0.01)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "given up\n"), ended.stderr


async def test_a_call_given_up_before_its_thread_began_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = ToolThreads()
    ran: list[str] = []
    slow: list[threading.Thread] = []

    def start_later(thread: threading.Thread) -> None:
        slow.append(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_later)
        with pytest.raises(TimeoutError):
            await threads.run(lambda: ran.append("late"), SHORT_S)
    slow[0].start()
    await _until(lambda: threads.stuck == 0)
    assert ran == []
