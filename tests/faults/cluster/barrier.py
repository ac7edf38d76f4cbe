"""`insika worker` with a barrier before an operation of its store: `python -m tests.faults.cluster.barrier`. All who
come to it wait there, in whichever process, until the test lets them go together.

Nothing that a turn is admitted by has been looked at when its owner stands before `load`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from actors.cli.parts import parts_here
from actors.cli.running import leave_nothing_running
from actors.cli.stopping import stop_on_signals
from actors.environment import Environment, read_environment
from actors.logs import configure_logging
from actors.processes import ground
from actors.processes.worker import run_worker
from actors.stores import Stores
from insika.clock import Clock
from insika.storage.operations import Fence
from insika.storage.port import Store
from tests.faults.cluster.gates import FOLDER, FileGates, gates_of
from tests.faults.shop import Diary, diary_of

BARRIER = "barrier"
"""The gate's name, and the kind of the diary's entries about who has come."""
AT = "load"


class BarredStore:
    """A store in all but this operation."""

    def __init__(self, store: Store, diary: Diary, gates: FileGates) -> None:
        self._store = store
        self._diary = diary
        self._gates = gates

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)
        return self._barred(operation) if name == AT else operation

    def _barred(self, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def waits(fence: Fence, *values: Any, **named: Any) -> Any:
            if not self._gates.is_open(BARRIER):
                self._diary(BARRIER, session_id=fence.session_id)
                await self._gates.passed(BARRIER)
            return await operation(fence, *values, **named)

        return waits


async def run() -> int:
    folder = Path(os.environ[FOLDER])
    diary, gates, open_stores = Diary(diary_of(folder)), gates_of(folder), ground.open_stores

    async def opened(environment: Environment, clock: Clock) -> Stores:
        stores = await open_stores(environment, clock)
        store: Any = BarredStore(stores.store, diary, gates)
        return Stores(store, stores.outbox)

    ground.open_stores = opened
    environment = read_environment()
    await run_worker(environment, parts_here(environment), stop_on_signals())
    return await leave_nothing_running(0)


if __name__ == "__main__":
    configure_logging("info")
    sys.exit(asyncio.run(run()))
