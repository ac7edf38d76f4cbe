"""Processes that were started here, told from those that later got the same number. Nothing else may be signalled.

A process is known by its number and by when the system says it started; both are written down, so that another run
can end what this one began. What slipped through, because its starter or its parent died, is known by a mark in its
environment, where the system shows that. Linux is asked through /proc, other systems through ps.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

MARK = "INSIKA_PRIVATE_SERVER"
"""The variable that every server and its children have; its value is the server's folder."""
_PROC = Path("/proc")
_STOPS_WITHIN_S = 10.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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
    state: str

    @property
    def dead(self) -> bool:
        return self.state in "ZX"

    @property
    def stopped(self) -> bool:
        return self.state in "Tt"


def families(roots: Iterable[Process]) -> list[Process]:
    """Those of `roots` that live, and all that they started and those started; parents before children."""
    table = _table()
    found = [root.pid for root in dict.fromkeys(roots) if root.pid in table and _is(root, table[root.pid])]
    for pid in found:
        found.extend(child for child, row in table.items() if row.parent == pid and not row.dead and child not in found)
    return [Process(pid, table[pid].started) for pid in found]


def marked(value: str) -> list[Process]:
    """Those that have this mark, as far as the system shows it and this user may see it."""
    wanted = f"{MARK}={value}".encode()
    found = []
    for pid, row in _table().items():
        with contextlib.suppress(OSError):
            if not row.dead and wanted in _PROC.joinpath(str(pid), "environ").read_bytes().split(b"\0"):
                found.append(Process(pid, row.started))
    return found


def working_in(folder: Path) -> list[Process]:
    """Those whose working folder this is, as far as the system shows it and this user may see it."""
    found = []
    for pid, row in _table().items():
        with contextlib.suppress(OSError):
            if not row.dead and _PROC.joinpath(str(pid), "cwd").readlink() == folder.resolve():
                found.append(Process(pid, row.started))
    return found


def freeze(roots: Iterable[Process]) -> list[Process]:
    """SIGSTOP for the families, until none of them can start another. The families."""
    roots = list(roots)
    frozen: list[Process] = []
    while fresh := [process for process in families(roots) if process not in frozen]:
        for process in fresh:
            process.signal(signal.SIGSTOP)
        # One that was about to start another has done so when it stands still, and not before.
        _wait(partial(_all_stand_still, fresh), _STOPS_WITHIN_S)
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
    return _wait(lambda: not _living(processes), patience_s)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals that would make this program leave are acted on when the block is done. Only the main thread gets any."""
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING if callable(signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    for ending in handlers:
        signal.signal(ending, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for ending, handler in handlers.items():
            signal.signal(ending, handler)
        for number in came:
            signal.raise_signal(number)


def _all_stand_still(processes: Iterable[Process]) -> bool:
    return not _living(processes, moving=True)


def _wait(holds: Callable[[], bool], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def _is(process: Process, row: _Row) -> bool:
    return row.started == process.started and not row.dead


def _living(processes: Iterable[Process], *, moving: bool = False) -> set[int]:
    """Their numbers; with `moving`, only those that are not stopped."""
    if _PROC.joinpath("self", "stat").exists():
        rows = {process: _row_of(process.pid) for process in processes}
    else:
        table = _from_ps()
        rows = {process: table.get(process.pid) for process in processes}
    living = {process.pid: row for process, row in rows.items() if row is not None and _is(process, row)}
    return {pid for pid, row in living.items() if not (moving and row.stopped)}


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
    return _Row(parent=int(fields[1]), started=fields[19], state=fields[0])


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
        int(pid): _Row(parent=int(parent), started=started.strip(), state=state[0])
        for pid, parent, state, started in rows
    }
