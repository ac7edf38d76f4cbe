"""Carries the plan out: each fault at its time, upon processes of the cluster or one of the services.

What was done, and from when to when, goes into the book of deeds: the verdict explains by it what could not go well.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import psycopg
import redis

from scripts.private_services import PrivateServices
from scripts.storm.books import Book
from scripts.storm.cluster import Cluster, Member
from scripts.storm.plan import Fault, Kind

KILLED = "killed by the storm"
TOLD_TO_END = "told to end by the storm"

# All at once: a client that is paused would hold up the others that rabbitmqctl closes one after the other.
_CLOSE_ALL = """length([spawn(fun() -> rabbit_networking:close_connection(Pid, "the storm") end)
    || Pid <- rabbit_networking:connections()])"""


class Strikes:
    """`database`: the URL of the cluster's. `struck`: how many faults have begun."""

    def __init__(self, cluster: Cluster, services: PrivateServices, database: str, book: Book) -> None:
        self._cluster = cluster
        self._services = services
        self._database = database
        self._book = book
        self.struck = 0
        self._on_service = {"postgres": asyncio.Lock(), "rabbitmq": asyncio.Lock(), "redis": asyncio.Lock()}

    async def carry_out(self, plan: Sequence[Fault]) -> None:
        """Returns when all have been and everything is up again."""
        begun = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for fault in plan:
                group.create_task(self._at_its_time(fault, begun))

    async def _at_its_time(self, fault: Fault, begun: float) -> None:
        await asyncio.sleep(begun + fault.at_s - asyncio.get_running_loop().time())
        self.struck += 1
        await asyncio.gather(*(self._strike(fault, target) for target in fault.targets))

    async def _strike(self, fault: Fault, target: str) -> None:
        member = self._cluster.members.get(target)
        busy = member.busy if member is not None else self._on_service[target]
        if busy.locked():
            # Something is still being done to it, and what comes meanwhile would pile up behind that.
            self._book("passed over", fault=fault.kind, target=target)
            return
        async with busy:
            began = time.time()
            process = None
            if member is not None:
                await member.alive()
                process = member.pid
                await self._on_member(fault, member)
            else:
                await self._on_server(fault, target)
            self._book("fault", fault=fault.kind, target=target, process=process, began=began, ended=time.time())

    async def _on_member(self, fault: Fault, member: Member) -> None:
        match fault.kind:
            case Kind.KILL:
                member.expect(KILLED)
                member.signal(signal.SIGKILL)
            case Kind.TERM:
                await member.told_to_end(TOLD_TO_END)
            case Kind.PAUSE:
                member.signal(signal.SIGSTOP)
                try:
                    await asyncio.sleep(fault.lasts_s)
                finally:
                    member.signal(signal.SIGCONT)
            case _:
                raise ValueError(f"{fault.kind} cannot be done to a process")

    async def _on_server(self, fault: Fault, name: str) -> None:
        server = {server.name: server for server in self._services.servers}[name]
        match fault.kind:
            case Kind.PAUSE:
                await asyncio.to_thread(server.pause)
                await asyncio.sleep(fault.lasts_s)
                await asyncio.to_thread(server.resume)
            case Kind.POSTGRES_FAST | Kind.RABBITMQ_RESTART:
                await asyncio.to_thread(server.restart)
            case Kind.POSTGRES_IMMEDIATE:
                await asyncio.to_thread(self._services.postgres.stop_at_once)
                await asyncio.to_thread(server.start)
            case Kind.POSTGRES_KILL | Kind.RABBITMQ_KILL:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            case Kind.POSTGRES_BACKENDS:
                await asyncio.to_thread(_terminate_backends, self._services.postgres.url, self._database)
            case Kind.RABBITMQ_CONNECTIONS:
                await asyncio.to_thread(self._services.rabbitmq.console.evaluate, _CLOSE_ALL)
            case Kind.REDIS_FLUSH:
                await asyncio.to_thread(_flush, self._services.redis.url)
            case Kind.REDIS_AWAY | Kind.POSTGRES_AWAY:
                await asyncio.to_thread(server.stop)
                await asyncio.sleep(fault.lasts_s)
                await asyncio.to_thread(server.start)
            case _:
                raise ValueError(f"{fault.kind} cannot be done to {name}")


def _terminate_backends(server: str, database: str) -> None:
    name = urlsplit(database).path[1:]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


def _flush(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()
