"""Migrations on PostgreSQL: in order, once, by checksum, safe when two processes migrate, and on no other server."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from insika.errors import InvalidConfiguration
from insika.storage.migrate import Migration, NotMigrated, SchemaMismatch, available
from insika.storage.port import StoreUnavailable
from insika.storage.postgres import schema
from insika.storage.postgres.errors import DatabaseRefuses
from insika.storage.postgres.schema import migrate, pending_migrations, require_current_schema
from insika.storage.postgres.store import PostgresStore
from scripts.private_services.postgres import PostgresServer


def made(number: int, sql: str) -> Migration:
    return Migration(number, f"number_{number}", sql, hashlib.sha256(sql.encode()).hexdigest())


ONE = made(1, "CREATE TABLE one (a text);\n")
TWO = made(2, "CREATE TABLE two (b text);\nINSERT INTO two VALUES ('x;y 100%');\nSELECT pg_sleep(0.05);\n")


def tables(url: str) -> set[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows} - {"numbers", "schema_migrations"}


def test_pending_ones_are_applied_in_order_and_once(database: str) -> None:
    assert migrate(database, migrations=[ONE]) == (ONE,)
    assert migrate(database, migrations=[ONE, TWO]) == (TWO,)
    assert migrate(database, migrations=[ONE, TWO]) == ()
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT b FROM two").fetchall() == [("x;y 100%",)]
        recorded = connection.execute("SELECT number, name, checksum FROM schema_migrations ORDER BY number").fetchall()
    assert recorded == [(1, "number_1", ONE.checksum), (2, "number_2", TWO.checksum)]


def test_a_migration_that_fails_leaves_nothing_of_itself(database: str) -> None:
    broken = made(2, "CREATE TABLE two (b text);\nCREATE TABLE one (a text);\n")
    with pytest.raises(StoreUnavailable, match="already exists"):
        migrate(database, migrations=[ONE, broken])
    assert tables(database) == {"one"}
    assert migrate(database, migrations=[ONE, TWO]) == (TWO,)


def test_a_migration_that_was_edited_after_it_was_applied_is_refused(database: str) -> None:
    migrate(database, migrations=[ONE])
    with pytest.raises(SchemaMismatch, match="0001_number_1 was edited"):
        migrate(database, migrations=[made(1, "CREATE TABLE one (b text);\n"), TWO])
    assert tables(database) == {"one"}


def test_a_database_that_is_newer_than_the_code_is_refused(database: str) -> None:
    migrate(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (9999, 'from_the_future', 'x', now())")
    for attempt in (
        migrate,
        pending_migrations,
        require_current_schema,
        lambda url: PostgresStore.open(url, lease_s=9),
    ):
        with pytest.raises(SchemaMismatch, match=r"9999.*newer"):
            attempt(database)


def test_a_store_on_a_database_that_was_not_migrated_says_what_to_do(database: str) -> None:
    with pytest.raises(NotMigrated, match="insika migrate"):
        PostgresStore.open(database, lease_s=9)
    assert pending_migrations(database) == available("postgres")
    assert migrate(database) == available("postgres")
    assert pending_migrations(database) == ()
    PostgresStore.open(database, lease_s=9)


def test_what_comes_with_the_package_is_numbered_without_gaps() -> None:
    assert [migration.number for migration in available("postgres")] == list(range(1, len(available("postgres")) + 1))


def test_many_that_migrate_at_once_apply_each_migration_once(server: PostgresServer) -> None:
    for _ in range(5):
        url = server.create_database(f"faults_{uuid.uuid4().hex[:12]}")
        start = threading.Barrier(6)

        def one_of_them(url: str = url, start: threading.Barrier = start) -> Sequence[Migration]:
            start.wait()
            return migrate(url, migrations=[ONE, TWO])

        with ThreadPoolExecutor(6) as pool:
            applied = [one for done in [pool.submit(one_of_them) for _ in range(6)] for one in done.result()]
        assert sorted(migration.number for migration in applied) == [1, 2]


def test_a_database_that_is_not_utf_8_is_refused(server: PostgresServer) -> None:
    name = f"faults_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(InvalidConfiguration, match="SQL_ASCII"):
        migrate(server.url_of(name))
    assert tables(server.url_of(name)) == set()


def test_a_server_that_is_too_old_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST_SERVER", 999)
    for attempt in (migrate, pending_migrations, require_current_schema):
        with pytest.raises(InvalidConfiguration, match="too old; 999 or newer"):
            attempt(database)


def test_a_server_that_is_not_there_is_waited_for_and_a_database_that_does_not_exist_is_not(
    server: PostgresServer,
) -> None:
    nowhere = server.url_of("nowhere").replace("postgres@", "postgres:hush@")
    for url, error in (("postgresql://me:hush@127.0.0.1:1/x", StoreUnavailable), (nowhere, DatabaseRefuses)):
        for attempt in (migrate, pending_migrations, require_current_schema):
            with pytest.raises(error) as refused:
                attempt(url)
            assert "hush" not in str(refused.value)


def test_a_url_that_cannot_be_read_is_told_without_its_password() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be read") as refused:
        migrate("postgresql://me:hush@127.0.0.1/x?no_such_parameter=1")
    assert "hush" not in str(refused.value)
