"""How a connection to the file is set up, and how a write transaction begins. Every connection comes from here.

`insika_now()` is the one source of time in statements; it answers the clock given here, in microseconds.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from insika.storage.port import StoreUnavailable
from insika.storage.sqlite.times import to_micros

Now = Callable[[], datetime]

_PROBE_MS = 8
"""How long SQLite's own handler waits for a lock before we ask again. Left to itself it backs off to 100 ms and then
misses the short gaps between another writer's transactions; asked again it tries after 1, 2 and 5 ms."""


def connect(path: Path, now: Now, *, busy_timeout_s: float, query_only: bool = False) -> sqlite3.Connection:
    """A connection to an existing file. It may be used from any one thread at a time."""
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=busy_timeout_s,
        )
        # Journal mode first, while the handler still waits long: another process may be recovering the file. Where two
        # change it at once SQLite does not wait at all, since that could be for each other: so we ask again.
        _until_free(connection, "PRAGMA journal_mode = WAL", busy_timeout_s, pause_s=_PROBE_MS / 1000)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")  # 16 MB: each time costs two more fsyncs
        if query_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute(f"PRAGMA busy_timeout = {_PROBE_MS}")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot open the database {path}: {error}") from error
    # Deterministic as far as SQLite is concerned: one statement sees one time.
    connection.create_function("insika_now", 0, lambda: to_micros(now()), deterministic=True)
    return connection


def begin_write(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Take the write lock, which other processes take too.

    Raises sqlite3.OperationalError when it was not free within `timeout_s`."""
    _until_free(connection, "BEGIN IMMEDIATE", timeout_s, pause_s=0)


def _until_free(connection: sqlite3.Connection, statement: str, timeout_s: float, *, pause_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(pause_s)
