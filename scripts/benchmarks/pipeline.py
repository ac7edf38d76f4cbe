"""The whole way, through the real processes: RabbitMQ, ingress, worker, outbox, receiver.

Under load: how many turns a second these cores do, and which process the time goes to. Idle: how long it takes from a
publish to the first request to the model.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from private_services import PrivateServices

from benchmarks.measure import Figure
from benchmarks.place import CHANNEL, Place
from benchmarks.processes import Cluster, Spent, family
from benchmarks.receiving import Counting
from benchmarks.shop import ASKED
from insika import AsyncProducer

JOBS, SESSIONS = 2_000, 200
IDLE_JOBS, IDLE_PAUSE_S = 100, 0.1
ROLES = ("ingress", "worker", "outbox", "clock")


async def figures(services: PrivateServices, root: Path) -> list[Figure]:
    async with Counting() as receiver:
        asked = root / "asked"
        asked.touch()
        place = await Place.make(services, root, receiver_port=receiver.port, **{ASKED: str(asked)})
        async with Cluster(place.variables, place.folder) as cluster:
            for role in ROLES:
                await cluster.start(role)
            idle = await _idle(place, asked)
            return [await _loaded(place, cluster, receiver), idle]


async def _idle(place: Place, asked: Path) -> Figure:
    sent: dict[str, float] = {}
    async with AsyncProducer(place.amqp_url) as producer:
        for number in range(IDLE_JOBS + 10):
            text = f"idle-{number}"
            sent[text] = time.time()
            await producer.send(session=f"idle-{number % 10}", agent="bench", text=text)
            await asyncio.sleep(IDLE_PAUSE_S)
    await place.until("SELECT count(*) FROM turns WHERE state = 'completed'", IDLE_JOBS + 10)
    came = {text: float(at) for text, at in (line.split() for line in asked.read_text().splitlines())}
    times = [came[text] - at for text, at in list(sent.items())[10:]]
    p50 = statistics.median(times)
    return Figure(
        "pipeline.publish_to_first_request_idle",
        len(times),
        round(p50 * 1000, 2),
        round(statistics.quantiles(times, n=20)[-1] * 1000, 2),
        round(1 / p50, 1),
        0.0,
        0.0,
        "from the call to publish, by the wall clock of one machine",
    )


async def _loaded(place: Place, cluster: Cluster, receiver: Counting) -> Figure:
    before_deliveries = receiver.count
    pids = {process.name: [process.pid] for process in cluster.running} | dict(place.server_pids())
    before, began = Spent.now(pids), time.perf_counter()
    async with AsyncProducer(place.amqp_url) as producer, asyncio.TaskGroup() as group:
        for lane in range(SESSIONS):
            group.create_task(_publish(producer, lane))
    await receiver.until(before_deliveries + JOBS)
    elapsed = time.perf_counter() - began
    pids = {name: [each for pid in of_name for each in family(pid)] for name, of_name in pids.items()}
    spent = Spent.now(pids).since(before)
    return Figure(
        "pipeline.turns",
        JOBS,
        round(elapsed / JOBS * 1000, 3),
        0.0,
        round(JOBS / elapsed, 1),
        0.0,
        0.0,
        f"{SESSIONS} sessions, one tool, delivered; processor ms a turn: {_shares(spent)}",
    )


async def _publish(producer: AsyncProducer, lane: int) -> None:
    for number in range(JOBS // SESSIONS):
        # Each gets a turn of its own: one that joined a running turn would have no delivery.
        await producer.send(
            session=f"load-{lane}", agent="bench", text=f"add {number}", channel=CHANNEL, queue_mode="followup"
        )


def _shares(spent: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {seconds / JOBS * 1000:.2f}" for name, seconds in sorted(spent.items(), key=lambda item: -item[1])
    )
