"""The outbox on SQLite. Each operation is one function inside the writer's transaction: nothing comes between its
statements, and nobody is told before it is durable. What may follow from what is decided in `outbox.states`.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from insika.storage.operations import NewAlert
from insika.storage.sqlite.database import Database
from insika.storage.sqlite.outgoing import raise_alerts
from insika.storage.sqlite.times import NEVER_US, from_micros
from outbox.message import ClaimedDelivery, DeliveryRow, DeliveryState
from outbox.sqlite_rows import claimed_delivery, delivery_row
from outbox.statements import statements
from outbox.states import Decision, RetryIn, expired, state_after
from outbox.store import RESEND_DELAY_S, RESEND_GUARD_S, AlertsOf, NotResent, Resent, no_alerts

_SECOND = 1_000_000


class SqliteOutboxStore:
    """See `outbox.store.OutboxStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = statements("sqlite")

    async def claim(self, grace_s: float) -> ClaimedDelivery | None:
        def operation(connection: sqlite3.Connection) -> ClaimedDelivery | None:
            now = _now(connection)
            found = self._row(connection, "next_claimable", now=now)
            if found is None:
                return None
            delivery_id, overtakes = found
            claim = str(uuid.uuid4())
            row = self._row(connection, "claim", id=delivery_id, claim=claim, now=now, grace_s=grace_s)
            return claimed_delivery(row, overtook=bool(overtakes)) if row is not None else None

        return await self._database.write(operation)

    async def settle(
        self, delivery_id: str, claim: str, decision: Decision, *, alerts: Sequence[NewAlert] = ()
    ) -> bool:
        def operation(connection: sqlite3.Connection) -> bool:
            if self._settle(connection, delivery_id, claim, decision, alerts):
                return True
            # Asked twice, because the first answer was lost: the row tells.
            return self._row(connection, "settled_state", id=delivery_id, claim=claim) == (state_after(decision),)

        return await self._database.write(operation)

    async def sweep_expired(self, alerts: AlertsOf = no_alerts) -> Sequence[DeliveryRow]:
        found = await self._database.read(lambda connection: self._rows(connection, "expired", now=_now(connection)))
        if not found:
            return ()
        decided = []
        for claim, tries, *row in found:
            delivery = delivery_row(tuple(row))
            decision = expired(attempts=tries, max_attempts=delivery.max_attempts, guarantee=delivery.guarantee)
            decided.append((delivery.id, claim, decision, alerts(delivery, decision)))

        def operation(connection: sqlite3.Connection) -> Sequence[DeliveryRow]:
            swept: tuple[DeliveryRow, ...] = ()
            for delivery_id, claim, decision, raised in decided:
                if self._settle(connection, delivery_id, claim, decision, raised):
                    swept += tuple(self._list(connection, delivery_id=delivery_id))
            return swept

        return await self._database.write(operation)

    async def resend(self, delivery_id: str, *, force: bool = False) -> Resent | NotResent:
        def operation(connection: sqlite3.Connection) -> Resent | NotResent:
            row = self._row(connection, "resendable", id=delivery_id)
            if row is None:
                return NotResent(f"there is no delivery {delivery_id}")
            state, claimed_at, session_id, lane = row
            if state not in (DeliveryState.FAILED, DeliveryState.UNCERTAIN):
                return NotResent(f"delivery {delivery_id} is {state}; only failed and uncertain ones are sent again")
            now = _now(connection)
            not_before = (claimed_at or 0) + _micros(RESEND_GUARD_S)
            if now < not_before and not force:
                may_arrive = ", and that request may still arrive" if state == DeliveryState.UNCERTAIN else ""
                return NotResent(
                    f"delivery {delivery_id} was last tried less than {RESEND_GUARD_S / 60:g} minutes ago{may_arrive}",
                    from_micros(not_before),
                )
            position = self._next_position(connection, session_id, lane)
            connection.execute(
                self._sql["resend"],
                {"id": delivery_id, "lane_pos": position, "due_at": now + _micros(RESEND_DELAY_S)},
            )
            return Resent()

        return await self._database.write(operation)

    async def list(self, state: DeliveryState | None = None, limit: int = 100) -> Sequence[DeliveryRow]:
        return await self._database.read(lambda connection: self._list(connection, state=state, limit=limit))

    async def show(self, delivery_id: str) -> DeliveryRow | None:
        rows = await self._database.read(lambda connection: self._list(connection, delivery_id=delivery_id))
        return rows[0] if rows else None

    async def ids(self, prefix: str, limit: int) -> Sequence[str]:
        found = await self._database.read(lambda connection: self._rows(connection, "ids", prefix=prefix, limit=limit))
        return [str(delivery_id) for (delivery_id,) in found]

    async def counts(self) -> Mapping[DeliveryState, int]:
        counted = await self._database.read(lambda connection: self._rows(connection, "counts"))
        return dict.fromkeys(DeliveryState, 0) | {DeliveryState(state): count for state, count in counted}

    async def next_due_at(self) -> datetime:
        def operation(connection: sqlite3.Connection) -> int | None:
            (row,) = self._rows(connection, "next_due", now=_now(connection))
            first: int | None = row[0]
            return first

        first = await self._database.read(operation)
        return from_micros(NEVER_US if first is None else first)

    def _settle(
        self,
        connection: sqlite3.Connection,
        delivery_id: str,
        claim: str,
        decision: Decision,
        alerts: Sequence[NewAlert],
    ) -> bool:
        if isinstance(decision, RetryIn):
            return self._put_back(connection, delivery_id, claim, decision)
        state, reason, now = state_after(decision), getattr(decision, "reason", None), _now(connection)
        ended = self._row(connection, "settle", id=delivery_id, claim=claim, state=state, reason=reason, now=now)
        if ended is None:
            return False
        kind, turn_id = ended
        if kind == "answer" and state in (DeliveryState.FAILED, DeliveryState.UNCERTAIN):
            raise_alerts(connection, alerts, turn_id)
        return True

    def _put_back(self, connection: sqlite3.Connection, delivery_id: str, claim: str, decision: RetryIn) -> bool:
        row = self._row(
            connection,
            "settle_again",
            id=delivery_id,
            claim=claim,
            now=_now(connection),
            delay=_micros(decision.delay_s),
            reason=decision.reason,
            possible_duplicate=int(decision.possible_duplicate),
        )
        if row is None:
            return False
        lane, position, due_at = row
        connection.execute(self._sql["push_lane"], {"lane": lane, "lane_pos": position, "due_at": due_at})
        return True

    def _next_position(self, connection: sqlite3.Connection, session_id: int | None, lane: str) -> int:
        """Under the session's row, as every position of its lanes: so what is resent goes behind what is there."""
        if session_id is not None:
            (row,) = self._rows(connection, "next_position", session_id=session_id)
        else:
            (row,) = self._rows(connection, "next_position_alone", lane=lane)
        return int(row[0])

    def _list(
        self,
        connection: sqlite3.Connection,
        *,
        state: DeliveryState | None = None,
        delivery_id: str | None = None,
        limit: int = 1,
    ) -> Sequence[DeliveryRow]:
        rows = self._rows(connection, "list", state=state, id=delivery_id, limit=limit)
        return [delivery_row(row) for row in rows]

    def _row(self, connection: sqlite3.Connection, name: str, **values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(connection, name, **values)
        return rows[0] if rows else None

    def _rows(self, connection: sqlite3.Connection, name: str, **values: Any) -> Sequence[tuple[Any, ...]]:
        return connection.execute(self._sql[name], values).fetchall()


def _now(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT insika_now()").fetchone()[0])


def _micros(seconds: float) -> int:
    return round(seconds * _SECOND)
