"""The worker with a model that takes long to answer, and a meter on its loop: `python -m benchmarks.slow_worker FILE`.

It is the worker's own composition, with another provider among its parts. When asked it writes to FILE how often
the loop came round in a second, beside its work.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from actors.cli.stopping import stop_on_signals
from actors.environment import read_environment
from actors.logs import configure_logging
from actors.parts import Parts
from actors.processes.worker import run_worker
from benchmarks.memory import USAGE
from insika.messages import assistant
from insika.ports import Finished, ModelEvent, ModelRequest
from insika.providers.catalog import ModelCatalog

WAITS_S = 30.0
"""Long enough for a thousand turns to begin, and to be measured, before the first ends."""
METER_S = 0.25
"""How long the meter turns the loop at a time."""


class SlowModel:
    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await asyncio.sleep(WAITS_S)
        yield Finished(assistant("the answer"), USAGE)


async def meter(path: Path, asked: Path) -> None:
    """Turns the loop only while `asked` exists."""
    while True:
        await asyncio.sleep(0.1)
        if not asked.exists():
            continue
        rounds, end = 0, time.perf_counter() + METER_S
        while time.perf_counter() < end:
            await asyncio.sleep(0)
            rounds += 1
        with path.open("a", encoding="utf-8") as out:
            out.write(f"{rounds / METER_S}\n")


async def main(path: Path) -> None:
    configure_logging("info")
    metering = asyncio.create_task(meter(path, path.with_suffix(".asked")))
    await run_worker(read_environment(), Parts(ModelCatalog({"offline": SlowModel()})), stop_on_signals())
    metering.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
