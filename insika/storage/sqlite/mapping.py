"""Rows of the tables as values of `rows`. Each function takes the columns in the order its statements select them."""

from __future__ import annotations

import json
from typing import Any

from insika.messages import Message, Role, ToolCall, Usage
from insika.storage.json_text import read_verbatim
from insika.storage.rows import (
    ApprovalDecision,
    ApprovalRow,
    ApprovalSummary,
    CallRow,
    CallState,
    Ended,
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
from insika.storage.sqlite.times import from_micros, from_micros_or_none

Row = tuple[Any, ...]


def from_json(text: str) -> Any:
    return {} if text == "{}" else json.loads(text)


def session_row(row: Row) -> SessionRow:
    return SessionRow(
        id=row[0],
        tenant=row[1],
        name=row[2],
        epoch=row[3],
        lease_id=row[4],
        lease_until=from_micros_or_none(row[5]),
        due_at=from_micros(row[6]),
        paused=bool(row[7]),
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
        vars=from_json(row[19]),
        parked_ms=row[20],
    )


def session_summary(row: Row) -> SessionSummary:
    tenant, name, waiting, turn_id, state, paused, due_at, owned, messages = row
    return SessionSummary(
        tenant=tenant,
        name=name,
        waiting=waiting,
        turn_id=turn_id,
        turn_state=None if state is None else TurnState(state),
        paused=bool(paused),
        due_at=from_micros(due_at),
        owned=bool(owned),
        messages=messages,
    )


def mail(row: Row) -> Mail:
    return Mail(
        position=row[0],
        job_id=row[1],
        mode=row[2],
        key=row[3],
        text=row[4],
        at=from_micros(row[5]),
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


def turn_row(row: Row) -> TurnRow:
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
        limits=None if limits is None else from_json(limits),
        synthesized=bool(synthesized),
        route=route,
        timing=from_json(timing),
        error=None if error is None else from_json(error),
        started_seq=started_seq,
        created_at=from_micros(created_at),
        started_at=from_micros_or_none(started_at),
        ended_at=from_micros_or_none(ended_at),
        model=model,
        depth=depth,
        routes=tuple(json.loads(routes)),
    )


def call_row(row: Row) -> CallRow:
    step, index, call_id, name, arguments, side_effect, state, result, is_error, halts = row
    return CallRow(
        step,
        index,
        call_id,
        name,
        from_json(arguments),
        bool(side_effect),
        CallState(state),
        result,
        bool(is_error),
        bool(halts),
    )


def model_call_row(row: Row) -> ModelCallRow:
    turn_id, step, attempt, purpose, model, state, *usage, agent = row
    return ModelCallRow(turn_id, step, attempt, purpose, model, state, Usage(*usage), agent)


def approval_row(row: Row) -> ApprovalRow:
    return ApprovalRow(
        id=row[0],
        turn_id=row[1],
        session_id=row[2],
        call_id=row[3],
        tool=row[4],
        arguments_hash=row[5],
        asked_at=from_micros(row[6]),
        expires_at=from_micros(row[7]),
        decision=None if row[8] is None else ApprovalDecision(row[8]),
        decided_by=row[9],
        reason=row[10],
        decided_at=from_micros_or_none(row[11]),
    )


def approval_summary(row: Row) -> ApprovalSummary:
    tenant, session, agent, arguments, open_ = row[12:]
    return ApprovalSummary(approval_row(row), tenant, session, agent, from_json(arguments), bool(open_))


def log_entry(row: Row) -> LogEntry:
    seq, turn_id, epoch, step, role, content, tool_calls, tool_call_id, is_error, position, verbatim = row
    calls = () if tool_calls is None else tuple(ToolCall(**call) for call in json.loads(tool_calls))
    message = Message(Role(role), content, calls, tool_call_id, bool(is_error), read_verbatim(verbatim))
    return LogEntry(seq, turn_id, epoch, step, message, position)


def rejected_job(row: Row) -> RejectedJob:
    number, at, source, raw, error, requeued_at = row
    return RejectedJob(number, from_micros(at), source, raw, from_json(error), from_micros_or_none(requeued_at))


def revision(row: Row) -> Revision:
    revision_, name, data, source, at = row
    return Revision(revision_, name, from_json(data), source, from_micros(at))
