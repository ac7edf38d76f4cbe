"""The durable turn: from a job's bytes to its committed answer, with one tool call, in a SQLite file with full fsync
and in a PostgreSQL database with its own.

The floor is what any durable turn has to do at the least: three small writes, one after the other, by the same
connections (the message in, the call's result, the answer out).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import SecretStr

from actors.embedded import Embedded
from actors.environment import Environment
from actors.ingress import Kept
from actors.parts import Parts
from benchmarks.measure import Figure
from benchmarks.memory import StubModel
from insika.agents.profile import load_profile
from insika.events import EventType
from insika.providers.catalog import ModelCatalog
from insika.tools import tool
from insika.tools.registry import ToolRegistry

TURNS_PER_SESSION = 5

PROFILE = {"id": "bench", "model": "stub/one-call", "instructions": "", "limits": {"turn_timeout": 3600}}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Turns:
    """Runs whole turns through an embedded Insika, and knows when each has ended."""

    def __init__(self, insika: Embedded) -> None:
        self._insika = insika
        self._waiting: dict[str | None, asyncio.Future[None]] = {}

    async def one(self, session: str, number: int) -> float:
        """Seconds from the job's bytes to the event after its commit."""
        ended = asyncio.get_running_loop().create_future()
        job = json.dumps({"session": session, "agent": "bench", "text": "add", "id": f"{session}-{number}"}).encode()
        began = time.perf_counter()
        taken = await self._insika.ingress.take(job)
        if isinstance(taken, Kept):
            raise taken.error
        self._waiting[taken.turn_id] = ended
        await ended
        return time.perf_counter() - began

    async def listen(self) -> None:
        with self._insika.events.subscribe() as events:
            async for event in events:
                if event.type == EventType.TURN_FAILED:
                    self._waiting.pop(event.turn_id).set_exception(RuntimeError(f"a turn failed: {event.data}"))
                if event.type == EventType.TURN_COMPLETED:
                    self._waiting.pop(event.turn_id).set_result(None)


Write = Callable[[Embedded], Awaitable[object]]
"""One small durable write, by the store's own means."""


async def sqlite_figures(turns: int = 600) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="insika-bench-") as folder:
        environment = Environment(database_url=SecretStr(f"sqlite:///{Path(folder) / 'bench.db'}"), lease_s=60)
        return await _figures("sqlite", environment, _write_to_sqlite, turns)


async def postgres_figures(database_url: str, turns: int = 600) -> list[Figure]:
    """`database_url`: an empty database."""
    environment = Environment(database_url=SecretStr(database_url), lease_s=60)
    return await _figures("postgres", environment, _write_to_postgres, turns)


async def _figures(store: str, environment: Environment, write: Write, turns: int) -> list[Figure]:
    parts = Parts(ModelCatalog({"stub": StubModel(1)}), ToolRegistry([add]))
    insika = await Embedded.open(environment, parts)
    await insika.configuration.apply_profiles([load_profile(PROFILE, "bench")], from_file=False)
    await insika.configuration.refresh()
    async with insika:
        subject = Turns(insika)
        listening = asyncio.create_task(subject.listen())
        await asyncio.sleep(0)
        await _times(subject.one, 16, 160, "warm")
        out = [await _compare(store, insika, subject, write, at_once=at_once, turns=turns) for at_once in (1, 16)]
        listening.cancel()
    return out


async def _compare(store: str, insika: Embedded, subject: Turns, write: Write, *, at_once: int, turns: int) -> Figure:
    """Ours and the floor take turns, a few rounds of each."""
    ours: list[float] = []
    bare: list[float] = []
    rates: list[float] = []
    bare_rates: list[float] = []
    processor_s = 0.0
    rounds = 4

    async def three_writes(session: str, number: int) -> float:
        began = time.perf_counter()
        for _ in range(3):
            await write(insika)
        return time.perf_counter() - began

    for round_ in range(rounds):
        times, rate = await _times(three_writes, at_once, turns // rounds, f"floor{round_}")
        bare += times
        bare_rates.append(rate)
        began = time.process_time()
        times, rate = await _times(subject.one, at_once, turns // rounds, f"r{round_}x{at_once}")
        processor_s += time.process_time() - began
        ours += times
        rates.append(rate)
    p50, floor = statistics.median(ours), statistics.median(bare)
    of_rate = statistics.median(rates) / statistics.median(bare_rates)
    return Figure(
        f"{store}.turn_{at_once}",
        len(ours),
        round(p50 * 1000, 3),
        round(statistics.quantiles(ours, n=20)[-1] * 1000, 3),
        round(statistics.median(rates), 1),
        round(floor * 1000, 3),
        round(p50 / floor, 2),
        f"{at_once} at once, {processor_s / len(ours) * 1000:.2f} ms of processor each; {of_rate:.2f} of the floor's "
        "rate; floor: three durable writes",
    )


async def _times(
    work: Callable[[str, int], Awaitable[float]], at_once: int, count: int, label: str
) -> tuple[list[float], float]:
    times: list[float] = []

    async def lane(lane: int) -> None:
        for number in range(count // at_once):
            times.append(await work(f"{label}-{lane}-{number // TURNS_PER_SESSION}", number))

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(at_once):
            group.create_task(lane(number))
    return times, len(times) / (time.perf_counter() - began)


async def _write_to_sqlite(insika: Embedded) -> object:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO rejected_jobs (source, raw, error, at) VALUES ('bench', x'00', '{}', insika_now())"
        )

    return await insika.store.database.write(write)  # type: ignore[attr-defined]


async def _write_to_postgres(insika: Embedded) -> object:
    return await insika.store.database.row(  # type: ignore[attr-defined]
        "INSERT INTO rejected_jobs (source, raw, error, at) VALUES ('bench', '', '{}', insika_now()) RETURNING id", {}
    )
