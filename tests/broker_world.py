"""Queues of RabbitMQ as tests need them: filled, watched, and read by processes that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import pika

from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.broker.handing_back import HandBack
from actors.broker.intake import Intake
from actors.broker.messages import Delivery
from actors.broker.outage import Outage
from actors.broker.preflight import require_broker
from actors.broker.topology import TURNS
from actors.broker.turn_actors import TurnActors
from actors.environment import QueueType
from insika.producer.connection import AmqpPublisher
from insika.storage.rows import RejectedJob
from scripts.private_services.console import RabbitConsole
from tests.actor_world import Process, unavailable
from tests.amqp_wire import channel

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 90.0
"""Only a test that hangs waits as long as that."""


def until(ready: Callable[[], object], what: str = "it") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Vhost:
    """A virtual host with everything declared, and the node that it is on."""

    url: str
    type: QueueType
    console: RabbitConsole

    def declare(self) -> None:
        asyncio.run(require_broker(self.url, self.type))

    def publish(self, bodies: Iterable[bytes], queue: str = TURNS, **properties: Any) -> None:
        """In order; returns when all are confirmed. `message_id` is the body where nothing else is said."""
        publisher = AmqpPublisher(self.url, body_max=100 * 1024 * 1024)
        try:
            waits = [
                publisher.publish(
                    "",
                    queue,
                    body,
                    pika.BasicProperties(
                        **{"delivery_mode": 2, "message_id": body[:60].decode("latin-1"), **properties}
                    ),
                    mandatory=True,
                )
                for body in bodies
            ]
            for wait in waits:
                wait.result(PATIENCE_S)
        finally:
            publisher.close()

    def waiting(self, queue: str = TURNS) -> int:
        """Messages that are in nobody's hands."""
        with channel(self.url) as asking:
            return int(asking.queue_declare(queue, passive=True).method.message_count)

    def refuse_one(self) -> None:
        """As a consumer that is not ours refuses a message of the turns."""
        with channel(self.url) as refusing:
            refusing.basic_qos(prefetch_count=1)
            method, _, _ = next(refusing.consume(TURNS))
            refusing.basic_nack(method.delivery_tag, requeue=False)

    def close_connections(self) -> None:
        """As an operator closes them all."""
        self.console.evaluate(
            f'[rabbit_networking:close_connection(P, "closed by a test") || P <- {self._connections}]'
        )

    def received(self) -> list[int]:
        """Bytes that the broker has read on each connection; heartbeats count."""
        answer = self.console.evaluate(
            f"[N || P <- {self._connections}, {{_, N}} <- rabbit_reader:info(P, [recv_oct])]"
        )
        return [int(number) for number in answer.strip("[]").split(",") if number.strip()]

    @property
    def _connections(self) -> str:
        name = unquote(urlsplit(self.url).path[1:])
        return f'[element(6, C) || C <- rabbit_connection_tracking:list(<<"{name}">>)]'


@dataclass(frozen=True, slots=True)
class Handled:
    """One line of a journal: who handled which message, and how often it had come."""

    pid: int
    body: str
    deliveries: int


