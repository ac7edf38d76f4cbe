"""The results that stand for calls, where a tool's own answer is not simply taken over: not run, unknown, given up.

Every call that was announced gets exactly one result, whatever became of it; what is said in place of an answer is
decided here, by what the call's row and a person's word tell and nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from insika.policy.approvals import Asked, Standing
from insika.ports import CallOutcome
from insika.storage.operations import CallResult
from insika.storage.rows import ApprovalDecision, CallRow, CallState
from insika.turn import sentences

FINISHED = frozenset({CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN})
_UNUSED = (None, ApprovalDecision.APPROVED)


def recorded(row: CallRow) -> CallResult:
    """The result of a call that has one."""
    return CallResult(row.index, row.call_id, row.state, row.result or "", row.is_error, row.halts)


def ran(row: CallRow, outcome: CallOutcome, *, effects: bool) -> CallResult:
    """What a tool answered. `effects`: the call may have changed the world, so that a time limit left it unknown."""
    if outcome.cut and effects:
        return unknown(row)
    return CallResult(row.index, row.call_id, CallState.DONE, outcome.content, outcome.is_error, outcome.halts)


def unknown(row: CallRow) -> CallResult:
    return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)


def refused(row: CallRow, text: str) -> CallResult:
    """`text` tells the model why it was not run. One that had started is unknown: it was run by code that took it."""
    if row.state is CallState.STARTED:
        return unknown(row)
    return CallResult(row.index, row.call_id, CallState.NOT_RUN, text, is_error=True)


def not_run(row: CallRow, reason: str) -> CallResult:
    """`reason` as for `sentences.not_run`. What has a result keeps it."""
    return recorded(row) if row.state in FINISHED else refused(row, sentences.not_run(reason))


def kept_back(row: CallRow, asked: Asked, definition: str = "") -> CallResult | None:
    """What a person's word, or its want, makes of a call that could run otherwise. None: it may run, or may yet.
    `definition`: the tool's, as it would run now."""
    if asked.standing is Standing.REJECTED:
        return refused(row, sentences.approval_rejected(asked.reason))
    if asked.standing is Standing.EXPIRED:
        late = asked.decision is ApprovalDecision.APPROVED
        return refused(row, sentences.APPROVED_TOO_EARLY if late else sentences.APPROVAL_NOT_GIVEN)
    if asked.standing is Standing.APPROVED and not asked.lets_run(row.name, row.arguments, definition):
        return refused(row, sentences.APPROVED_OTHERWISE)
    return None


def settles(result: CallResult, asked: Asked | None) -> CallResult:
    """The result, with what it makes of the question about its call: one that lets nothing run any more."""
    if asked is None or result.state is not CallState.NOT_RUN or asked.decision not in _UNUSED:
        return result
    ended = ApprovalDecision.EXPIRED if asked.standing is Standing.EXPIRED else ApprovalDecision.VOID
    return replace(result, approval=ended)


def closing_results(calls: tuple[CallRow, ...], reason: str) -> tuple[CallResult, ...]:
    """What stands for the calls of a batch whose turn ends from outside: results that exist, the unknown, the not run,
    and those of which nobody wrote down whether they had begun."""
    return tuple(_closed(row, reason) for row in calls)


def _closed(row: CallRow, reason: str) -> CallResult:
    if row.state is CallState.ANNOUNCED and not row.side_effect:
        return refused(row, sentences.given_up(reason))
    return not_run(row, reason)
