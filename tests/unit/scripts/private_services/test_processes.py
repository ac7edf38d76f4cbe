"""Processes are told apart by more than a number, and a whole family can be stopped, woken and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.private_services.processes import (
    Process,
    families,
    freeze,
    kill,
    thaw,
    uninterrupted,
    wait_until_gone,
)

PATIENCE_S = 30


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child that has left its group, as servers' children do, and a grandchild."""
    script = f"setsid sh -c 'sleep 300 & wait' & echo $! > {tmp_path}/child; wait"
    process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    until(lambda: len(families([Process.of(process.pid)])) == 3)
    yield process
    kill([Process.of(process.pid)] if process.poll() is None else [])
    process.wait()


def until(holds) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        os.sched_yield()


def state(process: Process) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_family_is_all_descendants_with_parents_first(parent):
    root = Process.of(parent.pid)
    family = families([root])
    assert family[0] == root
    assert len(set(family)) == 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the states from /proc")
def test_a_family_is_frozen_and_thawed_whole(parent):
    family = freeze([Process.of(parent.pid)])
    assert len(family) == 3
    until(lambda: all(state(process) == "T" for process in family))
    thaw([Process.of(parent.pid)])
    until(lambda: all(state(process) == "S" for process in family))


@pytest.mark.parametrize("frozen", [False, True])
def test_a_family_is_killed_whole(parent, frozen):
    root = Process.of(parent.pid)
    family = families([root])
    if frozen:
        freeze([root])
    assert set(kill([root])) == set(family)
    assert wait_until_gone(family, PATIENCE_S)
    assert parent.wait() == -signal.SIGKILL


def test_a_number_that_another_process_has_now_is_not_signalled():
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stranger = Process(bystander.pid, "long ago")
    assert not stranger.alive
    stranger.signal(signal.SIGKILL)
    assert families([stranger]) == []
    assert kill([stranger]) == []
    bystander.communicate(b"\n")
    assert bystander.returncode == 0


def test_who_is_told_to_leave_in_the_middle_leaves_afterwards():
    done: list[str] = []

    def told_to_leave() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the record")

    with pytest.raises(KeyboardInterrupt):
        told_to_leave()
    assert done == ["the record"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_has_ended_and_was_not_reaped_counts_as_gone():
    ended = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process.of(ended.pid)
    assert process.alive
    assert not wait_until_gone([process], patience_s=0)
    assert ended.stdin is not None
    ended.stdin.close()
    assert wait_until_gone([process], PATIENCE_S)
    ended.wait()
    with pytest.raises(ProcessLookupError):
        Process.of(ended.pid)
