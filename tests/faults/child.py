"""A process of the shop as its parent sees it: jobs in, events out, and signals."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from actors.environment import Environment
from tests.faults.process import AGAIN, GO_ON
from tests.faults.shop import as_variables
from tests.faults.verdict import PATIENCE_S, can_be_written, until

Told = Mapping[str, Any]

ROOT = Path(__file__).resolve().parents[2]


class Gone(AssertionError):
    """It ended before it told what was waited for."""


class Child:
    """An async context manager: whatever becomes of a test, no process is left behind. `options`: as `process` has
    them."""

    def __init__(self, folder: Path, environment: Environment, name: str = "child", **options: Any) -> None:
        self.folder = folder
        self._environment = environment
        self._options = options
        self._errors = folder / f"{name}.log"
        self._news = asyncio.Condition()
        self._numbers = itertools.count(1)
        self._ended = False
        self.told: list[Told] = []

    @property
    def log(self) -> str:
        return self._errors.read_text() if self._errors.exists() else ""

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def __aenter__(self) -> Self:
        with self._errors.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.faults.process",
                str(self.folder),
                json.dumps(self._options),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env={**os.environ, **as_variables(self._environment)},
                limit=1 << 20,
            )
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self.alive:
            self._process.kill()
        await self._process.wait()
        await self._listening

    async def send(self, job: Mapping[str, Any]) -> Told:
        """Give it a job; answers its verdict. Raises Gone when it ends before it says so."""
        heard = len(self.told)
        self.command(take=job)
        return await self.hears("verdict", after=heard, id=job["id"])

    def command(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def idle(self) -> None:
        """Until it has no session any more, as far as it knows now."""
        name = next(self._numbers)
        self.command(idle=name)
        await self.hears("idle", name=name)

    async def hears(self, kind: str, *, after: int = 0, **fields: Any) -> Told:
        """The first event of that kind with these fields since number `after`."""
        return await self._first(
            lambda told: told["event"] == kind and all(told.get(name) == value for name, value in fields.items()),
            after,
            f"{kind} {fields}",
        )

    async def ends(self) -> int:
        """Its exit code; of a signal, minus its number."""
        done, _ = await asyncio.wait({self._listening}, timeout=PATIENCE_S)
        assert done, f"it did not end; {self._last}"
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def stopped(self) -> None:
        """Until it stands still, by SIGSTOP."""
        await until(lambda: _state(self._process.pid) == "T", f"for {self._process.pid} to stop")

    async def stopped_at_its_point(self) -> None:
        """As `stopped`; and not within a write. Whoever is stopped there holds up everybody, until it goes on or is
        killed: that is SQLite's lock, which no lease can break."""
        await self.stopped()
        while not can_be_written(self._environment.database_file):
            self.signal(signal.SIGCONT)
            await until(lambda: _state(self._process.pid) != "T")
            self.signal(AGAIN)
            await self.stopped()

    def goes_on(self) -> None:
        """From the point where it was stopped, or held."""
        self.signal(GO_ON)
        self.signal(signal.SIGCONT)

    @property
    def _last(self) -> str:
        return f"it told {[told['event'] for told in self.told[-5:]]} and logged {self.log[-1000:]}"

    async def _first(self, wanted: Callable[[Told], bool], after: int, what: str) -> Told:
        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                while True:
                    for told in self.told[after:]:
                        if wanted(told):
                            return told
                    after = len(self.told)
                    if self._ended:
                        raise Gone(f"it ended with {self._process.returncode} before {what}; {self._last}")
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}; {self._last}") from None

    async def _listen(self) -> None:
        reader = self._process.stdout
        assert reader is not None
        while line := await reader.readline():
            async with self._news:
                self.told.append(json.loads(line))
                self._news.notify_all()
        await self._process.wait()
        async with self._news:
            self._ended = True
            self._news.notify_all()


def _state(pid: int) -> str:
    """The letter of proc(5) for what a process is doing."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
