"""Extending leases, on a connection of its own and from a thread of its own: neither a busy event loop nor a long
group of writes may cost an owner its lease."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from insika.storage.operations import Fence
from insika.storage.sqlite.connection import Now, begin_write, connect
from insika.storage.sqlite.group import as_store_error
from insika.storage.sqlite.queries import sql


class SqliteLeaseRenewal:
    """`lock_timeout_s` bounds the wait for whoever else writes to the file; keep it under a third of the lease."""

    def __init__(self, path: Path, now: Now, *, lock_timeout_s: float = 2.0) -> None:
        self._connection = connect(path, now, busy_timeout_s=lock_timeout_s)
        self._lock_timeout_s = lock_timeout_s

    def renew(self, fences: Sequence[Fence], lease_s: float) -> Mapping[str, int]:
        if not fences:
            return {}
        lease_us = int(lease_s * 1_000_000)
        held = {}
        try:
            begin_write(self._connection, self._lock_timeout_s)
            for fence in fences:
                values = {"session_id": fence.session_id, "lease_id": fence.lease_id, "lease_us": lease_us}
                if (row := self._connection.execute(sql("ownership/renew"), values).fetchone()) is not None:
                    held[fence.lease_id] = int(row[0])
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise as_store_error(error) from error
        return held

    def close(self) -> None:
        self._connection.close()
