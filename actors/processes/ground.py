"""What every process of a cluster stands on: its store, what it knows of the configuration, and the ways in which it
hears of the others.

Opened in the order in which things are needed, and closed in the opposite one; nothing is decided here. Only the
database and RabbitMQ are needed to begin. Redis may be away from the start: then signals and events stay within this
process, and that is said.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog

from actors.broker.errors import BrokerAway
from actors.broker.hints import Hints
from actors.broker.preflight import require_broker
from actors.configuration import Configuration, Objections, no_objections
from actors.environment import Environment
from actors.parts import Parts
from actors.processes.preflight import PATIENCE_S, sleeping_until, wait_for
from actors.references import log_what_is_missing
from actors.stores import Stores, open_stores
from actors.tool_set import ToolSet, tool_set
from insika.coordination.local import local_coordination
from insika.coordination.port import Coordination
from insika.coordination.redis.coordination import RedisCoordination
from insika.errors import InvalidConfiguration
from insika.storage.port import StoreUnavailable

_log = structlog.get_logger("insika.process")


@dataclass(frozen=True, slots=True)
class Ground:
    """`amqp_url` is what the environment names; `hints` reach the other processes by it."""

    environment: Environment
    parts: Parts
    amqp_url: str
    stores: Stores
    configuration: Configuration
    tools: ToolSet
    coordination: Coordination
    hints: Hints


@asynccontextmanager
async def prepared(
    environment: Environment,
    parts: Parts,
    process: str,
    stop: asyncio.Event,
    *,
    patience_s: float = PATIENCE_S,
) -> AsyncIterator[Ground]:
    """The ground under `process`, once the services that it needs are there.

    Raises NotReady when one is not within `patience_s` seconds, and ToldToStop when `stop` is set before that;
    NotMigrated or SchemaMismatch for a database that is not this version's, DatabaseRefuses or BrokerRefuses for a
    wrong password and the like, InvalidConfiguration for a wrong environment or settings, QueueDiffers for a queue that
    is declared otherwise."""
    if environment.amqp_url is None:
        raise InvalidConfiguration(
            "the environment", [("INSIKA_AMQP_URL", f"must name RabbitMQ: `insika {process}` works with others")]
        )
    amqp_url = environment.amqp_url.get_secret_value()
    database = f"the database {environment.database_shown}"
    wait = functools.partial(wait_for, patience_s=patience_s, sleep=sleeping_until(stop))
    tools, runs_turns = tool_set(environment, parts), process == "worker"
    objections = tools.problems if runs_turns else no_objections
    async with AsyncExitStack() as resources:
        stores = await wait(database, lambda: open_stores(environment, parts.clock), StoreUnavailable)
        resources.push_async_callback(stores.close)
        await wait("RabbitMQ", lambda: require_broker(amqp_url, environment.queue_type), BrokerAway)
        # It may have gone away again since it was opened.
        configuration = await wait(database, lambda: _configured(environment, stores, objections), StoreUnavailable)
        coordination = await resources.enter_async_context(_coordination(environment, parts))
        hints = resources.enter_context(Hints(amqp_url))
        log_what_is_missing(configuration, parts, tools, runs_turns=runs_turns)
        yield Ground(environment, parts, amqp_url, stores, configuration, tools, coordination, hints)


async def _configured(environment: Environment, stores: Stores, objections: Objections) -> Configuration:
    """Who runs no turns may have other tools than those who do, and leaves objections to them."""
    configuration = Configuration(stores.store, objections)
    await configuration.apply_files(environment.settings, environment.agents_dir)
    await configuration.refresh()
    return configuration


@asynccontextmanager
async def _coordination(environment: Environment, parts: Parts) -> AsyncIterator[Coordination]:
    if environment.redis_url is None:
        _log.warning("no_redis", reason="INSIKA_REDIS_URL is not set: signals and events stay within each process")
        yield local_coordination(parts.clock)
        return
    async with RedisCoordination(environment.redis_url.get_secret_value(), parts.clock) as coordination:
        yield coordination
