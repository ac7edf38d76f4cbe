"""The server as a process uses it: a few connections, and one statement after another on each.

A statement is run to its end whatever becomes of its caller, so that no cancelled caller leaves a connection in the
middle of one; a connection whose server does not answer in time is hung up, and its caller told that nobody knows.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Self, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from insika.storage.port import StoreBusy, StoreUnavailable
from insika.storage.postgres.connection import PREPARED_MAX, Bounds, adapt, hang_up, parameters
from insika.storage.postgres.errors import as_store_error, told

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Mapping[str, Any]
Statements = Callable[[str, Params], Awaitable[list[Row]]]
"""Runs a statement inside a transaction, and answers its rows."""

SIZE = 10
"""Connections of one process; a worker has another one by which it renews its leases."""


class Pool:
    """Opens itself with its first statement, in the loop that runs then, and belongs to that loop.

    Every method raises StoreUnavailable when nobody can say whether the statement was executed (or it was not, and may
    be asked again), and StoreRefused when a guard of the tables stopped it."""

    def __init__(self, url: str, bounds: Bounds, *, application_name: str = "insika", size: int = SIZE) -> None:
        self._bounds = bounds
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._opening = asyncio.Lock()
        self._refusal: psycopg.Error | None = None
        self._pool: AsyncConnectionPool[AsyncConnection[Row]] = AsyncConnectionPool(
            kwargs={**parameters(url, bounds, application_name), "autocommit": True, "prepare_threshold": 0},
            connection_class=_telling(self._heard),
            configure=_configure,
            min_size=1,
            max_size=size,
            timeout=bounds.wait_s,
            reconnect_timeout=bounds.lock_s,
            name=application_name,
            open=False,
        )

    async def row(self, statement: str, params: Params) -> Row | None:
        """The first row that a statement returns, if any."""
        rows = await self.rows(statement, params)
        return rows[0] if rows else None

    async def rows(self, statement: str, params: Params) -> list[Row]:
        """All rows of a statement. It is a transaction of its own."""
        return await self._apart(self._with_connection(lambda connection: _execute(connection, statement, params)))

    async def in_transaction(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        """Run several statements as one transaction; what `work` raises undoes them.

        For what cannot be one statement: each of them is a way to the server and back, under locks."""

        async def run(connection: AsyncConnection[Row]) -> T:
            async with connection.transaction():
                return await work(lambda statement, params: _execute(connection, statement, params))

        return await self._apart(self._with_connection(run))

    async def close(self) -> None:
        """Let statements that run come to their end, then hang up. Calling it again does nothing."""
        self._closed = True
        if self._running:
            await asyncio.wait(self._running)
        await self._pool.close()

    async def _apart(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed:
            work.close()
            raise StoreUnavailable("the store is closed")
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that was cancelled never asks for it, which asyncio would tell as an error

    async def _with_connection(self, work: Callable[[AsyncConnection[Row]], Awaitable[T]]) -> T:
        try:
            connection = await self._take()
            try:
                return await self._bounded(connection, work)
            finally:
                await self._pool.putconn(connection)
        except psycopg.Error as error:
            raise as_store_error(error) from None

    async def _take(self) -> AsyncConnection[Row]:
        """A connection that is not known to be broken. One that broke while it lay idle costs nobody a statement."""
        if self._pool.closed:
            async with self._opening:
                await self._pool.open()
        while True:
            connection = await self._get()
            try:
                if _has_something_to_say(connection):
                    await self._bounded(connection, AsyncConnectionPool.check_connection)
                return connection
            except psycopg.Error:
                await connection.close()
                await self._pool.putconn(connection)

    async def _get(self) -> AsyncConnection[Row]:
        try:
            return await self._pool.getconn()
        except PoolTimeout:
            within = f"within {self._bounds.wait_s:g} s"
            if self._refusal is None:
                raise StoreBusy(f"no connection to the database was free {within}: all are in use") from None
            raise PoolTimeout(f"no connection {within}: {told(self._refusal)}") from None

    def _heard(self, refusal: psycopg.Error | None) -> None:
        self._refusal = refusal

    async def _bounded(
        self, connection: AsyncConnection[Row], work: Callable[[AsyncConnection[Row]], Awaitable[T]]
    ) -> T:
        bound = asyncio.get_running_loop().call_later(self._bounds.answer_s, hang_up, connection)
        try:
            return await work(connection)
        except psycopg.errors.ReadOnlySqlTransaction:
            await connection.close()  # the server has become a standby; the next connection finds the one that writes
            raise
        except psycopg.Error as error:
            if error.sqlstate is None and connection.broken and bound.when() <= asyncio.get_running_loop().time():
                raise psycopg.OperationalError(f"no answer within {self._bounds.answer_s:g} s") from None
            raise
        finally:
            bound.cancel()


def _telling(hear: Callable[[psycopg.Error | None], None]) -> type[AsyncConnection[Row]]:
    """Connections of which the pool's callers learn why there is none; the pool itself tells only its log."""

    class Telling(AsyncConnection[Row]):
        @classmethod
        async def connect(cls, conninfo: str = "", **options: Any) -> Self:
            try:
                connection = await super().connect(conninfo, **options)
            except psycopg.Error as refusal:
                hear(refusal)
                raise
            hear(None)
            return connection

    return Telling


async def _execute(connection: AsyncConnection[Row], statement: str, params: Params) -> list[Row]:
    cursor = connection.cursor()
    await cursor.execute(statement, params)
    result = cursor.pgresult  # to ask for the description would be to make one, of every column
    return await cursor.fetchall() if result is not None and result.nfields else []


async def _configure(connection: AsyncConnection[Row]) -> None:
    adapt(connection)
    connection.prepared_max = PREPARED_MAX


def _has_something_to_say(connection: AsyncConnection[Row]) -> bool:
    """Nobody asked, and something came: most likely the end of the connection."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
