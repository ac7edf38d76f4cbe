"""The tables of a cluster's database, looked at over a connection of the test's own.

Values are as SQLite has them, so that one verdict serves both stores: times are whole microseconds, JSON is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import dict_row

from actors.receiver import Received
from tests.faults.shop import diary_entries
from tests.faults.verdict import NEVER_US, Evidence

Row = Mapping[str, Any]

NOT_AT_REST = """
SELECT name AS which, json_build_object('waiting', waiting, 'turn', turn_id, 'lease', lease_id, 'deaths', deaths) AS how
FROM sessions WHERE waiting > 0 OR turn_id IS NOT NULL OR lease_id IS NOT NULL
UNION ALL
SELECT id, to_json(state) FROM outbox WHERE state = 'pending' OR state = 'delivering'
"""


class Tables:
    """`of(...)` is one statement. A connection that was lost is made anew with the next one."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[Row] | None = None

    def of(self, statement: str, *values: Any) -> list[Row]:
        if self._connection is None:
            self._connection = _connected(self._url)
        try:
            return self._connection.execute(statement, values).fetchall()
        except psycopg.OperationalError:
            self.close()
            raise

    def value(self, statement: str, *values: Any) -> Any:
        """The one value of the one row; None when there is no row."""
        rows = self.of(statement, *values)
        return next(iter(rows[0].values())) if rows else None

    def now(self) -> int:
        """The store's time, in microseconds."""
        return int(self.value("SELECT insika_now()"))

    def evidence(self, folder: Path, received: Sequence[Received]) -> Evidence:
        """Everything there is to know, in one snapshot of the tables."""
        tables = ("sessions", "mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")
        with _connected(self._url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.autocommit = False
            found = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
        kinds = [list(diary_entries(folder, kind)) for kind in ("tool", "request", "refused")]
        return Evidence(*found, *kinds, received)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _connected(url: str) -> psycopg.Connection[Row]:
    connection = psycopg.connect(
        url, autocommit=True, row_factory=dict_row, connect_timeout=5, options="-c TimeZone=UTC"
    )
    connection.adapters.register_loader("timestamptz", _Microseconds)
    connection.adapters.register_loader("json", _Text)
    connection.adapters.register_loader("jsonb", _Text)
    return connection


class _Microseconds(Loader):
    def load(self, data: Buffer) -> int:
        text = bytes(data).decode()
        if text.endswith("infinity"):
            return 0 if text.startswith("-") else NEVER_US
        return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


class _Text(Loader):
    def load(self, data: Buffer) -> str:
        return bytes(data).decode()