class Journal:
    """What readers did, in the order in which they did it, over all of them. They only append to it, by permit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        os.mkfifo(f"{path}.permits")
        self._permits = os.open(f"{path}.permits", os.O_RDWR)

    def permit(self, messages: int) -> None:
        """Let so many more be handled. Whoever finds no permit left is held in the middle of a message."""
        os.write(self._permits, bytes(messages))

    def read(self) -> list[Handled]:
        lines = [line.split(" ") for line in self.path.read_text().splitlines()]
        return [Handled(int(pid), body, int(deliveries)) for pid, body, deliveries in lines]

    @property
    def bodies(self) -> list[str]:
        return [handled.body for handled in self.read()]

    def first_times(self) -> list[str]:
        """Each message where it was handled first."""
        return list(dict.fromkeys(self.bodies))

    @property
    def repeats(self) -> int:
        bodies = self.bodies
        return len(bodies) - len(set(bodies))


class Readers:
    """Processes that read the turns of one virtual host: `python -m tests.faults.broker.reader`."""

    def __init__(self, vhost: Vhost, journal: Journal) -> None:
        self._vhost = vhost
        self._journal = journal
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._told: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, count: int = 1, *, deadly: str = "") -> list[int]:
        """So many more, once they are subscribed. Answers their pids."""
        command = [sys.executable, "-m", "tests.faults.broker.reader", self._vhost.url, self._vhost.type]
        command += [str(self._journal.path), deadly]
        started = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(count)
        ]
        self._running |= {process.pid: process for process in started}
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == b"reading\n"
        return [process.pid for process in started]

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(self._running)

    def tell(self, pid: int, what: signal.Signals) -> None:
        """It counts as gone from here on; `exit_codes` waits for that. One that is killed is gone at once."""
        self._told[pid] = self._running.pop(pid)
        self._told[pid].send_signal(what)
        if what is signal.SIGKILL:
            self._told[pid].wait(PATIENCE_S)

    def exit_codes(self) -> list[int]:
        """Of those that were told to end, in that order."""
        return [process.wait(PATIENCE_S) for process in self._told.values()]

    def wait(self, pid: int) -> int:
        return self._running.pop(pid).wait(PATIENCE_S)

    def close(self) -> None:
        for process in [*self._running.values(), *self._told.values()]:
            process.kill()
            process.wait()


@contextmanager
def readers_of(vhost: Vhost, journal: Journal) -> Iterator[Readers]:
    readers = Readers(vhost, journal)
    try:
        yield readers
    finally:
        readers.close()


def numbered(count: int) -> list[bytes]:
    return [b"%05d" % number for number in range(count)]


def texts(bodies: Sequence[bytes]) -> list[str]:
    return [body.decode() for body in bodies]


class ListActors:
    """Stands in the place of `TurnActors`, within the test's own process. `before` is called with each delivery, and
    may raise."""

    def __init__(self, before: Callable[[Delivery], object] = lambda delivery: None) -> None:
        self.begun: list[Delivery] = []
        self.handled: list[str] = []
        self.dead: list[Delivery] = []
        self._before = before

    def accept_turn(self, deliveries: Sequence[Delivery]) -> None:
        for place, delivery in enumerate(deliveries):
            self.begun.append(delivery)
            try:
                self._before(delivery)
            except Exception as error:
                raise HandBack(type(error).__name__, dealt=frozenset(range(place))) from error
            self.handled.append(delivery.body.decode())

    def keep_dead(self, delivery: Delivery) -> None:
        self.dead.append(delivery)


def turns_of(vhost: Vhost, actors: ListActors, gate: Gate | None = None, *, query: str = "") -> Consuming:
    return Consuming.of_turns(vhost.url + query, vhost.type, cast(TurnActors, actors), gate or Gate())


@contextmanager
def reading(*consumings: Consuming) -> Iterator[None]:
    for consuming in consumings:
        consuming.start()
    try:
        yield
    finally:
        for consuming in consumings:
            consuming.stop(10)


@asynccontextmanager
async def reading_beside_the_loop(*consumings: Consuming) -> AsyncIterator[None]:
    """For tests whose loop is part of what happens."""
    for consuming in consumings:
        consuming.start()
    try:
        yield
    finally:
        for consuming in consumings:
            await asyncio.to_thread(consuming.stop, 10)


async def until_beside_the_loop(ready: Callable[[], object], what: str = "it") -> None:
    await asyncio.to_thread(until, ready, what)


class Door:
    """The reading side of an ingress process: its door over a process's store, on the test's loop."""

    def __init__(self, vhost: Vhost, process: Process, *, patience_s: float = 300.0) -> None:
        self.process = process
        self.gate = Gate()
        self.closings = 0
        self.gate.listen(self._note)
        self.outage = Outage([self.gate], lambda: process.store.mark_requeued(0), process.clock, patience_s=patience_s)
        intake = Intake(process.ingress, process.store, self.outage)  # type: ignore[arg-type]
        actors = TurnActors(intake, asyncio.get_running_loop())
        self.consuming = Consuming.of_turns(vhost.url, vhost.type, actors, self.gate)

    def _note(self) -> None:
        self.closings += not self.gate.is_open

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.outage.watch())
        try:
            async with reading_beside_the_loop(self.consuming):
                yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def accepted(self) -> list[str]:
        """The texts of all jobs that have a place in a mailbox, in the order of the session rows."""
        rows = await self.process.select("SELECT text FROM mailbox ORDER BY session_id, position")
        return [row["text"] for row in rows]

    async def kept(self) -> list[RejectedJob]:
        """The oldest first."""
        return list(reversed(await self.process.store.real.rejected_jobs(1_000)))

    async def until(self, ready: Callable[[], Awaitable[object]], what: str = "it") -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await ready():  # noqa: ASYNC110 (what is waited for happens in a database)
                await asyncio.sleep(0.02)


class Outages:
    """Of the store of one door: `operations` fail while it is `away`."""

    def __init__(self, door: Door) -> None:
        self.away = False
        self.failed = Counter[str]()
        self._door = door
        door.process.store.hook = self._hook

    async def _hook(self, when: str, operation: str) -> None:
        if self.away and operation in ("accept", "accept_all", "reject", "mark_requeued"):
            self.failed[operation] += 1
            raise unavailable()


def job(text: str, **fields: Any) -> bytes:
    return json.dumps({"session": "s", "agent": "agent", "text": text, **fields}).encode()
