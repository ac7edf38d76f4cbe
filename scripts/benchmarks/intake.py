"""How many jobs one ingress takes a second, beside how many messages dramatiq hands to an actor that does nothing."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path

import pika
from private_services import PrivateServices

from benchmarks.measure import Figure
from benchmarks.place import Place
from benchmarks.processes import Cluster

JOBS, SESSIONS, ROUNDS = 3_000, 300, 2


async def figures(services: PrivateServices, root: Path) -> list[Figure]:
    place = await Place.make(services, root)
    ours: list[float] = []
    bare: list[float] = []
    for round_ in range(ROUNDS):
        bare.append(await _no_op_rate(place))
        ours.append(await _accepted_rate(place, round_))
    rate, floor = max(ours), max(bare)
    return [
        Figure(
            "ingress.accepted",
            JOBS * ROUNDS,
            round(1000 / rate, 3),
            0.0,
            round(rate, 1),
            round(1000 / floor, 3),
            round(floor / rate, 2),
            f"{rate / floor:.2f} of the rate of dramatiq's no-op actor ({floor:.0f}/s, its defaults)",
        )
    ]


async def _accepted_rate(place: Place, round_: int) -> float:
    """By the times of the store, from the first job to the last; all of them wait before the ingress starts."""
    async with Cluster(place.variables, place.folder) as cluster:
        await cluster.start("ingress", "declaring")
    await asyncio.to_thread(_publish_jobs, place.amqp_url, round_)
    async with Cluster(place.variables, place.folder) as cluster:
        await cluster.start("ingress")
        await place.until("SELECT count(*) FROM mailbox", JOBS * (round_ + 1))
    ((seconds,),) = place.ask(
        f"SELECT extract(epoch FROM max(at) - min(at))::float FROM mailbox WHERE text LIKE 'job {round_} %'"
    )
    return (JOBS - 1) / float(str(seconds))


def _publish_jobs(amqp_url: str, round_: int) -> None:
    with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
        channel = connection.channel()
        for number in range(JOBS):
            job = {"session": f"s{number % SESSIONS}", "agent": "bench", "text": f"job {round_} {number}"}
            properties = pika.BasicProperties(message_id=uuid.uuid4().hex, delivery_mode=2)
            channel.basic_publish("", "insika.turns", json.dumps(job).encode(), properties)


async def _no_op_rate(place: Place) -> float:
    """In a process of its own, as the ingress is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.no_op", place.amqp_url, str(JOBS), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return float(out)
