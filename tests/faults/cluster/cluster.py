"""A cluster of real processes over real services: `insika ingress`, `worker`, `outbox` and `clock`, as many as a test
wants, started by the command that people start them with.

It starts, tells and looks; it decides and mends nothing. What a test does to a process it does by `Member`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from actors.receiver import Received
from insika.clock import SystemClock
from insika.coordination.redis.coordination import RedisCoordination
from insika.events import Event
from insika.producer.producer import AsyncProducer
from scripts.private_services import RabbitConsole
from tests.faults.cluster.gates import FOLDER, gates_of
from tests.faults.cluster.member import PATIENCE_S, Member, until
from tests.faults.cluster.queues import Queues
from tests.faults.cluster.tables import NOT_AT_REST, Row, Tables
from tests.faults.shop import CHANNEL, LIMITS, SECRET, diary_entries
from tests.faults.verdict import Evidence, judge

ROOT = Path(__file__).resolve().parents[3]
COMMAND = Path(sys.executable).parent / "insika"
LEASE_S = 15.0
SHORT_LEASE = {"INSIKA_LEASE_S": "2"}
"""For tests that wait for one to run out. A busy machine may then lose others, which must cost nothing but time."""


@dataclass(frozen=True, slots=True)
class Services:
    """Where they are, and the console of the RabbitMQ that `amqp` leads to."""

    database: str
    amqp: str
    redis: str
    console: RabbitConsole


@dataclass
class Cluster:
    """`received`: what the receiver, at `url`, has accepted. Environment variables for all processes are set by
    `variables`, for one where it is started."""

    folder: Path
    services: Services
    url: str
    received: Sequence[Received]
    variables: dict[str, str] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gates = gates_of(self.folder)
        self.tables = Tables(self.services.database)
        self.queues = Queues(self.services.amqp, self.services.console)
        self.configure()

    def configure(
        self,
        agents: Mapping[str, Mapping[str, Any]] | None = None,
        asks: Mapping[str, Sequence[str]] | None = None,
        **channel: Any,
    ) -> None:
        """Agents by their limits, beside those of the shop, and by the tools that a person must approve; and what else
        to say of the channel. Before any process is started."""
        profiles = self.folder / "agents"
        profiles.mkdir(exist_ok=True)
        for name, limits in {**LIMITS, **(agents or {})}.items():
            profile = self.profile(name, limits=dict(limits))
            if asks and name in asks:
                profile["approvals_required"] = list(asks[name])
            (profiles / f"{name}.yaml").write_text(yaml.safe_dump(profile))
        web = {"id": CHANNEL, "url": self.url, "secret": SECRET, **channel}
        (self.folder / "settings.yaml").write_text(yaml.safe_dump({"channels": [web]}))

    def profile(self, name: str, **said: Any) -> dict[str, Any]:
        """What `configure` says of an agent, and more."""
        return {"id": name, "model": "offline/shop", "instructions": "You keep a shop.", **said}

    def start(
        self,
        role: str,
        name: str = "",
        *,
        composed: Mapping[str, Any] | None = None,
        barred: bool = False,
        **variables: Any,
    ) -> Member:
        """`insika ROLE`; or, with `composed`, the same with other parts; or, `barred`, a worker with a barrier in its
        way."""
        command = [str(COMMAND), role]
        if composed is not None:
            command = [sys.executable, "-m", "tests.faults.cluster.composed", role, json.dumps(composed)]
        if barred:
            command = [sys.executable, "-m", "tests.faults.cluster.barrier"]
        name = name or f"{role}-{len(self.members) + 1}"
        member = Member(name, command, self._seen(variables), self.folder)
        self.members.append(member)
        return member

    async def run(self, *roles: str) -> list[Member]:
        """One process for each, once all of them work."""
        started = [self.start(role) for role in roles]
        return [await member.ready() for member in started]

    def insika(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command, to its end."""
        return subprocess.run(
            [str(COMMAND), *arguments],
            cwd=self.folder,
            env=dict(self._seen({})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    async def publish(self, *jobs: Mapping[str, Any]) -> None:
        """In this order, each confirmed."""
        async with AsyncProducer(self.services.amqp) as producer:
            await asyncio.gather(*(producer.send(**job) for job in jobs))

    def diary(self, kind: str = "tool", **facts: Any) -> list[Row]:
        """What was written down by tools and models, in order."""
        entries: Iterator[Row] = diary_entries(self.folder, kind)
        return [entry for entry in entries if all(entry.get(name) == value for name, value in facts.items())]

    async def begun(self, tool: str, count: int = 1, **facts: Any) -> list[Row]:
        """The runs of a tool, once there are so many."""

        def look() -> list[Row]:
            runs = self.diary(tool=tool, **facts)
            return runs if len(runs) >= count else []

        return await until(look, f"{count} runs of {tool}", lambda: (len(self.diary(tool=tool)), self._not_at_rest()))

    def session(self, name: str) -> Row:
        """The session's row. There must be one."""
        (row,) = self.tables.of("SELECT * FROM sessions WHERE name = %s", name)
        return row

    def turns(self, name: str) -> list[Row]:
        """A session's turns, in the order in which they were made known."""
        statement = (
            "SELECT t.* FROM turns AS t JOIN sessions AS s ON s.id = t.session_id WHERE s.name = %s ORDER BY number"
        )
        return self.tables.of(statement, name)

    async def events(self, type: str = "") -> list[Event]:
        """What the processes have told of this kind ("" is of every kind), of all that Redis has kept."""
        async with RedisCoordination(self.services.redis, SystemClock()) as coordination:
            events = await coordination.events.since(0, limit=100_000)
        return [event for event in events if type in ("", event.type)]

    async def settles(self, mailed: int) -> None:
        """Until so many messages have been accepted, and nothing waits, runs, is owned or is to be delivered."""

        def look() -> bool:
            return self.tables.value("SELECT count(*) FROM mailbox") >= mailed and not self._not_at_rest()

        await until(look, f"{mailed} messages to be at rest", self._not_at_rest)

    def evidence(self) -> Evidence:
        return self.tables.evidence(self.folder, self.received)

    def judge(
        self, jobs: Sequence[Mapping[str, Any]], *, gone: int = 0, failures: Sequence[str] = (), counted: int = 0
    ) -> Evidence:
        """As `verdict.judge`, on everything there is by now."""
        evidence = self.evidence()
        judge(evidence, jobs, gone=gone, failures=failures, counted=counted)
        return evidence

    def end(self) -> None:
        for member in self.members:
            member.end()
        self.tables.close()

    def _not_at_rest(self) -> list[Row]:
        return self.tables.of(NOT_AT_REST)

    def _seen(self, variables: Mapping[str, Any]) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("INSIKA_")}
        ours = {
            "PYTHONPATH": str(ROOT),
            FOLDER: str(self.folder),
            "INSIKA_DATABASE_URL": self.services.database,
            "INSIKA_AMQP_URL": self.services.amqp,
            "INSIKA_REDIS_URL": self.services.redis,
            "INSIKA_TOOLS": "tests.faults.cluster.workshop",
            "INSIKA_AGENTS_DIR": str(self.folder / "agents"),
            "INSIKA_SETTINGS": str(self.folder / "settings.yaml"),
            "INSIKA_EGRESS_ALLOW_HTTP": "true",
            "INSIKA_EGRESS_ALLOW_PRIVATE": "true",
            "INSIKA_LEASE_S": str(LEASE_S),
        }
        return {**kept, **ours, **self.variables, **{name: str(value) for name, value in variables.items()}}
