"""Looks at a file for a diagnosis, on a connection of its own. It reads and changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from insika.storage.inspection import Contents, DeliveryFacts, FileFacts, Inspection, SessionFacts
from insika.storage.migrate import SchemaMismatch
from insika.storage.port import StoreUnavailable
from insika.storage.sqlite import configuration
from insika.storage.sqlite.connection import Now, connect
from insika.storage.sqlite.queries import sql
from insika.storage.sqlite.schema import pending_migrations


def inspect(path: Path, now: Now, *, late_s: float, answer_s: float) -> Inspection:
    """`late_s`: from when on something counts as late. `answer_s` bounds the wait for other processes. Raises
    StoreUnavailable."""
    file = _file(path)
    try:
        pending = pending_migrations(path)
    except SchemaMismatch as mismatch:
        return Inspection(file, mismatch=mismatch.message)
    if pending:
        return Inspection(file, tuple(f"{migration.number:04d}_{migration.name}" for migration in pending))
    connection = connect(path, now, busy_timeout_s=answer_s, query_only=True)
    try:
        return Inspection(file, contents=_contents(connection, late_s))
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot read the database {path}: {error}") from error
    finally:
        connection.close()


def _file(path: Path) -> FileFacts:
    folder = path.absolute().parent
    exists = path.exists()
    return FileFacts(
        version=sqlite3.sqlite_version_info[:3],
        path=str(path),
        exists=exists,
        writable=os.access(folder, os.W_OK) and (not exists or os.access(path, os.W_OK)),
        free_bytes=shutil.disk_usage(folder).free if folder.exists() else 0,
    )


def _contents(connection: sqlite3.Connection, late_s: float) -> Contents:
    late = {"late_us": int(late_s * 1_000_000)}
    sessions = connection.execute(sql("inspection/sessions"), late).fetchone()
    deliveries = connection.execute(sql("inspection/deliveries"), late).fetchone()
    (rejected,) = connection.execute(sql("inspection/rejected")).fetchone()
    return Contents(
        settings=configuration.current_settings(connection),
        profiles=tuple(configuration.current_profiles(connection)),
        sessions=SessionFacts(*sessions),
        deliveries=DeliveryFacts(*deliveries),
        rejected=rejected,
    )
