"""What people look at. Nothing here decides anything, and nothing is written."""

from __future__ import annotations

import sqlite3

from insika.storage.rows import (
    ApprovalRow,
    ApprovalSummary,
    CallRow,
    LogEntry,
    Mail,
    ModelCallRow,
    SessionRow,
    SessionSummary,
    TurnRow,
)
from insika.storage.sqlite import mapping
from insika.storage.sqlite.queries import sql


def sessions(connection: sqlite3.Connection, limit: int, tenant: str | None) -> tuple[SessionSummary, ...]:
    rows = connection.execute(sql("reads/sessions"), {"limit": limit, "tenant": tenant})
    return tuple(map(mapping.session_summary, rows))


def session(connection: sqlite3.Connection, name: str, tenant: str) -> SessionRow | None:
    row = connection.execute(sql("reads/session"), {"name": name, "tenant": tenant}).fetchone()
    return None if row is None else mapping.session_row(row)


def session_by_id(connection: sqlite3.Connection, session_id: int) -> SessionRow | None:
    row = connection.execute(sql("reads/session_by_id"), {"session_id": session_id}).fetchone()
    return None if row is None else mapping.session_row(row)


def messages(connection: sqlite3.Connection, session_id: int, after: int) -> tuple[LogEntry, ...]:
    rows = connection.execute(sql("reads/messages"), {"session_id": session_id, "after": after})
    return tuple(map(mapping.log_entry, rows))


def mail(connection: sqlite3.Connection, session_id: int) -> tuple[Mail, ...]:
    return tuple(map(mapping.mail, connection.execute(sql("reads/mail"), {"session_id": session_id})))


def turn(connection: sqlite3.Connection, turn_id: str) -> TurnRow | None:
    row = connection.execute(sql("reads/turn"), {"turn_id": turn_id}).fetchone()
    return None if row is None else mapping.turn_row(row)


def turns(connection: sqlite3.Connection, session_id: int) -> tuple[TurnRow, ...]:
    return tuple(map(mapping.turn_row, connection.execute(sql("reads/turns"), {"session_id": session_id})))


def latest_turns(connection: sqlite3.Connection, limit: int, session_id: int | None) -> tuple[TurnRow, ...]:
    rows = connection.execute(sql("reads/latest_turns"), {"limit": limit, "session_id": session_id})
    return tuple(map(mapping.turn_row, rows))


def turn_ids(connection: sqlite3.Connection, prefix: str, limit: int) -> tuple[str, ...]:
    found = connection.execute(sql("reads/turn_ids"), {"prefix": prefix, "limit": limit})
    return tuple(turn_id for (turn_id,) in found)


def calls(connection: sqlite3.Connection, turn_id: str) -> tuple[CallRow, ...]:
    return tuple(map(mapping.call_row, connection.execute(sql("reads/calls"), {"turn_id": turn_id})))


def model_calls(connection: sqlite3.Connection, turn_id: str) -> tuple[ModelCallRow, ...]:
    return tuple(map(mapping.model_call_row, connection.execute(sql("reads/model_calls"), {"turn_id": turn_id})))


def approvals_of(connection: sqlite3.Connection, turn_id: str) -> tuple[ApprovalRow, ...]:
    """All of one turn, by the time they were asked."""
    return tuple(map(mapping.approval_row, connection.execute(sql("ownership/load_approvals"), {"turn_id": turn_id})))


def approvals(connection: sqlite3.Connection, limit: int, open_only: bool) -> tuple[ApprovalSummary, ...]:
    rows = connection.execute(sql("reads/approvals"), {"limit": limit, "open_only": int(open_only)})
    return tuple(map(mapping.approval_summary, rows))


def approval(connection: sqlite3.Connection, approval_id: str) -> ApprovalSummary | None:
    row = connection.execute(sql("reads/approval"), {"approval_id": approval_id}).fetchone()
    return None if row is None else mapping.approval_summary(row)


def approval_ids(connection: sqlite3.Connection, prefix: str, limit: int) -> tuple[str, ...]:
    found = connection.execute(sql("reads/approval_ids"), {"prefix": prefix, "limit": limit})
    return tuple(approval_id for (approval_id,) in found)
