"""Migrations as PostgreSQL applies them: each in a transaction of its own, with its number and checksum.

Two processes may migrate at once: one waits for the other's lock before it decides what is pending.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import Connection

from insika.errors import InvalidConfiguration
from insika.storage.migrate import Migration, NotMigrated, available, pending
from insika.storage.port import StoreUnavailable
from insika.storage.postgres.connection import Bounds, adapt, parameters
from insika.storage.postgres.errors import DatabaseRefuses, told, what_to_do

OLDEST_SERVER = 15

_LOCK_S = 60.0
_MIGRATION_MAX_S = 24 * 3600.0
_LOCK = 0x696E73696B61
"""The key of the advisory lock: "insika" in ASCII."""
_RECORD = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number     integer     PRIMARY KEY,
  name       text        NOT NULL,
  checksum   text        NOT NULL,
  applied_at timestamptz NOT NULL
)"""


def migrate(url: str, *, migrations: Sequence[Migration] | None = None) -> tuple[Migration, ...]:
    """Bring the database, which must exist, up to date. Answers what was applied.

    Raises SchemaMismatch when it was migrated by other code, InvalidConfiguration when the server is too old or the
    database is not UTF-8, DatabaseRefuses for a wrong password and the like, StoreUnavailable when it cannot be used
    now."""
    have = available("postgres") if migrations is None else migrations
    applied: list[Migration] = []
    with _connected(url, "migrate") as connection:
        while (migration := _apply_next(connection, have)) is not None:
            applied.append(migration)
    return tuple(applied)


def pending_migrations(url: str) -> tuple[Migration, ...]:
    """What `migrate` would apply. Raises as `migrate` does."""
    with _connected(url, "read") as connection:
        return unapplied(connection)


def unapplied(connection: Connection) -> tuple[Migration, ...]:
    """What this connection's database lacks. Raises SchemaMismatch, and what psycopg raises."""
    return pending(available("postgres"), _applied(connection))


def require_current_schema(url: str) -> None:
    """Raises NotMigrated when something is pending, SchemaMismatch when the database was migrated by other code; and
    as `migrate` does."""
    with _connected(url, "read") as connection:
        name = connection.info.dbname
        missing = unapplied(connection)
    if missing:
        names = ", ".join(f"{migration.number:04d}_{migration.name}" for migration in missing)
        raise NotMigrated(f"the database {name} is not up to date (pending: {names}). Run: insika migrate")


@contextmanager
def _connected(url: str, purpose: str) -> Iterator[Connection]:
    """`purpose` is what cannot be done when there is an error: migrate, or read."""
    bounds = Bounds(lock_s=_LOCK_S, statement_s=_MIGRATION_MAX_S, answer_s=_LOCK_S, connect_s=5, wait_s=0)
    known = parameters(url, bounds, "insika migrate")
    try:
        with psycopg.connect(**known, autocommit=True, prepare_threshold=None) as connection:
            adapt(connection)
            _require_server(connection)
            yield connection
    except psycopg.Error as error:
        where = f"the database {known.get('dbname', '')}".rstrip()
        why = f"cannot {purpose} {where}: {told(error)}"
        if (remedy := what_to_do(error)) is not None:
            raise DatabaseRefuses(f"{why}. {remedy}") from None
        raise StoreUnavailable(why) from None


def _require_server(connection: Connection) -> None:
    problems = []
    if connection.info.server_version < OLDEST_SERVER * 10_000:
        version = connection.info.parameter_status("server_version")
        problems.append(("server_version", f"PostgreSQL {version} is too old; {OLDEST_SERVER} or newer is needed"))
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        remedy = "create it anew with ENCODING 'UTF8'"
        problems.append(("server_encoding", f"is {encoding}, and must be UTF8, or texts would be lost: {remedy}"))
    if problems:
        raise InvalidConfiguration(f"the database {connection.info.dbname}", problems)


def _apply_next(connection: Connection, have: Sequence[Migration]) -> Migration | None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_RECORD)
        migration = next(iter(pending(have, _applied(connection))), None)
        if migration is not None:
            connection.execute(migration.sql.encode())
            connection.execute(
                "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (%s, %s, %s, now())",
                (migration.number, migration.name, migration.checksum),
            )
    return migration


def _applied(connection: Connection) -> dict[int, str]:
    (known,) = connection.execute("SELECT to_regclass('schema_migrations') IS NOT NULL").fetchone() or (False,)
    if not known:
        return {}
    return dict(connection.execute("SELECT number, checksum FROM schema_migrations").fetchall())
