"""How an approval stands, in a person's words, for listings, decisions and the chat."""

from __future__ import annotations

import json
from datetime import datetime

from actors.cli.output import how_long, moment, on_one_line, one_line
from insika.storage.rows import ApprovalDecision, ApprovalRow, ApprovalSummary

_ABOUT_WIDTH = 100
_IN_FULL_MAX = 4_000


def asked_about(summary: ApprovalSummary) -> str:
    """The call, on one line: its tool and the beginning of its arguments."""
    arguments = json.dumps(summary.arguments, ensure_ascii=False)
    return f"{on_one_line(summary.approval.tool)} {one_line(arguments, _ABOUT_WIDTH)}"


def asked_about_in_full(summary: ApprovalSummary) -> tuple[str, str]:
    """The call with its arguments as they are, and what to add where some thousand characters of them were not all."""
    arguments = on_one_line(json.dumps(summary.arguments, ensure_ascii=False))
    tool = on_one_line(summary.approval.tool)
    if len(arguments) <= _IN_FULL_MAX:
        return f"{tool} {arguments}", ""
    shown = f"{tool} {arguments[:_IN_FULL_MAX]}…"
    return shown, f"\nThe arguments are cut here; `insika approvals show {summary.approval.id}` shows all of them."


def expires_in(summary: ApprovalSummary, now: datetime) -> str:
    return how_long((summary.approval.expires_at - now).total_seconds())


def stands(summary: ApprovalSummary, now: datetime) -> str:
    if summary.open:
        return f"waits, {expires_in(summary, now)} left"
    row = summary.approval
    match row.decision:
        case None:
            return "expired" if row.expires_at <= now else "void: its turn has ended"
        case ApprovalDecision.APPROVED | ApprovalDecision.REJECTED:
            return f"{row.decision} by {row.decided_by}"
        case ApprovalDecision.EXPIRED:
            return f"approved by {row.decided_by}, but expired before it ran" if row.decided_by else "expired"
        case ApprovalDecision.VOID:
            return f"approved by {row.decided_by}, but void before it ran" if row.decided_by else "void"


def why_not(row: ApprovalRow) -> str:
    """Of a decision that did not count."""
    at = moment(row.decided_at)
    match row.decision:
        case ApprovalDecision.APPROVED | ApprovalDecision.REJECTED:
            reason = f": {row.reason}" if row.reason else ""
            return f"this did not count: {row.decided_by} {row.decision} the call at {at}{reason}"
        case ApprovalDecision.EXPIRED if row.decided_by is None:
            return f"this did not count: its time was over at {moment(row.expires_at)}, so the call does not run"
        case ApprovalDecision.EXPIRED:
            return f"this did not count: {row.decided_by} approved the call, and its time was over before it ran"
        case _:
            return "this did not count: the turn has ended, or the call was denied, and nobody need decide any more"
