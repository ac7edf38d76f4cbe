"""The demo's handle on the process it runs: gives it jobs, hears its events, and can kill it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Event = Mapping[str, Any]
PATIENCE_S = 30.0


class WorkerFailed(Exception):
    """The process ended, or fell silent, when the story still needed it."""


class Worker:
    """One process over the store in `directory`. An async context manager: leaving it lets the process drain, or kills
    it where an error is the reason."""

    def __init__(self, directory: Path, environment: Mapping[str, str], on_event: Callable[[Event], None]) -> None:
        self._directory = directory
        self._environment = dict(environment)
        self._on_event = on_event
        self._events: list[Event] = []
        self._news = asyncio.Condition()
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._trouble: OSError | None = None
        self._errors: Path = directory / "worker.log"

    @property
    def pid(self) -> int:
        return self._running().pid

    async def __aenter__(self) -> Self:
        with self._errors.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "actors.demo.process",
                str(self._directory),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={name: value for name, value in os.environ.items() if not name.startswith("INSIKA_")}
                | self._environment,
            )
        self._listening = asyncio.create_task(self._listen())
        try:
            await self.until(lambda event: event["event"] == "ready")
        except BaseException:
            await self._end_now()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._running()
        if kind is not None:
            await self._end_now()
            return
        if process.returncode is None and process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        if self._listening is not None:
            await self._listening

    async def send(self, job: Mapping[str, Any]) -> Event:
        """Give it a job; answers what it said to that."""
        writer = self._running().stdin
        if writer is None:
            raise WorkerFailed("the process has no input")
        already = len(self._events)
        writer.write(json.dumps(job).encode() + b"\n")
        await writer.drain()
        return await self.until(lambda event: event["event"] in ("verdict", "job_kept_aside"), already)

    async def until(self, wanted: Callable[[Event], bool], after: int = 0) -> Event:
        """The first event since number `after` that is `wanted`. Raises WorkerFailed, and what telling an event
        raised."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                while True:
                    for event in self._events[after:]:
                        if wanted(event):
                            return event
                    if self._trouble is not None:
                        raise self._trouble
                    if self._running().returncode is not None:
                        raise WorkerFailed(f"the process ended; what it said is in {self._errors}")
                    await self._news.wait()
        except TimeoutError:
            raise WorkerFailed(f"the process fell silent; what it said is in {self._errors}") from None

    async def kill(self) -> None:
        """SIGKILL: it can do nothing any more, not even notice."""
        self._running().send_signal(signal.SIGKILL)
        await self._running().wait()

    async def _end_now(self) -> None:
        """For when its work is not wanted any more: also where nobody reads what it says."""
        process = self._running()
        if process.returncode is None:
            process.kill()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await process.wait()

    async def _listen(self) -> None:
        try:
            await self._tell()
        except OSError as error:  # whoever is told is gone
            self._trouble = error
        finally:
            async with self._news:
                self._news.notify_all()

    async def _tell(self) -> None:
        reader = self._running().stdout
        while reader is not None and (line := await reader.readline()):
            event = json.loads(line)
            self._on_event(event)
            async with self._news:
                self._events.append(event)
                self._news.notify_all()
        await self._running().wait()

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise WorkerFailed("the process was not started")
        return self._process
