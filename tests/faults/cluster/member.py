"""One process of a cluster, as the test that started it sees it: its log, its signals, its end."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.faults.process import GO_ON

PATIENCE_S = 60.0
"""For what other processes have to come to, on however busy a machine. Nothing is measured by it."""
LOOKS_S = 0.03
_LIBC = ctypes.CDLL(None)
_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

T = TypeVar("T")


async def until(
    look: Callable[[], T], what: str, unless: Callable[[], object] = lambda: "", *, every_s: float = LOOKS_S
) -> T:
    """What `look` gives, once it gives something. `unless()` tells what is in its way, for whoever waited in vain."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while not (found := look()):
        assert loop.time() < deadline, f"waited {PATIENCE_S:g} s in vain for {what}: {unless()}"
        await asyncio.sleep(every_s)
    return found


class Member:
    """In a process group of its own, so that nothing it starts outlives it. Nothing else is ever signalled. Where the
    system can (Linux), it ends with the process of the test, however that ends."""

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_the_test,  # noqa: PLW1509 - one call, which takes no lock
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def logged(self, event: str, **fields: Any) -> list[Mapping[str, Any]]:
        """Lines of the log that tell of this event, with these fields."""
        lines = [line for line in map(_entry, self.log.splitlines()) if line.get("event") == event]
        return [line for line in lines if all(line.get(name) == value for name, value in fields.items())]

    async def logs(self, event: str, **fields: Any) -> Mapping[str, Any]:
        """The first such line. Raises AssertionError when the process ends before it says so."""

        def look() -> list[Mapping[str, Any]]:
            found = self.logged(event, **fields)
            assert found or self.runs, f"{self.name} ended with {self._process.returncode}: {self.log[-2000:]}"
            return found

        return (await until(look, f"{event} {fields} of {self.name}", lambda: self.log[-2000:]))[0]

    async def ready(self) -> Member:
        await self.logs("ready")
        return self

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    async def ends(self) -> int:
        """Its exit code; of a signal, minus its number."""
        await until(lambda: not self.runs, f"the end of {self.name}", lambda: self.log[-2000:])
        return self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def stops(self) -> int:
        """As a supervisor stops it. Its exit code."""
        self.signal(signal.SIGTERM)
        return await self.ends()

    async def dies(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ends()

    async def stands_still(self) -> None:
        await until(lambda: _state(self.pid) == "T", f"{self.name} to stand still", lambda: self.log[-2000:])

    def goes_on(self) -> None:
        """From where it stands still, by itself or because it was stopped."""
        self.signal(GO_ON)
        self.signal(signal.SIGCONT)

    def end(self) -> None:
        """Whatever became of the test."""
        if self.runs:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def _die_with_the_test() -> None:
    prctl = getattr(_LIBC, "prctl", None)
    if prctl is not None:
        prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _entry(line: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _state(pid: int) -> str:
    """The letter of proc(5) for what a process is doing."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
