"""Rows of the store as the JSON that commands print. The keys are part of the public surface: they may grow in number,
they may not change. Times are RFC 3339 in UTC; a tenant of null is the platform itself.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from actors.cli.output import rfc3339
from actors.samples.demo_agent import is_sample
from insika.clock import DUE_NOW
from insika.messages import Role, Usage
from insika.storage.rows import (
    ApprovalSummary,
    CallRow,
    LogEntry,
    Mail,
    ModelCallRow,
    RejectedJob,
    Revision,
    SessionRow,
    SessionSummary,
    TurnRow,
)
from insika.urls import redacted_url
from outbox.message import DeliveryRow

Json = dict[str, Any]


def session_json(row: SessionSummary) -> Json:
    return {
        "session": row.name,
        "tenant": row.tenant or None,
        "message_count": row.messages,
        "waiting": row.waiting,
        "turn_id": row.turn_id,
        "turn_state": row.turn_state,
        "owned": row.owned,
        "paused": row.paused,
        "due_now": row.due_at == DUE_NOW,
        "due_at": rfc3339(row.due_at),
    }


def session_row_json(row: SessionRow, turns: Iterable[TurnRow], now: datetime) -> Json:
    """All that `session_json` tells, and more. `turns` are the session's."""
    return {
        "session": row.name,
        "tenant": row.tenant or None,
        "message_count": row.log_seq,
        "waiting": row.waiting,
        "turn_id": row.turn_id,
        "turn_state": next((turn.state for turn in turns if turn.id == row.turn_id), None),
        "owned": row.lease_until is not None and row.lease_until >= now,
        "paused": row.paused,
        "due_now": row.due_at == DUE_NOW,
        "due_at": rfc3339(row.due_at),
        "lease_until": rfc3339(row.lease_until),
        "deaths": row.deaths,
        "vars": dict(row.vars),
    }


def turn_json(row: TurnRow) -> Json:
    return {
        "turn_id": row.id,
        "state": row.state,
        "outcome": row.outcome,
        "agent": row.agent,
        "channel": row.channel,
        "recipient": row.recipient,
        "origin": row.origin,
        "route": row.route,
        "attempt": row.attempt,
        "synthesized": row.synthesized,
        "error": row.error,
        "timing": dict(row.timing),
        "profile_revision": row.profile_revision,
        "created_at": rfc3339(row.created_at),
        "started_at": rfc3339(row.started_at),
        "ended_at": rfc3339(row.ended_at),
    }


def message_json(entry: LogEntry) -> Json:
    message = entry.message
    return {
        "seq": entry.seq,
        "turn_id": entry.turn_id,
        "step": entry.step,
        "role": message.role,
        "by": speaker(entry),
        "content": message.content,
        "tool_calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "is_error": message.is_error,
        "position": entry.position,
    }


def speaker(entry: LogEntry) -> str:
    """Who said it: what a person sent, and what the engine puts in between, both have the role `user`."""
    if entry.message.role is Role.USER:
        return "person" if entry.position is not None else "engine"
    return "agent" if entry.message.role is Role.ASSISTANT else "tool"


def mail_json(row: Mail) -> Json:
    return {
        "position": row.position,
        "id": row.job_id,
        "verdict": row.verdict,
        "mode": row.mode,
        "text": row.text,
        "at": rfc3339(row.at),
        "turn_id": row.turn_id,
        "consumed_by": row.consumed_by,
        "ended": row.ended,
        "cuts": row.cuts,
        "withdraws": row.withdraws,
        "agent": row.agent,
        "channel": row.channel,
        "recipient": row.recipient,
        "origin": row.origin,
        "customer": row.customer,
    }


def call_json(row: CallRow) -> Json:
    return {
        "step": row.step,
        "index": row.index,
        "call_id": row.call_id,
        "tool": row.name,
        "arguments": row.arguments,
        "side_effect": row.side_effect,
        "state": row.state,
        "result": row.result,
        "is_error": row.is_error,
        "halts": row.halts,
    }


def approval_json(summary: ApprovalSummary) -> Json:
    """`open`: a decision would still count."""
    row = summary.approval
    return {
        "approval_id": row.id,
        "session": summary.session,
        "tenant": summary.tenant or None,
        "agent": summary.agent,
        "turn_id": row.turn_id,
        "call_id": row.call_id,
        "tool": row.tool,
        "arguments": summary.arguments,
        "open": summary.open,
        "decision": row.decision,
        "decided_by": row.decided_by,
        "reason": row.reason or None,
        "asked_at": rfc3339(row.asked_at),
        "expires_at": rfc3339(row.expires_at),
        "decided_at": rfc3339(row.decided_at),
    }


def model_call_json(row: ModelCallRow) -> Json:
    return {
        "step": row.step,
        "attempt": row.attempt,
        "purpose": row.purpose,
        "model": row.model,
        "state": row.state,
        "usage": usage_json(row.usage),
    }


def usage_json(usage: Usage) -> Json:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "total": usage.total,
    }


def spent(rows: Iterable[ModelCallRow]) -> Usage:
    return sum((row.usage for row in rows), Usage())


def delivery_json(row: DeliveryRow) -> Json:
    return {
        "id": row.id,
        "state": row.state,
        "channel": row.channel,
        "recipient": row.recipient,
        "kind": row.kind,
        "url": redacted_url(row.url),
        "guarantee": row.guarantee,
        "attempts": row.attempts,
        "max_attempts": row.max_attempts,
        "resends": row.resends,
        "possible_duplicate": row.possible_duplicate,
        "reason": row.reason,
        "lane": row.lane,
        "lane_position": row.lane_pos,
        "payload": dict(row.payload),
        "created_at": rfc3339(row.created_at),
        "due_at": rfc3339(row.due_at),
        "claimed_at": rfc3339(row.claimed_at),
        "claim_until": rfc3339(row.claim_until),
        "settled_at": rfc3339(row.settled_at),
    }


def rejected_json(row: RejectedJob) -> Json:
    """`raw` is the body as it came; where that is no UTF-8 it stands in `raw_base64` instead."""
    try:
        raw, encoded = row.raw.decode(), None
    except UnicodeDecodeError:
        raw, encoded = None, base64.b64encode(row.raw).decode()
    return {
        "number": row.id,
        "at": rfc3339(row.at),
        "source": row.source,
        "error": dict(row.error),
        "requeued_at": rfc3339(row.requeued_at),
        "raw": raw,
        "raw_base64": encoded,
    }


def revision_json(row: Revision) -> Json:
    """`source` is `operator`, `file` for what was read at boot, or `built in` for the sample agent."""
    return {"revision": row.revision, "source": applied_by(row), "applied_at": rfc3339(row.at)}


def applied_by(row: Revision) -> str:
    source = row.source.partition(":")[0]
    # The sample agent is put in force as a file is, so that it gives way to what an operator says.
    return "built in" if source == "file" and is_sample(row.data) else source
