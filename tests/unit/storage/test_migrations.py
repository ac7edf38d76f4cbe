"""Migrations: in order, once, by checksum, safe when two processes migrate; and what the tables must refuse."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from insika.clock import ManualClock
from insika.storage.migrate import Migration, NotMigrated, SchemaMismatch, available, pending
from insika.storage.port import StoreUnavailable
from insika.storage.sqlite.database import Database
from insika.storage.sqlite.schema import migrate, pending_migrations
from insika.storage.sqlite.store import SqliteStore
from tests.table_guards import ALLOWED, ONE_OF_EACH, REFUSED, in_dialect

NOW = ManualClock().now
_DIALECT = {"now": "0", "yes": "1"}
EXPECTED = Path(__file__).with_name("expected_schema.sql")


def made(number: int, sql: str) -> Migration:
    return Migration(number, f"number_{number}", sql, hashlib.sha256(sql.encode()).hexdigest())


ONE, TWO = made(1, "CREATE TABLE one (a);\n"), made(2, "CREATE TABLE two (b);\nINSERT INTO two VALUES ('x;y');\n")


def schema(path: Path) -> str:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name").fetchall()
    connection.close()
    return "".join(f"{row[0]};\n\n" for row in rows)


def test_migrating_from_empty_gives_the_expected_schema(tmp_path: Path) -> None:
    """A migration that changes the schema comes with the new expectation: write `schema(path)` there."""
    migrate(tmp_path / "insika.db", NOW)
    assert schema(tmp_path / "insika.db") == EXPECTED.read_text(encoding="utf-8")


def test_what_comes_with_the_package_is_numbered_without_gaps() -> None:
    assert [migration.number for migration in available("sqlite")] == list(range(1, len(available("sqlite")) + 1))


def test_pending_ones_are_applied_in_order_and_once(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    assert migrate(path, NOW, migrations=[ONE]) == (ONE,)
    assert migrate(path, NOW, migrations=[ONE, TWO]) == (TWO,)
    assert migrate(path, NOW, migrations=[ONE, TWO]) == ()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT b FROM two").fetchall() == [("x;y",)]
    assert connection.execute("SELECT number, checksum FROM schema_migrations").fetchall() == [
        (1, ONE.checksum),
        (2, TWO.checksum),
    ]
    connection.close()


def test_a_migration_that_fails_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    broken = made(2, "CREATE TABLE two (b);\nCREATE TABLE one (a);\n")
    with pytest.raises(StoreUnavailable, match="already exists"):
        migrate(path, NOW, migrations=[ONE, broken])
    assert "two" not in schema(path)
    assert migrate(path, NOW, migrations=[ONE, TWO]) == (TWO,)


def test_a_migration_that_was_edited_after_it_was_applied_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    migrate(path, NOW, migrations=[ONE])
    with pytest.raises(SchemaMismatch, match="0001_number_1 was edited"):
        migrate(path, NOW, migrations=[made(1, "CREATE TABLE one (b);\n"), TWO])
    assert "two" not in schema(path)


def test_a_database_that_is_newer_than_the_code_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    migrate(path, NOW)
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO schema_migrations VALUES (9999, 'from_the_future', 'x', 0)")
    connection.commit()
    connection.close()
    for attempt in (lambda: migrate(path, NOW), lambda: pending_migrations(path), lambda: SqliteStore.open(path, NOW)):
        with pytest.raises(SchemaMismatch, match=r"9999.*newer"):
            attempt()


def test_what_is_pending_is_told_in_order() -> None:
    assert pending([ONE, TWO], {}) == (ONE, TWO)
    assert pending([ONE, TWO], {1: ONE.checksum}) == (TWO,)
    assert pending([ONE, TWO], {1: ONE.checksum, 2: TWO.checksum}) == ()


@pytest.mark.parametrize("file", ["missing", "empty"])
def test_a_store_on_a_file_that_was_not_migrated_says_what_to_do(tmp_path: Path, file: str) -> None:
    path = tmp_path / "insika.db"
    if file == "empty":
        path.touch()
    with pytest.raises(NotMigrated, match="insika migrate"):
        Database.open(path, NOW)
    assert path.exists() == (file == "empty")
    assert pending_migrations(path) == available("sqlite")


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    path.write_text("a shopping list, and a rather long one: bread, milk, butter, eggs, apples")
    for attempt in (lambda: migrate(path, NOW), lambda: Database.open(path, NOW)):
        with pytest.raises(StoreUnavailable, match=r"insika\.db"):
            attempt()


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere"):
        migrate(tmp_path / "nowhere" / "insika.db", NOW)


def test_only_the_owner_of_the_file_may_read_it(tmp_path: Path) -> None:
    migrate(tmp_path / "insika.db", NOW)
    assert (tmp_path / "insika.db").stat().st_mode & 0o077 == 0


def test_many_that_migrate_a_new_file_at_once_apply_each_migration_once(tmp_path: Path) -> None:
    """Again and again: it is the change to WAL, which SQLite does not wait for, that they may meet in."""
    for attempt in range(50):
        path = tmp_path / f"{attempt}.db"
        with ThreadPoolExecutor(6) as pool:
            start = threading.Barrier(6)

            def one_of_them(path: Path = path, start: threading.Barrier = start) -> Sequence[Migration]:
                start.wait()
                return migrate(path, NOW, migrations=[ONE, TWO])

            applied = [
                migration for done in [pool.submit(one_of_them) for _ in range(6)] for migration in done.result()
            ]
        assert sorted(migration.number for migration in applied) == [1, 2]


def test_a_file_of_before_there_were_requests_keeps_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "insika.db"
    initial, *later = available("sqlite")
    migrate(path, NOW, migrations=[initial])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("""
        INSERT INTO sessions (name, mail_seq) VALUES ('s', 4), ('t', 0);
        INSERT INTO mailbox (session_id, position, job_id, mode, key, text, at, verdict, turn_id, cuts, debounce_ms,
          debounce_max_ms, agent, channel, recipient, origin, customer, sent_at, ended, consumed_by) VALUES
          (1, 1, 'j', 'steer', 'k', 'hello', 5, 'steered', 't', NULL, 6, 7, 'a', 'w', 'b', 'o', 'c', 8, NULL, NULL),
          (1, 2, 'k', 'collect', '', 'x', 5, 'merged', 't', NULL, 0, 0, 'a', NULL, NULL, 'o', NULL, 1, 'turn', 't'),
          (1, 3, 'r', 'cancel', NULL, '', 5, 'control', 't', 't', 0, 0, 'a', NULL, NULL, 'o', NULL, NULL, NULL, NULL),
          (1, 4, 'q', 'cancel', NULL, '', 5, 'control', 't', 't', 0, 0, 'a', '', NULL, 'o', NULL, 1, 'control', NULL);
    """)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(mailbox)")]
    before = connection.execute("SELECT * FROM mailbox ORDER BY position").fetchall()
    migrate(path, NOW)
    assert connection.execute(f"SELECT {', '.join(columns)} FROM mailbox ORDER BY position").fetchall() == before
    assert connection.execute("SELECT name, controls, parked_ms, parked_at FROM sessions").fetchall() == [
        ("s", 1, 0, None),
        ("t", 0, 0, None),
    ]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    assert [migration.number for migration in later] == list(range(2, len(later) + 2))


# --- what the tables refuse, whoever asks


@pytest.fixture
def tables(tmp_path: Path) -> sqlite3.Connection:
    migrate(tmp_path / "insika.db", NOW)
    connection = sqlite3.connect(tmp_path / "insika.db", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.executescript(in_dialect(ONE_OF_EACH, **_DIALECT))
    return connection


@pytest.mark.parametrize("what", REFUSED)
def test_the_tables_refuse(tables: sqlite3.Connection, what: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        tables.execute(in_dialect(REFUSED[what], **_DIALECT))


@pytest.mark.parametrize("what", ALLOWED)
def test_the_tables_allow(tables: sqlite3.Connection, what: str) -> None:
    assert tables.execute(in_dialect(ALLOWED[what], **_DIALECT)).rowcount == 1
