"""Extending leases, on a connection of its own and from a thread of its own: neither a busy event loop nor a pool whose
connections are all in use may cost an owner its lease."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import psycopg
from psycopg import Connection

from insika.storage.operations import Fence
from insika.storage.postgres.connection import Bounds, adapt, hang_up, parameters
from insika.storage.postgres.errors import as_store_error
from insika.storage.postgres.queries import sql


class PostgresLeaseRenewal:
    """Connects when it first renews, and anew after each failure. `lease_s` bounds how long one try may take: a third
    of it, so that there is time for another."""

    def __init__(self, url: str, lease_s: float) -> None:
        self._bounds = Bounds.within(lease_s / 3)
        self._parameters = parameters(url, self._bounds, "insika renewal")
        self._connection: Connection | None = None

    def renew(self, fences: Sequence[Fence], lease_s: float) -> Mapping[str, int]:
        """Raises StoreUnavailable; then none of them was extended, as far as anybody knows."""
        if not fences:
            return {}
        values = {
            "session_ids": [fence.session_id for fence in fences],
            "lease_ids": [fence.lease_id for fence in fences],
            "lease_ms": lease_s * 1000,
        }
        try:
            return self._bounded(values)
        except psycopg.Error as error:
            self.close()
            raise as_store_error(error) from None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _bounded(self, values: Mapping[str, object]) -> dict[str, int]:
        connection = self._connected()
        bound = threading.Timer(self._bounds.answer_s, hang_up, [connection])
        bound.daemon = True
        bound.start()
        try:
            return dict(connection.execute(sql("ownership/renew"), values).fetchall())
        finally:
            bound.cancel()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=0)
            adapt(self._connection)
        return self._connection
