"""An outbox over a real file with a clock that stands still, rows to fill it with, and a receiver made of answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insika.clock import ManualClock
from insika.events import Event
from insika.storage.sqlite.database import Database
from insika.storage.sqlite.schema import migrate
from outbox.sqlite_store import SqliteOutboxStore
from outbox.states import AttemptResult, NotSent
from outbox.webhook import Attempt
from tests.outbox_world import insertion, new_session, next_position

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@dataclass
class Outbox:
    clock: ManualClock
    database: Database
    store: SqliteOutboxStore

    def add(self, delivery_id: str, **changes: Any) -> str:
        """A pending row, due at once, at the end of its lane, as the turn's last statement would write it."""
        self.database.write_sync(lambda connection: _insert(connection, delivery_id, changes))
        return delivery_id

    def one(self, sql: str, *values: Any) -> Any:
        return self.database.read_sync(lambda connection: connection.execute(sql, values).fetchone())

    def change(self, sql: str, *values: Any) -> None:
        self.database.write_sync(lambda connection: connection.execute(sql, values).rowcount)


@contextmanager
def open_outbox(path: Path, clock: ManualClock | None = None) -> Iterator[Outbox]:
    clock = clock or ManualClock()
    migrate(path, clock.now)
    database = Database.open(path, clock.now)
    try:
        yield Outbox(clock, database, SqliteOutboxStore(database))
    finally:
        database.close()


def _insert(connection: sqlite3.Connection, delivery_id: str, changes: Mapping[str, Any]) -> None:
    session = changes.get("session", "s1")
    connection.execute(new_session(session)).fetchall()
    session_id, position = connection.execute(next_position(session)).fetchone()
    connection.execute(insertion(delivery_id, session_id, position, changes)).fetchall()


@dataclass
class Posted:
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class ScriptedPost:
    """Gives the results in order. A callable is asked with the request, which is how a test acts in its midst."""

    results: list[AttemptResult | Callable[[Posted], Awaitable[AttemptResult]]]
    posted: list[Posted] = field(default_factory=list)

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float, attempt: Attempt
    ) -> AttemptResult:
        if not attempt.may_start():
            return NotSent("too late")
        request = Posted(url, dict(headers), body)
        self.posted.append(request)
        result = self.results.pop(0)
        return await result(request) if callable(result) else result


@dataclass
class RecordedEvents:
    events: list[Event] = field(default_factory=list)

    def publish(self, event: Event) -> None:
        self.events.append(event)

    def told(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return [(str(event.type), event.data) for event in self.events]


class FixedWaits:
    """1 s after each attempt, or what the receiver asked for."""

    def after(self, attempts: int, retry_after_s: float | None) -> float:
        return 1.0 if retry_after_s is None else retry_after_s
