"""Migrations as SQLite applies them: each in a transaction of its own, with its number and checksum.

Two processes may migrate at once: the write lock is taken before it is decided what is pending.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from insika.clock import SystemClock
from insika.storage.migrate import Migration, NotMigrated, available, pending
from insika.storage.port import StoreUnavailable
from insika.storage.sqlite.connection import Now, begin_write, connect

_LOCK_TIMEOUT_S = 30.0
_RECORD = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT"""


def migrate(path: str | Path, now: Now, *, migrations: Sequence[Migration] | None = None) -> tuple[Migration, ...]:
    """Bring the file up to date, creating it if need be. Answers what was applied.

    Raises SchemaMismatch when it was migrated by other code, StoreUnavailable when it cannot be used."""
    path = Path(path)
    have = available("sqlite") if migrations is None else migrations
    try:
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"cannot create the database {path}: {error.strerror}") from error
    connection = connect(path, now, busy_timeout_s=_LOCK_TIMEOUT_S)
    applied: list[Migration] = []
    try:
        while (migration := _apply_next(connection, have)) is not None:
            applied.append(migration)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot migrate the database {path}: {error}") from error
    finally:
        connection.close()
    return tuple(applied)


def pending_migrations(path: str | Path) -> tuple[Migration, ...]:
    """What `migrate` would apply; all of it for a file that does not exist. Raises as `migrate` does."""
    path = Path(path)
    if not path.exists():
        return available("sqlite")
    connection = connect(path, SystemClock().now, busy_timeout_s=_LOCK_TIMEOUT_S, query_only=True)
    try:
        return pending(available("sqlite"), _applied(connection))
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot read the database {path}: {error}") from error
    finally:
        connection.close()


def require_current_schema(path: Path) -> None:
    """Raises NotMigrated when something is pending, SchemaMismatch when the file was migrated by other code."""
    if not path.exists():
        raise NotMigrated(f"there is no database {path} here; set INSIKA_DATABASE_URL or run: insika migrate")
    if missing := pending_migrations(path):
        names = ", ".join(f"{migration.number:04d}_{migration.name}" for migration in missing)
        raise NotMigrated(f"the database {path} is not up to date (pending: {names}). Run: insika migrate")


def _apply_next(connection: sqlite3.Connection, have: Sequence[Migration]) -> Migration | None:
    begin_write(connection, _LOCK_TIMEOUT_S)
    try:
        connection.execute(_RECORD)
        migration = next(iter(pending(have, _applied(connection))), None)
        if migration is not None:
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, insika_now())",
                (migration.number, migration.name, migration.checksum),
            )
        connection.execute("COMMIT")
        return migration
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _applied(connection: sqlite3.Connection) -> dict[int, str]:
    known = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'")
    if known.fetchone() is None:
        return {}
    return dict(connection.execute("SELECT number, checksum FROM schema_migrations"))


def _statements(script: str) -> Iterator[str]:
    """The script's statements one by one: executescript would commit what was begun."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
