"""The file as the process uses it: one thread writes, others read, and callers wait for what is durable.

What is queued while a group commits goes as the next group, so that many callers share one fsync. An operation is a
plain function of a connection: it cannot await, so nothing can come between its statements. Reads have connections
of their own, so that a long listing holds up no write; a read sees everything committed before it was called.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from insika.storage.port import StoreUnavailable
from insika.storage.sqlite.connection import Now, connect
from insika.storage.sqlite.group import Operation, Outcome, commit_group, read_snapshot
from insika.storage.sqlite.schema import require_current_schema

T = TypeVar("T")

_GROUP_MAX = 256
"""Operations in one transaction at most, so that other processes get their turn at the file."""


class _Request:
    """An operation on its way, and who waits for it: a future of `loop`, or of a thread when there is no loop."""

    __slots__ = ("future", "loop", "operation")

    def __init__(self, operation: Operation, loop: asyncio.AbstractEventLoop | None) -> None:
        self.operation = operation
        self.loop = loop
        self.future: Any = concurrent.futures.Future() if loop is None else loop.create_future()


class Database:
    """Open with `Database.open`. All methods may be called from any thread; the async ones from any loop."""

    def __init__(self, path: Path, writer: sqlite3.Connection, readers: Sequence[sqlite3.Connection], lock_s: float):
        self.path = path
        self._lock_timeout_s = lock_s
        self._gate = threading.Lock()
        self._closed = False
        self._writes: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._write_groups, args=(writer,), name="insika-writer", daemon=True),
            *(
                threading.Thread(target=self._read_one_by_one, args=(reader,), name="insika-reader", daemon=True)
                for reader in readers
            ),
        ]
        for thread in self._threads:
            thread.start()

    @classmethod
    def open(cls, path: str | Path, now: Now, *, busy_timeout_s: float = 5.0, readers: int = 2) -> Database:
        """Open an existing, migrated file. `now` is what `insika_now()` answers.

        `busy_timeout_s` bounds the wait for other processes that write to the file. Raises NotMigrated,
        SchemaMismatch or StoreUnavailable."""
        path = Path(path)
        require_current_schema(path)
        writer = connect(path, now, busy_timeout_s=busy_timeout_s)
        reading = [connect(path, now, busy_timeout_s=busy_timeout_s, query_only=True) for _ in range(readers)]
        return cls(path, writer, reading, busy_timeout_s)

    async def write(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run `operation` in the writer's next group; returns once it is durable.

        An exception that it raises undoes its own writes and is raised here. Raises StoreUnavailable when the
        transaction failed: then nobody can say that it was written. A caller that is cancelled does not take its
        operation back."""
        return await self._submit(self._writes, operation, asyncio.get_running_loop())  # type: ignore[no-any-return]

    async def read(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run `operation`, which may only read, on one snapshot."""
        return await self._submit(self._reads, operation, asyncio.get_running_loop())  # type: ignore[no-any-return]

    def write_sync(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """`write` for a thread without a loop; blocks."""
        return self._submit(self._writes, operation, None).result()  # type: ignore[no-any-return]

    def read_sync(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        return self._submit(self._reads, operation, None).result()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Finish what is queued, then let go of the file. Blocks; calling it again does nothing."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._writes.put(None)
                for _ in self._threads[1:]:
                    self._reads.put(None)
        for thread in self._threads:
            thread.join()

    def _submit(
        self, to: queue.SimpleQueue[_Request | None], operation: Operation, loop: asyncio.AbstractEventLoop | None
    ) -> Any:
        request = _Request(operation, loop)
        with self._gate:  # nothing may enter behind the mark that ends the queue
            if self._closed:
                raise StoreUnavailable("the database is closed")
            to.put(request)
        return request.future

    def _write_groups(self, connection: sqlite3.Connection) -> None:
        open_ = True
        while open_:
            group, open_ = self._next_group()
            if group:
                outcomes = commit_group(connection, [request.operation for request in group], self._lock_timeout_s)
                _tell(zip(group, outcomes, strict=True))
        connection.close()

    def _next_group(self) -> tuple[list[_Request], bool]:
        """Wait for a first request and take what else has gathered. False: the end of the queue was reached."""
        request = self._writes.get()
        group: list[_Request] = []
        while request is not None:
            group.append(request)
            if len(group) == _GROUP_MAX:
                return group, True
            try:
                request = self._writes.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _read_one_by_one(self, connection: sqlite3.Connection) -> None:
        while (request := self._reads.get()) is not None:
            _tell([(request, read_snapshot(connection, request.operation))])
        connection.close()


def _tell(told: Iterable[tuple[_Request, Outcome]]) -> None:
    """Wake every waiting loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Request, Outcome]]] = {}
    for request, outcome in told:
        if request.loop is None:
            _resolve([(request, outcome)])
        else:
            by_loop.setdefault(request.loop, []).append((request, outcome))
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, pairs)
        except RuntimeError:
            pass  # that loop is closed: nobody waits there any more


def _resolve(pairs: list[tuple[_Request, Outcome]]) -> None:
    for request, outcome in pairs:
        future = request.future
        if future.done():  # its caller was cancelled
            continue
        if outcome.error is None:
            future.set_result(outcome.answer)
        else:
            future.set_exception(outcome.error)
