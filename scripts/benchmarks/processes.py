"""The real processes, as they are started by a supervisor, with what a benchmark wants to know of them: that they are
ready, how much processor time they have used, and how much memory they hold."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

READY_S = 60.0
END_S = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Running:
    """One process. Its log is a file in `folder`."""

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._command = command
        self._variables = variables
        self._log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> Self:
        """Returns when it says that it is ready. Raises RuntimeError when it ends instead."""
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env={**os.environ, **self._variables}, stdout=log, stderr=log
            )
        async with asyncio.timeout(READY_S):
            while b'"ready"' not in self._log.read_bytes():
                if self._process.returncode is not None:
                    raise RuntimeError(f"{self.name} did not start:\n{self._log.read_text()[-2_000:]}")
                await asyncio.sleep(0.02)
        return self

    async def end(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), END_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def processor_s(self) -> float:
        return processor_s(self.pid)

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE


class Cluster:
    """`async with Cluster(variables, folder) as cluster:`; what was started in it ends with it, in the order of the
    start."""

    def __init__(self, variables: Mapping[str, str], folder: Path) -> None:
        self._variables = variables
        self._folder = folder
        self.running: list[Running] = []

    async def start(self, role: str, name: str | None = None) -> Running:
        """`insika ROLE`."""
        return await self.start_command(name or role, [sys.executable, "-m", "actors.cli.main", role])

    async def start_command(self, name: str, command: Sequence[str]) -> Running:
        process = Running(name, command, self._variables, self._folder)
        self.running.append(process)
        return await process.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running:
            await process.end()


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor seconds by name, the servers' own processes among them."""

    by_name: Mapping[str, float]

    @classmethod
    def now(cls, pids: Mapping[str, Sequence[int]]) -> Spent:
        return cls({name: sum(processor_s(pid) for pid in of_name) for name, of_name in pids.items()})

    def since(self, before: Spent) -> Mapping[str, float]:
        return {name: spent - before.by_name.get(name, 0.0) for name, spent in self.by_name.items()}


def processor_s(pid: int) -> float:
    """User and system time of a process and of its children that have ended; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / _TICKS


def family(pid: int) -> list[int]:
    """A process and all that came from it and run now."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(folder.name))
    found, look = [], [pid]
    while look:
        found.append(look.pop())
        look.extend(parents.get(found[-1], []))
    return found
