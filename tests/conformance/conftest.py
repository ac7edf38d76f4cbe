"""The stores that must pass the suite. It asks them only through the port; `peek` is for rows that no port shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import postgres_here, sqlite_here
from tests.outbox_world import OutboxWorld, postgres_outbox, sqlite_outbox
from tests.store_world import World


@pytest.fixture
async def sqlite_world(tmp_path: Path) -> AsyncIterator[World]:
    async with sqlite_here.sqlite_world(tmp_path) as world:
        yield world


@pytest.fixture(scope="session")
def migrated_postgres_url(postgres_url: str) -> str:
    """A database with the tables, and a clock that stands still."""
    postgres_here.prepare(postgres_url)
    return postgres_url


@pytest.fixture
async def postgres_world(migrated_postgres_url: str) -> AsyncIterator[World]:
    async with postgres_here.postgres_world(migrated_postgres_url) as world:
        yield world


@pytest.fixture(params=["postgres", "sqlite"])
def world(request: pytest.FixtureRequest) -> World:
    ready: World = request.getfixturevalue(f"{request.param}_world")
    return ready


@pytest.fixture(params=["postgres", "sqlite"])
async def outbox(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OutboxWorld]:
    on_postgres = request.param == "postgres"
    url = request.getfixturevalue("migrated_postgres_url") if on_postgres else ""
    async with postgres_outbox(url) if on_postgres else sqlite_outbox(tmp_path) as opened:
        yield opened
