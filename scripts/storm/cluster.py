"""The processes of the product, and a supervisor that starts each again when it ends, as a Procfile runner or systemd
would. It judges nothing; what started and ended, when and why, stands in the book of deeds."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.storm.books import Book
from scripts.storm.folder import ROOT
from scripts.storm.options import Options

READY = b'"ready"'
_LOOKS_S = 0.05
_RESTART_S = (0.1, 0.6)
_SHORT_LIFE_S = 2.0
_LONGER_RESTART_S = 1.5
_END_S = 15.0
"""Seconds beyond the drain time in which a process that is told to stop must have ended."""


class Member:
    """One process of the Procfile, whichever is running at the moment."""

    def __init__(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], log: Path, book: Book, drain_s: float
    ) -> None:
        self.name = name
        self.role = name.partition("-")[0]
        self.busy = asyncio.Lock()
        """Held while something is done to it, so that only one thing is."""
        self._command = command
        self._variables = variables
        self._log = log
        self._book = book
        self._end_s = drain_s + _END_S
        self._dice = random.Random(name)
        self._expected = ""
        self._stopping = False
        self._process: asyncio.subprocess.Process | None = None
        self._log_begins = 0
        self._alive = asyncio.Event()
        self._supervising: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._supervising = asyncio.create_task(self._supervise())

    async def ready(self) -> None:
        """Until the process that runs now has said that it works."""
        while True:
            if self.pid is not None and self._works:
                return
            await asyncio.sleep(_LOOKS_S)

    @property
    def pid(self) -> int | None:
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process is not None else None

    def expect(self, why: str) -> None:
        """If it ends now, this is why."""
        self._expected = why

    def signal(self, number: signal.Signals) -> None:
        """To the process that runs now, if there is one."""
        if self.pid is not None and self._process is not None:
            self._process.send_signal(number)

    async def alive(self) -> None:
        """Until there is a process, ready or not."""
        await self._alive.wait()

    async def told_to_end(self, why: str) -> None:
        """SIGTERM, and its end. One that does not end is killed, and the book says so."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        self.expect(why)
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), self._end_s)
        except TimeoutError:
            self._book("stubborn", name=self.name, pid=process.pid, waited_s=self._end_s)
            process.kill()
            await process.wait()

    async def stop(self) -> None:
        self._stopping = True
        async with self.busy:
            await self.told_to_end("the storm is over")
        if self._supervising is not None:
            self._supervising.cancel()
            await asyncio.gather(self._supervising, return_exceptions=True)

    @property
    def _works(self) -> bool:
        return READY in self._log.read_bytes()[self._log_begins :]

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopping:
            began = loop.time()
            self._process = await self._spawn()
            self._book("started", name=self.name, process=self._process.pid)
            self._alive.set()
            code = await self._process.wait()
            self._alive.clear()
            self._book(
                "ended", name=self.name, process=self._process.pid, code=code, why=self._expected, worked=self._works
            )
            self._expected = ""
            pause_s = self._dice.uniform(*_RESTART_S)
            await asyncio.sleep(pause_s if loop.time() - began > _SHORT_LIFE_S else _LONGER_RESTART_S)

    async def _spawn(self) -> asyncio.subprocess.Process:
        # Not through a pipe: it would fill up while this program is busy, and hold the process up.
        with self._log.open("ab") as log:
            self._log_begins = log.tell()
            return await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, **self._variables},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


class Cluster:
    """All processes of one storm, by name: `worker-1`, `ingress-2`, `clock-1`, ..."""

    def __init__(self, options: Options, variables: Mapping[str, str], logs: Path, book: Book) -> None:
        # `insika` is the one that is installed beside this interpreter.
        variables = {**variables, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        commands = procfile()
        self._variables = variables
        self._logs = logs
        self.members = {
            f"{role}-{number}": Member(
                f"{role}-{number}", commands[role], variables, logs / f"{role}-{number}.log", book, options.drain_s
            )
            for role, count in options.processes.items()
            for number in range(1, count + 1)
        }

    async def migrate(self) -> None:
        """Raises RuntimeError with what the command said."""
        await self.command("migrate")

    async def command(self, *arguments: str) -> str:
        """What a command of the product prints. Raises RuntimeError with what it said when it failed."""
        process = await asyncio.create_subprocess_exec(
            "insika",
            *arguments,
            env={**os.environ, **self._variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"insika {' '.join(arguments)} ended with {process.returncode}: {err.decode().strip()}")
        return out.decode()

    async def start(self, within_s: float) -> None:
        """Until every process has said that it works. Raises TimeoutError, with a note on where its log is."""
        for member in self.members.values():
            member.start()
        for member in self.members.values():
            try:
                await asyncio.wait_for(member.ready(), within_s)
            except TimeoutError as error:
                error.add_note(f"{member.name} was not ready within {within_s:g} s; see {self._logs}/{member.name}.log")
                raise

    async def stop(self) -> None:
        await asyncio.gather(*(member.stop() for member in self.members.values()))

    def of_role(self, role: str) -> list[Member]:
        return [member for member in self.members.values() if member.role == role]


def procfile() -> Mapping[str, Sequence[str]]:
    """The command of each process."""
    lines = (ROOT / "Procfile").read_text(encoding="utf-8").splitlines()
    named = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name.strip(): shlex.split(command) for name, _, command in named}
