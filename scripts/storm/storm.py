"""One storm from beginning to end: services, processes, jobs, faults, rest, verdict."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from scripts.private_services import PrivateServices
from scripts.storm.books import Book
from scripts.storm.cluster import Cluster
from scripts.storm.evidence import Evidence, read_books, read_tables
from scripts.storm.folder import ROOT, Folder
from scripts.storm.jobs import Line, make_lines
from scripts.storm.logs import unforeseen
from scripts.storm.options import Options
from scripts.storm.plan import Fault, make_plan, write_plan
from scripts.storm.producer import StormProducer
from scripts.storm.rest import come_to_rest, queues
from scripts.storm.strikes import Strikes
from scripts.storm.verdict import Verdict, judge

_READY_S = 180.0
_TELLS_S = 5.0
_DATABASE = "storm"

Tell = Callable[[str], None]


async def storm(options: Options, folder: Folder, tell: Tell) -> Verdict:
    """`folder` afterwards holds all that was written down."""
    lines = make_lines(options)
    plan = make_plan(options)
    write_plan(plan, options, folder.plan)
    tell(f"seed {options.seed}: {len(plan)} faults in {options.seconds:g} s; this plan is in {folder.plan}")
    for fault in plan:
        tell(_told(fault))
    tell("starting RabbitMQ, PostgreSQL and Redis ...")
    services = await asyncio.to_thread(PrivateServices.start)
    try:
        database = await asyncio.to_thread(services.postgres.create_database, _DATABASE)
        async with _receiver(folder, options.seed) as url:
            folder.configure(url)
            return await _under_fire(options, folder, services, database, lines, plan, tell)
    finally:
        for server in services.servers:
            (folder.logs / f"{server.name}.log").write_text(server.log_tail(), encoding="utf-8")
        await asyncio.to_thread(services.stop)


async def _under_fire(
    options: Options,
    folder: Folder,
    services: PrivateServices,
    database: str,
    lines: Sequence[Line],
    plan: Sequence[Fault],
    tell: Tell,
) -> Verdict:
    deeds = Book(folder.deeds)
    variables = folder.variables(options, postgres=database, amqp=services.rabbitmq.url, redis=services.redis.url)
    cluster = Cluster(options, variables, folder.logs, deeds)
    tell("migrating, and starting the processes ...")
    await cluster.migrate()
    try:
        await cluster.start(_READY_S)
        producer = StormProducer(services.rabbitmq.url, Book(folder.published))
        strikes = Strikes(cluster, services, database, deeds)
        totals = (sum(len(line.publishes) for line in lines), len(plan))
        progress = asyncio.create_task(_progress(producer, strikes, totals, tell))
        await asyncio.gather(producer.publish(lines), strikes.carry_out(plan))
        progress.cancel()
        tell(f"the last fault is over; waiting until everything is at rest, at most {options.patience_s:g} s ...")
        at_rest_s = await come_to_rest(services, database, options.patience_s)
    finally:
        await cluster.stop()
    evidence = Evidence(lines, queues=queues(services), at_rest_s=at_rest_s, within_s=options.patience_s)
    await asyncio.to_thread(read_tables, evidence, database, folder.tables)
    read_books(evidence, folder)
    evidence.log = unforeseen(folder.logs)
    return judge(evidence)


@asynccontextmanager
async def _receiver(folder: Folder, seed: int) -> AsyncIterator[str]:
    command = [sys.executable, "-m", "scripts.storm.receiver", str(folder.received), str(seed)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        if process.stdout is None:
            raise RuntimeError("the receiver has no output")
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


async def _progress(producer: StormProducer, strikes: Strikes, totals: tuple[int, int], tell: Tell) -> None:
    begun, (messages, faults) = time.monotonic(), totals
    while True:
        await asyncio.sleep(_TELLS_S)
        done = f"{producer.published} of {messages} messages published, {strikes.struck} of {faults} faults"
        tell(f"{time.monotonic() - begun:4.0f} s: {done}, load {os.getloadavg()[0]:.1f}")


def _told(fault: Fault) -> str:
    lasts = f", {fault.lasts_s:g} s" if fault.lasts_s else ""
    return f"  at {fault.at_s:5.1f} s: {' and '.join(fault.targets)}: {fault.kind}{lasts}"
