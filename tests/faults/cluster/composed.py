"""A process of the cluster with something in time's or death's place: `python -m tests.faults.cluster.composed ROLE
OPTIONS`, where OPTIONS is a JSON object with the fields of `Options`.

Only its parts differ from those of `insika ROLE`: a clock that is wrong, a point at which it stops or dies by itself, a
store whose owners can be held, a model whose stream can be, behind a door as strict as the vendors'.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from actors.cli.running import leave_nothing_running
from actors.cli.stopping import stop_on_signals
from actors.environment import Environment, read_environment
from actors.logs import configure_logging
from actors.parts import Parts
from actors.processes import ground
from actors.processes.clock import run_clock
from actors.processes.ingress import run_ingress
from actors.processes.outbox import run_outbox
from actors.processes.worker import run_worker
from actors.stores import Stores
from insika.clock import Clock, SystemClock
from insika.crash_points import CrashPoint
from tests.faults.cluster.gates import FOLDER, FileGates, gates_of
from tests.faults.cluster.holding import holding
from tests.faults.process import GO_ON
from tests.faults.shop import Diary, Gates, diary_of, shop_models, shop_tools

ROLES = {"ingress": run_ingress, "worker": run_worker, "outbox": run_outbox, "clock": run_clock}


@dataclass(frozen=True, slots=True)
class Options:
    """`point`: where `by` happens to it when it comes there for the `nth` time; "" is nowhere. By "SIGSTOP" it stands
    still with all its threads, until it is continued and told GO_ON. `clock_off_s`: how wrong its wall clock is.
    `holds`: owners are held in it as `mailbox_matrix` says."""

    point: str = ""
    nth: int = 1
    by: str = "SIGKILL"
    clock_off_s: float = 0.0
    holds: bool = False


class WrongClock(SystemClock):
    def __init__(self, off_s: float) -> None:
        self._off = timedelta(seconds=off_s)

    def now(self) -> datetime:
        return super().now() + self._off


class SelfInflicted:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._met: Counter[str] = Counter()

    def __call__(self, point: CrashPoint, /) -> None:
        self._met[point] += 1
        if point == self._options.point and self._met[point] == self._options.nth:
            os.kill(os.getpid(), signal.Signals[self._options.by])
            signal.sigwait({GO_ON})


async def run(role: str, options: Options) -> int:
    folder = Path(os.environ[FOLDER])
    diary, gates = Diary(diary_of(folder)), cast("Gates", gates_of(folder))
    parts = Parts(
        shop_models(diary, gates),
        shop_tools(diary, gates),
        WrongClock(options.clock_off_s),
        SelfInflicted(options),
    )
    if options.holds:
        _hold(diary, gates_of(folder))
    await ROLES[role](read_environment(), parts, stop_on_signals())
    return await leave_nothing_running(0)


def _hold(diary: Diary, gates: FileGates) -> None:
    open_stores = ground.open_stores

    async def opened(environment: Environment, clock: Clock) -> Stores:
        return holding(await open_stores(environment, clock), diary, gates)

    ground.open_stores = opened


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON})  # before any thread is there to take it
    configure_logging("info")
    sys.exit(asyncio.run(run(sys.argv[1], Options(**json.loads(sys.argv[2])))))
