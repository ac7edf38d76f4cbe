"""The stores that must pass the suite. It asks them only through the port; `peek` is for rows that no port shows."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from insika.clock import ManualClock
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import Rows, World


async def _sqlite(folder: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    migrate(folder / "insika.db", clock.now)
    store = SqliteStore.open(folder / "insika.db", clock.now)

    async def peek(statement: str) -> Rows:
        def rows(connection: sqlite3.Connection) -> Rows:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        return await store.database.read(rows)

    yield World(store, clock, peek)
    await store.close()


_STORES = {"sqlite": _sqlite}


@pytest.fixture(params=sorted(_STORES))
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async for ready in _STORES[request.param](tmp_path):
        yield ready
