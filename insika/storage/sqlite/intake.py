"""What producers do: the verdict of a job, and the jobs that came to nothing.

A verdict is taken from the columns of the session row alone, and everything it entails is written with it. Producers
add mail and pull the due time earlier; they move it later, or touch what was accepted before, never.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from insika.storage.json_text import to_json
from insika.storage.operations import AcceptJob
from insika.storage.rows import Accepted, RejectedJob, TurnState, Verdict
from insika.storage.sqlite import mapping
from insika.storage.sqlite.queries import sql
from insika.storage.sqlite.times import to_micros

_OWN_TURN = (Verdict.ACCEPTED, Verdict.INTERRUPTING)


@dataclass(frozen=True, slots=True)
class _Session:
    """The columns that decide."""

    id: int
    mail_seq: int = 0
    waiting: int = 0
    turn_id: str | None = None
    turn_key: str | None = None
    merge_turn: str | None = None
    merge_key: str | None = None


@dataclass(frozen=True, slots=True)
class _Decision:
    """`merge_turn` and `merge_key`: what the next message may merge into. `waits_ms` None: due now."""

    verdict: Verdict
    turn_id: str | None
    merge_turn: str | None = None
    merge_key: str | None = None
    cuts: str | None = None
    waits_ms: int | None = None


def accept(connection: sqlite3.Connection, job: AcceptJob) -> Accepted:
    names = {"tenant": job.tenant, "session": job.session, "job_id": job.job_id}
    row = connection.execute(sql("intake/find_session"), names).fetchone()
    if row is None:
        session_vars = _merged(job.session_vars, job.var_updates)
        values = {"tenant": job.tenant, "session": job.session, "vars": to_json(session_vars)}
        (session_id,) = connection.execute(sql("intake/insert_session"), values).fetchone()
        return _place(connection, job, _Session(session_id), session_vars)
    *columns, vars_json, digest, position, turn_id, fresh = row
    session = _Session(*columns)
    if fresh and digest == job.digest:
        return _duplicate(connection, session.id, position, turn_id)
    if fresh:
        reason = "this id was given to another text within the last 24 hours: a new message needs an id of its own"
        return _reject(connection, job, session.id, {"type": "invalid_job", "message": reason, "field": "id"})
    return _place(connection, job, session, _merged(mapping.from_json(vars_json), job.var_updates))


def reject(connection: sqlite3.Connection, raw: bytes, error: Mapping[str, Any], source: str) -> int:
    values = {"source": source, "raw": raw, "error": to_json(error)}
    number: int = connection.execute(sql("intake/insert_rejected"), values).fetchone()[0]
    return number


def rejected_jobs(connection: sqlite3.Connection, limit: int) -> tuple[RejectedJob, ...]:
    return tuple(map(mapping.rejected_job, connection.execute(sql("reads/rejected_jobs"), {"limit": limit})))


def rejected_job(connection: sqlite3.Connection, number: int) -> RejectedJob | None:
    row = connection.execute(sql("reads/rejected_job"), {"id": number}).fetchone()
    return None if row is None else mapping.rejected_job(row)


def mark_requeued(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute(sql("intake/mark_requeued"), {"id": number}).rowcount == 1


def _place(
    connection: sqlite3.Connection, job: AcceptJob, session: _Session, session_vars: Mapping[str, Any]
) -> Accepted:
    if session.waiting >= job.mailbox_max:
        reason = f"the mailbox is full: {session.waiting} messages wait, at most {job.mailbox_max} may. Try again later"
        return _reject(connection, job, session.id, {"type": "mailbox_full", "message": reason})
    mode = _mode(job, session_vars)
    key = job.key if job.takes_steers else None
    decision = _decide(job, mode, key, session)
    position, turn_id = session.mail_seq + 1, decision.turn_id
    placed = {
        "session_id": session.id,
        "position": position,
        "cuts": decision.cuts,
        "merge_turn": decision.merge_turn,
        "merge_key": decision.merge_key,
        "waits_ms": decision.waits_ms,
        "vars": to_json(session_vars),
    }
    connection.execute(sql("intake/place_job"), placed)
    connection.execute(sql("intake/remember_id"), (session.id, job.job_id, 0, job.digest, position, turn_id))
    address = (job.agent, job.channel, job.recipient, job.origin)
    if decision.verdict in _OWN_TURN:
        connection.execute(sql("intake/insert_queued_turn"), (turn_id, session.id, position, *address))
    message = (session.id, position, job.job_id, mode, key, job.text, decision.verdict.value, turn_id, decision.cuts)
    sent_at = None if job.sent_at is None else to_micros(job.sent_at)
    record = (None, job.debounce_ms, job.debounce_max_ms, *address, job.customer, sent_at)
    connection.execute(sql("intake/insert_mail"), (*message, *record))
    return Accepted(decision.verdict, session.id, turn_id, position)


def _decide(job: AcceptJob, mode: str, key: str | None, session: _Session) -> _Decision:
    """A message that does not merge ends the merging before it; then it may be merged into itself, if it collects.

    A steer with a debounce window that no turn takes collects too."""
    if mode == "interrupt" and session.turn_id is not None:
        return _Decision(Verdict.INTERRUPTING, job.turn_id, cuts=session.turn_id)
    if key is None:
        return _Decision(Verdict.ACCEPTED, job.turn_id)
    if mode == "steer" and key == session.turn_key:
        return _Decision(Verdict.STEERED, session.turn_id)
    if mode == "collect" or (mode == "steer" and job.debounce_ms > 0):
        waits_ms = job.debounce_ms if job.debounce_ms > 0 else None
        merges = key == session.merge_key
        turn_id = session.merge_turn if merges else job.turn_id
        verdict = Verdict.MERGED if merges else Verdict.ACCEPTED
        return _Decision(verdict, turn_id, merge_turn=turn_id, merge_key=key, waits_ms=waits_ms)
    return _Decision(Verdict.ACCEPTED, job.turn_id)


def _mode(job: AcceptJob, session_vars: Mapping[str, Any]) -> str:
    if job.origin != "customer":  # what the engine or a timer says never steers or interrupts a person's turn
        return "followup"
    return job.mode or session_vars.get("queue_mode") or job.default_mode


def _merged(session_vars: Mapping[str, Any], updates: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**session_vars, **updates}.items() if value is not None}


def _duplicate(connection: sqlite3.Connection, session_id: int, position: int, accepted_for: str) -> Accepted:
    values = {"session_id": session_id, "position": position}
    found = connection.execute(sql("intake/first_turn"), values).fetchone()
    turn_id, state = (accepted_for, None) if found is None else (found[0], TurnState(found[1]))
    return Accepted(Verdict.DUPLICATE, session_id, turn_id, position, state)


def _reject(connection: sqlite3.Connection, job: AcceptJob, session_id: int, error: Mapping[str, Any]) -> Accepted:
    number = reject(connection, job.raw, error, "accept")
    why: str = error["message"]
    return Accepted(Verdict.REJECTED, session_id, reason=why, field=error.get("field"), rejected_job=number)
