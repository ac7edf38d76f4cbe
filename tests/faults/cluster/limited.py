"""Agents with limits in a cluster, and the fake vendor that its workers ask for their models.

The vendor runs in the process of the test, so what it was asked and what it charged is the test's to see; what workers
have booked is in the tables.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import yaml

from insika.limits.budgets import Calendar
from insika.providers.script import Script
from insika.storage.postgres.store import PostgresStore
from tests.faults.cluster.barrier import BARRIER
from tests.faults.cluster.cluster import LEASE_S, Cluster
from tests.faults.cluster.member import until
from tests.faults.cluster.tables import Row
from tests.faults.shop import CHANNEL, SECRET
from tests.vendors import AnthropicVendor, OpenAIVendor, Seen, Vendor, serving

CLAUDE, GPT = "anthropic/claude-sonnet-4-5", "openai/gpt-4o"
Usage = tuple[int, int, int, int]


@asynccontextmanager
async def claude(cluster: Cluster, script: Script, cache_minimum: int | None = None) -> AsyncIterator[Vendor]:
    """Anthropic, as workers that are started from now on know it."""
    async with serving(AnthropicVendor(script, cache_minimum=cache_minimum)) as vendor:
        cluster.variables |= {"ANTHROPIC_API_KEY": vendor.key, "ANTHROPIC_BASE_URL": vendor.base_url}
        yield vendor


@asynccontextmanager
async def gpt(cluster: Cluster, script: Script, cache_minimum: int | None = None) -> AsyncIterator[Vendor]:
    """OpenAI, likewise."""
    async with serving(OpenAIVendor(script, cache_minimum=cache_minimum)) as vendor:
        cluster.variables |= {"OPENAI_API_KEY": vendor.key, "OPENAI_BASE_URL": vendor.base_url}
        yield vendor


def said(session: str, id: str, text: str, agent: str, **fields: Any) -> Mapping[str, Any]:
    """A job whose answer is delivered nowhere, unless `fields` name a channel."""
    return {"session": session, "id": id, "text": text, "agent": agent, **fields}


def configure(cluster: Cluster, agents: Mapping[str, Mapping[str, Any]], **settings: Any) -> None:
    """These agents and no others, by what their profiles say beyond the shop's; and what settings say beyond its
    channel. Before any process is started."""
    folder = cluster.folder / "agents"
    shutil.rmtree(folder)
    folder.mkdir()
    for name, said in agents.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(cluster.profile(name, **{"model": CLAUDE, **said})))
    web = {"id": CHANNEL, "url": cluster.url, "secret": SECRET}
    (cluster.folder / "settings.yaml").write_text(yaml.safe_dump({"channels": [web], **settings}))


async def at_the_barrier(cluster: Cluster, jobs: Iterable[Mapping[str, Any]]) -> None:
    """Publish jobs of as many sessions, wait until an owner of each stands at the barrier, and let all go."""
    jobs = list(jobs)
    cluster.gates.close(BARRIER)
    begun = len(cluster.diary(BARRIER))
    await cluster.publish(*jobs)

    def waiting() -> int:
        return len({entry["session_id"] for entry in cluster.diary(BARRIER)[begun:]})

    await until(lambda: waiting() == len(jobs), f"{len(jobs)} owners at the barrier", waiting)
    cluster.gates.open(BARRIER)


def outcomes(cluster: Cluster, agent: str) -> Counter[str]:
    """How the turns of an agent have ended: the outcome of those that were answered, the error of the others."""
    found = cluster.tables.of("SELECT outcome, state, error ->> 'type' AS error FROM turns WHERE agent = %s", agent)
    return Counter(str(turn["error"] or turn["outcome"] or turn["state"]) for turn in found)


def calls(cluster: Cluster, agent: str) -> list[Row]:
    return cluster.tables.of("SELECT * FROM model_calls WHERE agent = %s ORDER BY started_at", agent)


def asked_by(cluster: Cluster, session: str) -> list[Row]:
    """The model calls of a session, in order."""
    statement = "SELECT c.* FROM model_calls AS c JOIN sessions AS s ON s.id = c.session_id WHERE s.name = %s"
    return cluster.tables.of(f"{statement} ORDER BY started_at, step, attempt", session)


def booked(row: Row) -> Usage:
    return row["input"], row["output"], row["cache_read"], row["cache_write"]


def charged(seen: Seen) -> Usage:
    return seen.usage.input, seen.usage.output, seen.usage.cache_read, seen.usage.cache_write


async def spent(cluster: Cluster, agent: str, tenant: str = "") -> int:
    """Tokens of the day, as budgets are kept by."""
    calendar = Calendar.of(datetime.fromtimestamp(cluster.tables.now() / 1_000_000, UTC))
    store = PostgresStore.open(cluster.services.database, lease_s=LEASE_S)
    try:
        return (await store.spend(tenant, agent, calendar.day, calendar.month)).day
    finally:
        await store.close()


def alerts(cluster: Cluster, type: str = "") -> list[Row]:
    """Those in the outbox, of this kind ("" is of every kind)."""
    return cluster.tables.of(
        "SELECT *, payload ->> 'type' AS type FROM outbox WHERE kind = 'alert' AND %s IN ('', payload ->> 'type')", type
    )
