"""Opens the database that the environment names. Only this file knows which dialects there are.

What speaks a dialect is imported where it is used, so that a process on SQLite need not load a PostgreSQL client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from actors.environment import Environment
from insika.clock import Clock
from insika.storage.inspection import Inspection
from insika.storage.migrate import Migration
from insika.storage.port import Store
from outbox.store import OutboxStore


@dataclass(frozen=True, slots=True)
class Stores:
    """One database, by its two ports. `close` closes both."""

    store: Store
    outbox: OutboxStore

    async def close(self) -> None:
        await self.store.close()


async def open_stores(environment: Environment, clock: Clock) -> Stores:
    """Raises NotMigrated, SchemaMismatch, DatabaseRefuses or StoreUnavailable. `clock` is what SQLite answers for the
    time; PostgreSQL has its own."""
    if environment.on_postgres:
        from insika.storage.postgres.store import PostgresStore
        from outbox.postgres_store import PostgresOutboxStore

        url, lease_s = environment.database_url.get_secret_value(), environment.lease_s
        postgres = await asyncio.to_thread(PostgresStore.open, url, lease_s=lease_s)
        return Stores(postgres, PostgresOutboxStore(postgres.database))
    from insika.storage.sqlite.store import SqliteStore
    from outbox.sqlite_store import SqliteOutboxStore

    sqlite = SqliteStore.open(environment.database_file, clock.now)
    return Stores(sqlite, SqliteOutboxStore(sqlite.database))


async def migrate_database(environment: Environment, clock: Clock) -> tuple[Migration, ...]:
    """Bring the database up to date. Answers what was applied. Raises SchemaMismatch or StoreUnavailable."""
    if environment.on_postgres:
        from insika.storage.postgres import schema as postgres

        return await asyncio.to_thread(postgres.migrate, environment.database_url.get_secret_value())
    from insika.storage.sqlite import schema as sqlite

    return await asyncio.to_thread(sqlite.migrate, environment.database_file, clock.now)


async def pending_migrations(environment: Environment) -> tuple[Migration, ...]:
    """What `migrate_database` would apply."""
    if environment.on_postgres:
        from insika.storage.postgres import schema as postgres

        return await asyncio.to_thread(postgres.pending_migrations, environment.database_url.get_secret_value())
    from insika.storage.sqlite import schema as sqlite

    return await asyncio.to_thread(sqlite.pending_migrations, environment.database_file)


def inspect_database(environment: Environment, clock: Clock, *, late_s: float, answer_s: float) -> Inspection:
    """What a diagnosis wants to know of it; nothing is changed. `late_s`: from when on something in it counts as late.
    Blocks, `answer_s` for each statement, and longer where a server does not even answer. Raises StoreUnavailable."""
    if environment.on_postgres:
        from insika.storage.postgres import inspection as postgres

        url = environment.database_url.get_secret_value()
        return postgres.inspect(url, clock.now, late_s=late_s, answer_s=answer_s)
    from insika.storage.sqlite import inspection as sqlite

    return sqlite.inspect(environment.database_file, clock.now, late_s=late_s, answer_s=answer_s)
