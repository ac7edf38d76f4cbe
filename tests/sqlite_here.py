"""A store in a file of its own, under a clock that stands still."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from insika.clock import ManualClock
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import Rows, World


@asynccontextmanager
async def sqlite_world(folder: Path) -> AsyncIterator[World]:
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
