"""Who owns a session: claiming it, loading it, letting it go, and finding those that want an owner.

Time decides who may claim; the lease's id alone decides who may write.
"""

from __future__ import annotations

import os
import sqlite3
from datetime import datetime

from insika.messages import Usage
from insika.storage.operations import Fence, Release, Seen
from insika.storage.rows import Claim, Loaded
from insika.storage.sqlite import mapping, reads
from insika.storage.sqlite.model_calls import estimate_open
from insika.storage.sqlite.queries import sql
from insika.storage.sqlite.times import NEVER_US, from_micros, to_micros


def claim(
    connection: sqlite3.Connection,
    session_id: int,
    lease_s: float,
    *,
    take_expired: bool,
    take_suspects: bool,
    lease_id: str,
) -> Claim | None:
    lease_id = lease_id or os.urandom(16).hex()
    ours_already = confirm(connection, Fence(session_id, lease_id))
    values = {
        "session_id": session_id,
        "lease_id": lease_id,
        "lease_us": int(lease_s * 1_000_000),
        "take_expired": int(take_expired),
        "take_suspects": int(take_suspects),
    }
    row = connection.execute(sql("ownership/claim"), values).fetchone()
    if row is None:
        return None
    epoch, deaths, turn_id = row
    if turn_id is not None and not ours_already:
        connection.execute(sql("ownership/count_attempt"), {"turn_id": turn_id})
    return Claim(session_id, lease_id, epoch, deaths)


def load(connection: sqlite3.Connection, fence: Fence, log_after: int) -> Loaded | None:
    fenced = {"session_id": fence.session_id, "lease_id": fence.lease_id}
    row = connection.execute(sql("ownership/load_session"), fenced).fetchone()
    if row is None:
        return None
    session = mapping.session_row(row)
    turn = None if session.turn_id is None else reads.turn(connection, session.turn_id)
    after = {"session_id": session.id, "after": max(log_after, session.load_from - 1), "turn_id": session.turn_id}
    return Loaded(
        session=session,
        now=from_micros(row[21]),
        mail=tuple(map(mapping.mail, connection.execute(sql("ownership/load_mail"), fenced))),
        turn=turn,
        calls=() if turn is None else reads.calls(connection, turn.id),
        model_calls=() if turn is None else reads.model_calls(connection, turn.id),
        log=tuple(map(mapping.log_entry, connection.execute(sql("ownership/load_log"), after))),
        approvals=() if turn is None else reads.approvals_of(connection, turn.id),
    )


def confirm(connection: sqlite3.Connection, fence: Fence) -> bool:
    fenced = {"session_id": fence.session_id, "lease_id": fence.lease_id}
    return connection.execute(sql("ownership/confirm"), fenced).rowcount == 1


def release(connection: sqlite3.Connection, fence: Fence, seen: Seen, release: Release) -> bool:
    values = {
        "session_id": fence.session_id,
        "lease_id": fence.lease_id,
        "mail": seen.mail,
        "due_at": to_micros(release.due_at),
    }
    return connection.execute(sql("ownership/release"), values).rowcount == 1


def release_for_drain(connection: sqlite3.Connection, fence: Fence, unknown_result: str, estimate: Usage) -> bool:
    fenced = {"session_id": fence.session_id, "lease_id": fence.lease_id}
    row = connection.execute(sql("ownership/release_for_drain"), fenced).fetchone()
    if row is None:
        return False
    if row[0] is not None:
        values = {"turn_id": row[0], "result": unknown_result}
        connection.execute(sql("ownership/forget_started_calls"), values)
        estimate_open(connection, row[0], estimate)
    return True


def find_due(connection: sqlite3.Connection, limit: int) -> list[int]:
    return [row[0] for row in connection.execute(sql("ownership/find_due"), {"limit": limit})]


def nudge_due(connection: sqlite3.Connection, limit: int) -> tuple[int, ...]:
    """Those that are due, counted as nudged, so that two who ask at once get different ones."""
    due = find_due(connection, limit)
    connection.executemany(sql("ownership/nudge"), [{"session_id": session_id} for session_id in due])
    return tuple(due)


def wake_due(connection: sqlite3.Connection) -> int:
    return connection.execute(sql("ownership/wake_due")).rowcount


def next_due_at(connection: sqlite3.Connection) -> datetime:
    (session,) = connection.execute(sql("ownership/next_due_session")).fetchone()
    (delivery,) = connection.execute(sql("ownership/next_due_delivery")).fetchone()
    return from_micros(min(NEVER_US if at is None else at for at in (session, delivery)))
