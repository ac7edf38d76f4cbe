"""The reading side of ingress as a process, over a SQLite file:
`python -m tests.faults.broker.ingress_process URL QUEUE_TYPE DATABASE DEADLY`.

A job whose text is DEADLY ends it on the way into the store, as a crash would. It ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.broker.intake import Intake
from actors.broker.outage import Outage
from actors.broker.turn_actors import TurnActors
from actors.configuration import Configuration
from actors.environment import QueueType
from actors.ingress import Ingress
from actors.wakes import NoSignals, NoWakes
from insika.clock import SystemClock
from insika.crash_points import no_crash
from insika.events import NoEvents
from insika.storage.operations import AcceptJob
from insika.storage.sqlite.store import SqliteStore


class DeadlyStore:
    def __init__(self, store: SqliteStore, deadly: str) -> None:
        self._store = store
        self._deadly = deadly

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def accept(self, job: AcceptJob) -> Any:
        if job.text == self._deadly:
            os._exit(137)
        return await self._store.accept(job)

    async def accept_all(self, jobs: Sequence[AcceptJob]) -> Any:
        if any(job.text == self._deadly for job in jobs):
            os._exit(137)
        return await self._store.accept_all(jobs)


async def serve(url: str, queue_type: str, database: str, deadly: str) -> None:
    told, loop, clock = asyncio.Event(), asyncio.get_running_loop(), SystemClock()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    store: Any = DeadlyStore(SqliteStore.open(Path(database), clock.now), deadly)
    configuration = Configuration(store)
    await configuration.refresh()
    ingress = Ingress(
        store,
        configuration,
        events=NoEvents(),
        clock=clock,
        wakes=NoWakes(),
        signals=NoSignals(),
        crash=no_crash,
    )
    gate = Gate()
    outage = Outage([gate], lambda: store.mark_requeued(0), clock)
    consuming = Consuming.of_turns(url, QueueType(queue_type), TurnActors(Intake(ingress, store, outage), loop), gate)
    watching = asyncio.create_task(outage.watch())
    consuming.start()
    await told.wait()
    await asyncio.to_thread(consuming.stop, 10)
    watching.cancel()
    await store.close()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
