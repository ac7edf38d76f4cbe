"""Rows of the tables as values of `rows`. Each function takes the columns in the order its statements select them.

A row may come as itself or as a list out of a JSON text; only their times differ, which `_time` reads in both forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from insika.messages import Message, Role, ToolCall, Usage
from insika.storage.json_text import read_verbatim
from insika.storage.postgres.connection import read_time
from insika.storage.rows import (
    ApprovalDecision,
    ApprovalRow,
    ApprovalSummary,
    CallRow,
    CallState,
    Ended,
    Loaded,
    LogEntry,
    Mail,
    ModelCallRow,
    RejectedJob,
    Revision,
    SessionRow,
    SessionSummary,
    TurnRow,
    TurnState,
    Verdict,
)

Columns = Sequence[Any]


def _time(value: datetime | str) -> datetime:
    return read_time(value) if isinstance(value, str) else value


def _time_or_none(value: datetime | str | None) -> datetime | None:
    return None if value is None else _time(value)


def loaded(parts: Columns) -> Loaded:
    """The lists of one JSON text; a list of nothing comes as None."""
    now, session, mails, turn, calls, model_calls, log, approvals = parts
    return Loaded(
        session=session_row(session),
        now=_time(now),
        mail=tuple(map(mail, mails or ())),
        turn=None if turn is None else turn_row(turn),
        calls=tuple(map(call_row, calls or ())),
        model_calls=tuple(map(model_call_row, model_calls or ())),
        log=tuple(map(log_entry, log or ())),
        approvals=tuple(map(approval_row, approvals or ())),
    )


def session_row(row: Columns) -> SessionRow:
    return SessionRow(
        id=row[0],
        tenant=row[1],
        name=row[2],
        epoch=row[3],
        lease_id=row[4],
        lease_until=_time_or_none(row[5]),
        due_at=_time(row[6]),
        paused=row[7],
        mail_seq=row[8],
        urgent_seq=row[9],
        log_seq=row[10],
        waiting=row[11],
        open_calls=row[12],
        turn_id=row[13],
        turn_key=row[14],
        merge_turn=row[15],
        merge_key=row[16],
        deaths=row[17],
        load_from=row[18],
        vars=row[19],
        parked_ms=row[20],
    )


def session_summary(row: Columns) -> SessionSummary:
    tenant, name, waiting, turn_id, state, paused, due_at, owned, messages = row
    return SessionSummary(
        tenant=tenant,
        name=name,
        waiting=waiting,
        turn_id=turn_id,
        turn_state=None if state is None else TurnState(state),
        paused=paused,
        due_at=due_at,
        owned=owned,
        messages=messages,
    )


def mail(row: Columns) -> Mail:
    return Mail(
        position=row[0],
        job_id=row[1],
        mode=row[2],
        key=row[3],
        text=row[4],
        at=_time(row[5]),
        verdict=Verdict(row[6]),
        turn_id=row[7],
        cuts=row[8],
        debounce_ms=row[9],
        debounce_max_ms=row[10],
        agent=row[11],
        channel=row[12],
        recipient=row[13],
        origin=row[14],
        ended=None if row[15] is None else Ended(row[15]),
        consumed_by=row[16],
        customer=row[17],
        withdraws=row[18],
    )


def turn_row(row: Columns) -> TurnRow:
    (id_, session_id, position, state, outcome, attempt, agent, channel, recipient, origin, revision, limits) = row[:12]
    (synthesized, route, timing, error, started_seq, created_at, started_at, ended_at) = row[12:20]
    model, depth, routes = row[20:]
    return TurnRow(
        id=id_,
        session_id=session_id,
        position=position,
        state=TurnState(state),
        outcome=outcome,
        attempt=attempt,
        agent=agent,
        channel=channel,
        recipient=recipient,
        origin=origin,
        profile_revision=revision,
        limits=limits,
        synthesized=synthesized,
        route=route,
        timing=timing,
        error=error,
        started_seq=started_seq,
        created_at=_time(created_at),
        started_at=_time_or_none(started_at),
        ended_at=_time_or_none(ended_at),
        model=model,
        depth=depth,
        routes=tuple(routes),
    )


def call_row(row: Columns) -> CallRow:
    step, index, call_id, name, arguments, side_effect, state, result, is_error, halts = row
    return CallRow(step, index, call_id, name, arguments, side_effect, CallState(state), result, is_error, halts)


def model_call_row(row: Columns) -> ModelCallRow:
    turn_id, step, attempt, purpose, model, state, *usage, agent = row
    return ModelCallRow(turn_id, step, attempt, purpose, model, state, Usage(*usage), agent)


def approval_row(row: Columns) -> ApprovalRow:
    return ApprovalRow(
        id=row[0],
        turn_id=row[1],
        session_id=row[2],
        call_id=row[3],
        tool=row[4],
        arguments_hash=row[5],
        asked_at=_time(row[6]),
        expires_at=_time(row[7]),
        decision=None if row[8] is None else ApprovalDecision(row[8]),
        decided_by=row[9],
        reason=row[10],
        decided_at=_time_or_none(row[11]),
    )


def approval_summary(row: Columns) -> ApprovalSummary:
    tenant, session, agent, arguments, open_ = row[12:]
    return ApprovalSummary(approval_row(row), tenant, session, agent, arguments, open_)


def log_entry(row: Columns) -> LogEntry:
    seq, turn_id, epoch, step, role, content, tool_calls, tool_call_id, is_error, position, verbatim = row
    calls = () if tool_calls is None else tuple(ToolCall(**call) for call in tool_calls)
    message = Message(Role(role), content, calls, tool_call_id, is_error, read_verbatim(verbatim))
    return LogEntry(seq, turn_id, epoch, step, message, position)


def rejected_job(row: Columns) -> RejectedJob:
    number, at, source, raw, error, requeued_at = row
    return RejectedJob(number, at, source, raw, error, requeued_at)


def revision(row: Columns) -> Revision:
    revision_, name, data, source, at = row
    return Revision(revision_, name, data, source, at)
