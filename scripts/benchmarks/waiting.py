"""One worker with a thousand turns under way, each waiting for its model: what that costs while nothing happens.

The floor of each figure is the same process with nothing to do.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

from private_services import PrivateServices

from benchmarks.measure import Figure
from benchmarks.place import Place
from benchmarks.processes import Cluster, Running
from insika import AsyncProducer

TURNS = 1_000
STEERS = 100
WINDOW_S = 2.0
METERED = 9
RUNNING = "SELECT count(*) FROM turns WHERE state = 'running'"


async def figures(services: PrivateServices, root: Path) -> list[Figure]:
    place = await Place.make(services, root, INSIKA_SLOTS=str(TURNS + 100), INSIKA_DRAIN_S="0")
    meter = Meter(place.folder / "loop")
    async with Cluster(place.variables, place.folder) as cluster, AsyncProducer(place.amqp_url) as producer:
        await cluster.start("ingress")
        command = [sys.executable, "-m", "benchmarks.slow_worker", str(meter.path)]
        worker = await cluster.start_command("worker", command)
        idle_bytes, idle_share, idle_rounds = worker.resident_bytes(), await _share(worker), await meter.rate()
        async with asyncio.TaskGroup() as group:
            for number in range(TURNS):
                group.create_task(producer.send(session=f"s{number}", agent="bench", text="wait"))
        await place.until(RUNNING, TURNS)
        share, rounds, busy_bytes = await _share(worker), await meter.rate(), worker.resident_bytes()
        steered = await _steers(place, producer)
    memory, loop = busy_bytes / idle_bytes, rounds / idle_rounds
    return [
        _figure("waiting.memory", memory, f"{busy_bytes >> 20} MiB resident, idle {idle_bytes >> 20} MiB"),
        _figure("waiting.processor", share, f"of one core; idle {idle_share:.3f}"),
        _figure("waiting.loop", loop, f"{rounds:.0f} rounds/s of the loop, idle {idle_rounds:.0f}"),
        Figure(
            "waiting.steer_to_mailbox",
            len(steered),
            round(statistics.median(steered) * 1000, 2),
            round(statistics.quantiles(steered, n=20)[-1] * 1000, 2),
            0.0,
            0.0,
            0.0,
            f"{TURNS} turns under way; from the call to publish until the store has it",
        ),
    ]


class Meter:
    """Asks the worker's loop how often it comes round in a second."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._asked = path.with_suffix(".asked")

    async def rate(self) -> float:
        """The median of a few."""
        self.path.write_text("")
        self._asked.touch()
        async with asyncio.timeout(30):
            while len(lines := self.path.read_text().split()) < METERED:
                await asyncio.sleep(0.1)
        self._asked.unlink()
        return statistics.median(float(line) for line in lines)


async def _share(worker: Running) -> float:
    """Of one core."""
    before, began = worker.processor_s(), time.perf_counter()
    await asyncio.sleep(WINDOW_S)
    return (worker.processor_s() - before) / (time.perf_counter() - began)


async def _steers(place: Place, producer: AsyncProducer) -> list[float]:
    sent: dict[str, float] = {}
    for number in range(STEERS):
        sent[f"steer-{number}"] = time.time()
        await producer.send(session=f"s{number}", agent="bench", text=f"steer-{number}")
        await asyncio.sleep(0.01)
    await place.until("SELECT count(*) FROM mailbox WHERE text LIKE 'steer-%'", STEERS)
    rows = place.ask(
        "SELECT text, extract(epoch FROM at)::float, verdict FROM mailbox WHERE text LIKE 'steer-%' ORDER BY position"
    )
    if any(verdict != "steered" for _, _, verdict in rows):
        raise RuntimeError("not all of them were steered: the turns had ended before")
    return [float(str(at)) - sent[str(text)] for text, at, _ in rows]


def _figure(name: str, ratio: float, note: str) -> Figure:
    return Figure(f"{name}_{TURNS}", TURNS, 0.0, 0.0, 0.0, 0.0, round(ratio, 3), note)
