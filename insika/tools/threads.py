"""Runs blocking functions off the event loop, such that one that never returns costs its thread and nothing else.

A Python thread cannot be stopped. A call past its time limit is therefore given up: its slot is free again at once,
its thread goes on alone and is counted as stuck until the function returns. The threads are daemons, because a process
must be able to end while a tool hangs: this is why anyio's worker threads are not used here, which give the slot back
as well but are waited for, without limit, when the interpreter exits (seen with anyio 4.16).

One object serves one event loop at a time.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from insika.text import counted

IDLE_S = 10.0
"""A thread that had nothing to do for so long ends."""


@dataclass(frozen=True, slots=True)
class Returned:
    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """Anything at all: a tool may raise SystemExit, and must not end the process by it."""

    error: BaseException


Ended = Returned | Raised


class NotStarted(Exception):
    """The function was certainly not run. The message says why."""


def _uncounted(change: int) -> None:
    return None


class ToolThreads:
    """At most `slots` functions run at once, besides those that are stuck; at `max_stuck` no more are started."""

    def __init__(self, slots: int = 40, max_stuck: int = 1000) -> None:
        if slots < 1 or max_stuck < 1:
            raise ValueError(f"slots and max_stuck must be at least 1, got {slots} and {max_stuck}")
        self._slot_count = slots
        self._slots = asyncio.Semaphore(slots)
        self._max_stuck = max_stuck
        self._stuck = 0
        self._idle: list[SimpleQueue[_Job]] = []
        self._lock = threading.Lock()

    @property
    def stuck(self) -> int:
        """Calls that were given up and whose function has not returned yet."""
        return self._stuck

    async def run(
        self, function: Callable[[], Any], timeout_s: float, count: Callable[[int], None] = _uncounted
    ) -> Ended:
        """What became of `function()`. It waits for a free slot for at most `timeout_s` seconds and then runs for at
        most as long: a call that had to wait is not cut short for it. `count` hears 1 when a thread has the function
        and -1 when it is done with it, however late.

        Raises NotStarted, and TimeoutError if the function has not returned in time; it runs on, and what it then
        gives is thrown away. So it is when the caller is cancelled.
        """
        await self._take_slot(timeout_s)
        job: _Job | None = None
        try:
            job = _Job(function, contextvars.copy_context(), asyncio.get_running_loop())
            self._hand_over(job)
            count(1)
            job.ended.add_done_callback(lambda _: count(-1))
            await asyncio.wait({job.ended}, timeout=timeout_s)
            if not job.ended.done():
                raise TimeoutError
            return job.ended.result()
        finally:
            self._slots.release()
            if job is not None and not job.ended.done():
                job.given_up = True
                self._stuck += 1
                job.ended.add_done_callback(self._came_back)

    async def _take_slot(self, timeout_s: float) -> None:
        if self._stuck >= self._max_stuck:
            raise NotStarted(f"{self._stuck} earlier calls of tools hang and have not come back")
        if not self._slots.locked():
            await self._slots.acquire()  # does not wait
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._slots.acquire()
        except TimeoutError:
            raise NotStarted(
                f"{self._slot_count} other calls of tools were running and none ended within "
                f"{counted(timeout_s, 'second')}"
            ) from None

    def _came_back(self, _: asyncio.Future[Ended]) -> None:
        self._stuck -= 1

    def _hand_over(self, job: _Job) -> None:
        with self._lock:
            jobs = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = SimpleQueue()
            try:
                threading.Thread(target=self._work, args=(jobs,), name="insika-tool", daemon=True).start()
            except RuntimeError as error:
                job.ended.cancel()
                raise NotStarted(f"the system gave no thread ({error})") from error
        jobs.put(job)

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            try:
                job = jobs.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if jobs in self._idle:
                        self._idle.remove(jobs)
                        return
                continue  # a job was handed over at this very moment
            ended = job.run()
            with self._lock:
                self._idle.append(jobs)
            job.report(ended)
            del job, ended  # an idle thread keeps nobody's result alive


class TurnThreads:
    """The threads as one turn uses them: it knows how many of its own calls are still in one."""

    def __init__(self, threads: ToolThreads) -> None:
        self._threads = threads
        self._running = 0

    @property
    def running(self) -> int:
        return self._running

    async def run(self, function: Callable[[], Any], timeout_s: float) -> Ended:
        """As `ToolThreads.run`."""
        return await self._threads.run(function, timeout_s, self._count)

    def _count(self, change: int) -> None:
        self._running += change


class _Job:
    def __init__(
        self, function: Callable[[], Any], context: contextvars.Context, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._function = function
        self._context = context
        self._loop = loop
        self.ended: asyncio.Future[Ended] = loop.create_future()
        self.given_up = False

    def run(self) -> Ended:
        if self.given_up:  # the thread was slow to start, and nobody wants it to begin any more
            return Raised(TimeoutError())
        try:
            return Returned(self._context.run(self._function))
        except BaseException as error:
            return Raised(error)

    def report(self, ended: Ended) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, ended)
        except RuntimeError:
            pass  # the loop has been closed: nobody waits for this any more

    def _settle(self, ended: Ended) -> None:
        if not self.ended.done():
            self.ended.set_result(ended)
