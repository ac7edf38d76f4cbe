"""What people ask of a session beside talking to it: end a turn, take a message back, decide about a call, hold it.

Each request has its place in the session's order, given by its row. It is made a fact here and carried out by the
owner alone; the due time is pulled to now for that, and never moved later.
"""

from __future__ import annotations

import sqlite3

from insika.storage.rows import (
    TERMINAL,
    Accepted,
    ApprovalDecision,
    Decided,
    Ended,
    TurnState,
    Verdict,
    Withdrawal,
)
from insika.storage.sqlite import mapping
from insika.storage.sqlite.queries import sql


def cancel(connection: sqlite3.Connection, turn_id: str, request_id: str) -> Accepted | None:
    found = connection.execute(sql("intake/find_turn"), {"turn_id": turn_id}).fetchone()
    if found is None:
        return None
    session_id, state, *address, mail_seq = found
    known = _known_request(connection, session_id, request_id, aim=turn_id)
    if known is not None:
        return Accepted(Verdict.DUPLICATE, session_id, turn_id, known, TurnState(state))
    if TurnState(state) in TERMINAL:
        return None
    position = mail_seq + 1
    connection.execute(sql("intake/place_cancel"), {"session_id": session_id, "position": position, "cuts": turn_id})
    connection.execute(sql("intake/remember_id"), (session_id, request_id, 1, turn_id, position, turn_id))
    aim = (session_id, position, request_id, "cancel", None, "", Verdict.CONTROL.value, turn_id, turn_id, None)
    connection.execute(sql("intake/insert_mail"), (*aim, 0, 0, *address, None, None))
    return Accepted(Verdict.CONTROL, session_id, turn_id, position, TurnState(state))


def withdraw(
    connection: sqlite3.Connection, session: str, job_id: str, *, request_id: str, tenant: str
) -> Withdrawal | None:
    values = {"tenant": tenant, "session": session, "job_id": job_id}
    found = connection.execute(sql("intake/find_message"), values).fetchone()
    if found is None:
        return None
    session_id, target, turn_id, *address, ended, consumed_by = found
    position = _known_request(connection, session_id, request_id, aim=str(target))
    if position is None and ended is None:
        (position,) = connection.execute(sql("intake/place_withdrawal"), {"session_id": session_id}).fetchone()
        connection.execute(sql("intake/remember_id"), (session_id, request_id, 1, str(target), position, turn_id))
        aim = (session_id, position, request_id, "withdraw", None, "", Verdict.CONTROL.value, turn_id, None, target)
        connection.execute(sql("intake/insert_mail"), (*aim, 0, 0, *address, None, None))
    return Withdrawal(session_id, target, position, None if ended is None else Ended(ended), consumed_by)


def decide(
    connection: sqlite3.Connection, approval_id: str, decision: ApprovalDecision, *, by: str, reason: str
) -> Decided | None:
    """Raises ValueError for what no person can decide: that an approval expires, or is void."""
    if decision not in (ApprovalDecision.APPROVED, ApprovalDecision.REJECTED):
        raise ValueError(f"a person approves or rejects a call; {decision.value} is neither")
    named = {"approval_id": approval_id}
    found = connection.execute(sql("intake/find_approval"), named).fetchone()
    if found is None:
        return None
    session_id, is_open, in_time = found
    won = bool(is_open and in_time)
    if is_open:
        said = (decision.value, by, reason) if won else (ApprovalDecision.EXPIRED.value, None, None)
        values = {**named, **dict(zip(("decision", "by", "reason"), said, strict=True))}
        connection.execute(sql("intake/decide_approval"), values)
        connection.execute(sql("intake/count_decision"), {"session_id": session_id})
    row = connection.execute(sql("reads/approval"), named).fetchone()
    return Decided(mapping.approval_row(row), won)


def set_paused(connection: sqlite3.Connection, name: str, paused: bool, tenant: str) -> bool:
    values = {"name": name, "tenant": tenant, "paused": int(paused)}
    return connection.execute(sql("intake/set_paused"), values).rowcount == 1


def _known_request(connection: sqlite3.Connection, session_id: int, request_id: str, *, aim: str) -> int | None:
    """Where the control message stands that was asked for under this id, with the same aim, within a day."""
    values = {"session_id": session_id, "request_id": request_id, "aim": aim}
    row = connection.execute(sql("intake/known_request"), values).fetchone()
    return None if row is None else int(row[0])
