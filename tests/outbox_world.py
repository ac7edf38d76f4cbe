"""What the tests of an outbox's store share: a store under a clock that stands still, rows to fill it with, and a look
at what no port shows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from insika.clock import ManualClock
from insika.storage.postgres.connection import Bounds
from insika.storage.postgres.pool import Pool
from insika.storage.sqlite.database import Database
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.times import from_micros_or_none
from outbox.postgres_store import PostgresOutboxStore
from outbox.sqlite_store import SqliteOutboxStore
from outbox.store import OutboxStore
from tests.postgres_here import DatabaseClock, empty

Run = Callable[[str], Awaitable[Sequence[tuple[Any, ...]]]]


@dataclass(frozen=True)
class OutboxWorld:
    """`run` runs one statement that both dialects read and that returns rows. `as_time` reads a stored time."""

    store: OutboxStore
    clock: ManualClock
    run: Run
    as_time: Callable[[Any], datetime | None]

    async def add(self, delivery_id: str, **changes: Any) -> str:
        """A pending row, due at once, at the end of its lane, as the turn's last statement would write it."""
        session = changes.get("session", "s1")
        await self.run(new_session(session))
        ((session_id, position),) = await self.run(next_position(session))
        await self.run(insertion(delivery_id, session_id, position, changes))
        return delivery_id

    async def postpone(self, delivery_id: str, seconds: int) -> None:
        """As if it had been put off by so many seconds."""
        moved = {True: f"due_at + interval '{seconds} seconds'", False: f"due_at + {seconds * 1_000_000}"}
        on_postgres = isinstance(self.store, PostgresOutboxStore)
        await self.run(f"UPDATE outbox SET due_at = {moved[on_postgres]} WHERE id = '{delivery_id}' RETURNING id")

    async def holds(self) -> Mapping[str, datetime | None]:
        """Until when each row holds those behind it in its lane."""
        rows = await self.run("SELECT id, hold_until FROM outbox")
        return {delivery_id: self.as_time(hold_until) for delivery_id, hold_until in rows}

    async def positions(self) -> Sequence[str]:
        """The ids in the order of their places."""
        return [delivery_id for (delivery_id,) in await self.run("SELECT id FROM outbox ORDER BY lane_pos")]


@asynccontextmanager
async def sqlite_outbox(folder: Path) -> AsyncIterator[OutboxWorld]:
    clock = ManualClock()
    migrate(folder / "insika.db", clock.now)
    database = Database.open(folder / "insika.db", clock.now)

    async def run(statement: str) -> Sequence[tuple[Any, ...]]:
        return await database.write(lambda connection: connection.execute(statement).fetchall())

    yield OutboxWorld(SqliteOutboxStore(database), clock, run, from_micros_or_none)
    database.close()


@asynccontextmanager
async def postgres_outbox(url: str) -> AsyncIterator[OutboxWorld]:
    """`url` is that of a database which is prepared (`tests.postgres_here`). It is emptied first."""
    empty(url)
    clock = DatabaseClock(url)
    pool = Pool(url, Bounds.within(15.0))

    async def run(statement: str) -> Sequence[tuple[Any, ...]]:
        return await pool.rows(statement.replace("%", "%%"), {})

    yield OutboxWorld(PostgresOutboxStore(pool), clock, run, lambda at: at)
    await pool.close()
    clock.close()


def new_session(name: str) -> str:
    return f"INSERT INTO sessions (tenant, name) VALUES ('', {literal(name)}) ON CONFLICT DO NOTHING RETURNING id"


def next_position(session: str) -> str:
    return f"UPDATE sessions SET lane_seq = lane_seq + 1 WHERE name = {literal(session)} RETURNING id, lane_seq"


def insertion(delivery_id: str, session_id: int, position: int, changes: Mapping[str, Any]) -> str:
    session = changes.get("session", "s1")
    payload = {"type": "answer", "session": session, "turn_id": "t-" + delivery_id, "agent": "demo", "content": "hi"}
    row: dict[str, Any] = {
        "id": delivery_id,
        "session_id": session_id,
        "kind": "answer",
        "channel": "web",
        "lane": f"{session_id}/web",
        "lane_pos": position,
        "recipient": session,
        "payload": json.dumps(changes.get("payload", payload)),
        "url": "https://receiver.example/hook",
        "guarantee": "at_most_once",
        "max_attempts": 3,
        "timeout_s": 15.0,
        "order_wait_s": 60.0,
        **{name: value for name, value in changes.items() if name not in ("session", "payload")},
    }
    values = ", ".join(map(literal, row.values()))
    return (
        f"INSERT INTO outbox ({', '.join(row)}, due_at, created_at) "
        f"VALUES ({values}, insika_now(), insika_now()) RETURNING id"
    )


def literal(value: str | float | None) -> str:
    """As both dialects write it."""
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
