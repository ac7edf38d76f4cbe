"""A deployment for one measurement: an empty database, virtual host and folder, the configuration, and the variables
that its processes are given."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from private_services import PrivateServices

from benchmarks.processes import family

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANNEL = "web"


@dataclass(frozen=True, slots=True)
class Place:
    services: PrivateServices
    folder: Path
    database_url: str
    amqp_url: str
    variables: Mapping[str, str]

    @classmethod
    async def make(cls, services: PrivateServices, root: Path, *, receiver_port: int = 9, **variables: str) -> Place:
        """Migrated, and configured with an agent `bench` whose answers go to a receiver on that loopback port."""
        name = f"bench_{uuid.uuid4().hex[:8]}"
        folder = root / name
        (folder / "agents").mkdir(parents=True)
        (folder / "agents" / "bench.json").write_text(
            json.dumps({"id": "bench", "model": "offline/bench", "instructions": "", "limits": {"queue_mode": "steer"}})
        )
        url = f"http://127.0.0.1:{receiver_port}/"
        (folder / "settings.yaml").write_text(json.dumps({"channels": [{"id": CHANNEL, "url": url, "secret": SECRET}]}))
        database_url = await asyncio.to_thread(services.postgres.create_database, name)
        await asyncio.to_thread(services.rabbitmq.console.add_vhost, name)
        amqp_url = services.rabbitmq.url_of(name)
        given = {
            "INSIKA_DATABASE_URL": database_url,
            "INSIKA_AMQP_URL": amqp_url,
            "INSIKA_REDIS_URL": services.redis.url,
            "INSIKA_AGENTS_DIR": str(folder / "agents"),
            "INSIKA_SETTINGS": str(folder / "settings.yaml"),
            "INSIKA_TOOLS": str(Path(__file__).with_name("shop.py")),
            "INSIKA_EGRESS_ALLOW_HTTP": "1",
            "INSIKA_EGRESS_ALLOW_PRIVATE": "1",
            "INSIKA_LOG_LEVEL": "info",
            "INSIKA_LEASE_S": "30",
            **variables,
        }
        migrating = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "actors.cli.main",
            "migrate",
            env={**os.environ, **given},
            stdout=asyncio.subprocess.DEVNULL,
        )
        if await migrating.wait() != 0:
            raise RuntimeError("the database could not be migrated")
        return cls(services, folder, database_url, amqp_url, given)

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    async def until(self, statement: str, at_least: int, *, within_s: float = 120.0) -> None:
        """Until the number that `statement` answers is that large."""
        async with (
            asyncio.timeout(within_s),
            await psycopg.AsyncConnection.connect(self.database_url, autocommit=True) as connection,
        ):
            while True:
                row = await (await connection.execute(statement)).fetchone()
                if row is not None and row[0] >= at_least:
                    return
                await asyncio.sleep(0.1)

    def server_pids(self) -> Mapping[str, list[int]]:
        """By server, all of its processes that run now."""
        return {
            server.name: [each for process in server.describe()["processes"] for each in family(process["pid"])]
            for server in self.services.servers
        }
