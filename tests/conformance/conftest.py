"""The stores that must pass the suite. It asks them only through the port; `peek` is for rows that no port shows."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from insika.clock import ManualClock
from insika.storage.postgres.store import PostgresStore
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests import postgres_here
from tests.store_world import LEASE_S, Rows, World


@pytest.fixture
async def sqlite_world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    migrate(tmp_path / "insika.db", clock.now)
    store = SqliteStore.open(tmp_path / "insika.db", clock.now)

    async def peek(statement: str) -> Rows:
        def rows(connection: sqlite3.Connection) -> Rows:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        return await store.database.read(rows)

    yield World(store, clock, peek)
    await store.close()


@pytest.fixture(scope="session")
def migrated_postgres_url(postgres_url: str) -> str:
    """A database with the tables, and a clock that stands still."""
    postgres_here.prepare(postgres_url)
    return postgres_url


@pytest.fixture
async def postgres_world(migrated_postgres_url: str) -> AsyncIterator[World]:
    postgres_here.empty(migrated_postgres_url)
    clock = postgres_here.DatabaseClock(migrated_postgres_url)
    store = PostgresStore.open(migrated_postgres_url, lease_s=LEASE_S)

    async def peek(statement: str) -> Rows:
        rows = await store.database.rows(f"SELECT to_json(asked) FROM ({statement}) AS asked", {})
        return [_as_sqlite_tells(row) for (row,) in rows]

    yield World(store, clock, peek)
    await store.close()
    clock.close()


@pytest.fixture(params=["postgres", "sqlite"])
def world(request: pytest.FixtureRequest) -> World:
    ready: World = request.getfixturevalue(f"{request.param}_world")
    return ready


def _as_sqlite_tells(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: int(value) if isinstance(value, bool) else value for name, value in row.items()}
