"""Processes that were started here, told from those that later got the same number. Nothing else may be signalled.

A process is known by its number and by when the system says it started; both are written down, so that another run
can end what this one began. Linux is asked through /proc, other systems through ps.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LOOK_AGAIN_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """`started` is compared and never computed with: its form is the system's own."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Process:
        """Raises ProcessLookupError when there is none."""
        row = _table().get(pid)
        if row is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, row.started)

    @property
    def alive(self) -> bool:
        return self.pid in _living([self])

    def signal(self, number: signal.Signals) -> None:
        """Tells it, if it is still there."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass(frozen=True, slots=True)
class _Row:
    parent: int
    started: str
    dead: bool


def families(roots: Iterable[Process]) -> list[Process]:
    """Those of `roots` that live, and all that they started and those started; parents before children."""
    table = _table()
    found = [root.pid for root in roots if root.pid in table and _is(root, table[root.pid])]
    for pid in found:
        found.extend(child for child, row in table.items() if row.parent == pid and not row.dead and child not in found)
    return [Process(pid, table[pid].started) for pid in found]


def freeze(roots: Iterable[Process]) -> list[Process]:
    """SIGSTOP for the families, until none of them can start another. The families."""
    roots = list(roots)
    frozen: list[Process] = []
    while fresh := [process for process in families(roots) if process not in frozen]:
        for process in fresh:
            process.signal(signal.SIGSTOP)
        frozen += fresh
    return frozen


def thaw(roots: Iterable[Process]) -> None:
    """SIGCONT, children first: a server that wakes before its children might think that they hang."""
    for process in reversed(families(roots)):
        process.signal(signal.SIGCONT)


def kill(roots: Iterable[Process]) -> list[Process]:
    """SIGKILL for the families, frozen first so that nothing slips away. Those that got it."""
    doomed = freeze(roots)
    for process in doomed:
        process.signal(signal.SIGKILL)
    return doomed


def wait_until_gone(processes: Iterable[Process], patience_s: float) -> bool:
    """Whether all have ended within `patience_s`. One that nobody has reaped yet counts as ended."""
    processes = list(processes)
    deadline = time.monotonic() + patience_s
    while _living(processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def _is(process: Process, row: _Row) -> bool:
    return row.started == process.started and not row.dead


def _living(processes: Iterable[Process]) -> set[int]:
    if _PROC.joinpath("self", "stat").exists():
        rows = {process: _row_of(process.pid) for process in processes}
    else:
        table = _from_ps()
        rows = {process: table.get(process.pid) for process in processes}
    return {process.pid for process, row in rows.items() if row is not None and _is(process, row)}


def _table() -> Mapping[int, _Row]:
    if not _PROC.joinpath("self", "stat").exists():
        return _from_ps()
    numbers = [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit()]
    return {pid: row for pid in numbers if (row := _row_of(pid)) is not None}


def _row_of(pid: int) -> _Row | None:
    """From proc(5): after the name, which may hold anything, field 3 is the state, 4 the parent, 22 the start."""
    try:
        fields = _PROC.joinpath(str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return _Row(parent=int(fields[1]), started=fields[19], dead=fields[0] in "ZX")


def _from_ps() -> Mapping[int, _Row]:
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,state=,lstart="],
        env={**os.environ, "LC_ALL": "C"},
        check=True,
        capture_output=True,
        text=True,
    )
    rows = [line.split(maxsplit=3) for line in listing.stdout.splitlines()]
    return {
        int(pid): _Row(parent=int(parent), started=started.strip(), dead=state.startswith("Z"))
        for pid, parent, state, started in rows
    }
