"""A migrated PostgreSQL database whose clock stands still until the test moves it.

`insika_now()` is replaced by one that reads a table, and `DatabaseClock` writes that table whenever it is moved. A
connection that was opened with `-c insika.gate=1` waits in `insika_now()` for as long as somebody holds the gate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg

from insika.clock import ManualClock
from insika.storage.postgres.schema import migrate
from insika.storage.postgres.store import PostgresStore
from tests.store_world import LEASE_S, TABLES, Rows, World

GATE = 4711
"""The key of the advisory lock that is the gate."""

_CLOCK = f"""
CREATE TABLE IF NOT EXISTS test_clock (now timestamptz NOT NULL);
CREATE OR REPLACE FUNCTION insika_now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF current_setting('insika.gate', true) = '1' THEN
    PERFORM pg_advisory_xact_lock_shared({GATE});
  END IF;
  RETURN (SELECT now FROM test_clock);
END $$;
"""


class DatabaseClock(ManualClock):
    """Moves the database's clock too. Holds a connection of its own; close it."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self._tell()

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._tell()

    def jump(self, seconds: float) -> None:
        super().jump(seconds)
        self._tell()

    def close(self) -> None:
        self._connection.close()

    def _tell(self) -> None:
        now: datetime = self.now()
        self._connection.execute("UPDATE test_clock SET now = %s", (now,))


def prepare(url: str) -> None:
    """Migrate the database, and give it the clock that stands still."""
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_CLOCK)
        connection.execute("TRUNCATE test_clock")
        connection.execute("INSERT INTO test_clock VALUES ('epoch')")


def empty(url: str) -> None:
    """Every row of every table goes, and numbers begin anew."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY CASCADE")


@asynccontextmanager
async def postgres_world(url: str) -> AsyncIterator[World]:
    """A store in a database that is prepared. It is emptied first."""
    empty(url)
    clock = DatabaseClock(url)
    store = PostgresStore.open(url, lease_s=LEASE_S)

    async def peek(statement: str) -> Rows:
        rows = await store.database.rows(f"SELECT to_json(seen_row) FROM ({statement}) AS seen_row", {})
        return [_as_sqlite_tells(row) for (row,) in rows]

    yield World(store, clock, peek)
    await store.close()
    clock.close()


def _as_sqlite_tells(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: int(value) if isinstance(value, bool) else value for name, value in row.items()}
