"""The lease machine over the store on SQLite."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from insika.storage.sqlite.store import SqliteStore
from tests.lease_machine import LeaseMachine
from tests.sqlite_here import sqlite_world
from tests.store_world import TABLES, World


@asynccontextmanager
async def in_a_folder() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        async with sqlite_world(Path(folder)) as world:
            yield world


class SqliteLeaseMachine(LeaseMachine):
    def open_world(self) -> AbstractAsyncContextManager[World]:
        return in_a_folder()

    def dump(self) -> Any:
        assert isinstance(self.store, SqliteStore)
        return self.store.database.read_sync(
            lambda connection: [sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES]
        )


TestLeaseMachine = SqliteLeaseMachine.TestCase
