"""How a command runs: the log is set up, the environment read, and the store open for as long as it is needed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from actors.cli.telling import telling
from actors.configuration import Configuration
from actors.control import Control
from actors.environment import Environment, read_environment, unknown_variables
from actors.ingress import Ingress
from actors.logs import configure_logging
from actors.stores import Stores, open_stores
from insika.clock import SystemClock
from insika.crash_points import no_crash
from insika.storage.port import Store

T = TypeVar("T")

GRACE_S = 1.0
"""Seconds that a cancelled task has to clean up before the process ends without it."""
_WARNED = "insika.environment_warned_of"


def environment_here() -> Environment:
    """What the environment says; of a variable that nobody reads, once a command, a warning on standard error. Raises
    InvalidConfiguration."""
    told = click.get_current_context().find_root().meta
    if not told.get(_WARNED):
        told[_WARNED] = True
        for name, why in unknown_variables(os.environ):
            click.echo(f"Warning: {name} {why}", err=True)
    return read_environment()


def run(main: Coroutine[Any, Any, T], *, log_level: str = "error") -> T:
    """Run a command's work to its end, logging from `log_level` on unless the user chose another. Raises what it
    raises."""
    configure_logging(click.get_current_context().obj or log_level)
    return asyncio.run(main)


async def leave_nothing_running(exit_code: int) -> int:
    """For the end of a process that ran tools: a task that will not be cancelled must not keep it from ending, which
    the loop would wait for without a limit. All that counts is in the store by now. Answers `exit_code`."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others and (await asyncio.wait(others, timeout=GRACE_S))[1]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    return exit_code


@asynccontextmanager
async def open_database(environment: Environment | None = None) -> AsyncIterator[Stores]:
    """The database that the environment names. Raises NotMigrated, SchemaMismatch, StoreUnavailable or
    InvalidConfiguration."""
    stores = await open_stores(environment or environment_here(), SystemClock())
    try:
        yield stores
    finally:
        await stores.close()


@asynccontextmanager
async def open_store(environment: Environment | None = None) -> AsyncIterator[Store]:
    """As `open_database`, for who needs nothing of the outbox."""
    async with open_database(environment) as stores:
        yield stores.store


@dataclass(frozen=True, slots=True)
class Door:
    """What a command needs that hands in jobs."""

    store: Store
    ingress: Ingress


@asynccontextmanager
async def open_door() -> AsyncIterator[Door]:
    """The way in for jobs, with the configuration read as at any boot; the processes of a cluster are told of what goes
    through it. Raises as `open_store` does."""
    environment = environment_here()
    async with open_store(environment) as store, telling(environment) as told:
        configuration = Configuration(store)
        await configuration.apply_files(environment.settings, environment.agents_dir)
        await configuration.refresh()
        ingress = Ingress(
            store,
            configuration,
            events=told.events,
            clock=SystemClock(),
            wakes=told.wakes,
            signals=told.signals,
            crash=no_crash,
        )
        yield Door(store, ingress)


@dataclass(frozen=True, slots=True)
class Desk:
    """What a command needs that asks something of sessions which exist."""

    store: Store
    control: Control


@asynccontextmanager
async def open_desk() -> AsyncIterator[Desk]:
    """The processes of a cluster are told of what is asked. Raises as `open_store` does."""
    environment = environment_here()
    async with open_store(environment) as store, telling(environment) as told:
        yield Desk(store, Control(store, told.wakes, told.signals, told.events, SystemClock()))
