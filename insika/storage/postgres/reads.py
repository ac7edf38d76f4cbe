"""What people look at. Nothing here decides anything, and nothing is written."""

from __future__ import annotations

from insika.storage.postgres import mapping
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.queries import sql
from insika.storage.rows import (
    ApprovalSummary,
    CallRow,
    LogEntry,
    Mail,
    ModelCallRow,
    SessionRow,
    SessionSummary,
    TurnRow,
)


async def sessions(pool: Pool, limit: int, tenant: str | None) -> tuple[SessionSummary, ...]:
    rows = await pool.rows(sql("reads/sessions"), {"limit": limit, "tenant": tenant})
    return tuple(map(mapping.session_summary, rows))


async def session(pool: Pool, name: str, tenant: str) -> SessionRow | None:
    row = await pool.row(sql("reads/session"), {"name": name, "tenant": tenant})
    return None if row is None else mapping.session_row(row)


async def session_by_id(pool: Pool, session_id: int) -> SessionRow | None:
    row = await pool.row(sql("reads/session_by_id"), {"session_id": session_id})
    return None if row is None else mapping.session_row(row)


async def messages(pool: Pool, session_id: int, after: int) -> tuple[LogEntry, ...]:
    rows = await pool.rows(sql("reads/messages"), {"session_id": session_id, "after": after})
    return tuple(map(mapping.log_entry, rows))


async def mail(pool: Pool, session_id: int) -> tuple[Mail, ...]:
    return tuple(map(mapping.mail, await pool.rows(sql("reads/mail"), {"session_id": session_id})))


async def turn(pool: Pool, turn_id: str) -> TurnRow | None:
    row = await pool.row(sql("reads/turn"), {"turn_id": turn_id})
    return None if row is None else mapping.turn_row(row)


async def turns(pool: Pool, session_id: int) -> tuple[TurnRow, ...]:
    return tuple(map(mapping.turn_row, await pool.rows(sql("reads/turns"), {"session_id": session_id})))


async def latest_turns(pool: Pool, limit: int, session_id: int | None) -> tuple[TurnRow, ...]:
    statement = "reads/latest_turns" if session_id is None else "reads/latest_turns_of_session"
    rows = await pool.rows(sql(statement), {"limit": limit, "session_id": session_id})
    return tuple(map(mapping.turn_row, rows))


async def turn_ids(pool: Pool, prefix: str, limit: int) -> tuple[str, ...]:
    found = await pool.rows(sql("reads/turn_ids"), {"prefix": prefix, "limit": limit})
    return tuple(turn_id for (turn_id,) in found)


async def calls(pool: Pool, turn_id: str) -> tuple[CallRow, ...]:
    return tuple(map(mapping.call_row, await pool.rows(sql("reads/calls"), {"turn_id": turn_id})))


async def model_calls(pool: Pool, turn_id: str) -> tuple[ModelCallRow, ...]:
    return tuple(map(mapping.model_call_row, await pool.rows(sql("reads/model_calls"), {"turn_id": turn_id})))


async def approvals(pool: Pool, limit: int, open_only: bool) -> tuple[ApprovalSummary, ...]:
    rows = await pool.rows(sql("reads/approvals"), {"limit": limit, "open_only": open_only})
    return tuple(map(mapping.approval_summary, rows))


async def approval(pool: Pool, approval_id: str) -> ApprovalSummary | None:
    row = await pool.row(sql("reads/approval"), {"approval_id": approval_id})
    return None if row is None else mapping.approval_summary(row)


async def approval_ids(pool: Pool, prefix: str, limit: int) -> tuple[str, ...]:
    found = await pool.rows(sql("reads/approval_ids"), {"prefix": prefix, "limit": limit})
    return tuple(approval_id for (approval_id,) in found)
