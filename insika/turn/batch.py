"""Runs the calls of one batch: each is counted, found, written as started if it changes the world, run, recorded.

Holds, whatever dies in between: a call that changes the world is started at most once, unless its tool says that it
bears a second run with the same key; a call that has a result is never run again; and a call that started and has no
result is unknown, which is what the model is told. Results become messages elsewhere, all at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from insika.crash_points import Crash, CrashPoint
from insika.events import EventType
from insika.messages import ToolCall
from insika.ports import CallOutcome, Emit, Toolbox
from insika.storage.operations import CallResult
from insika.storage.rows import CallRow, CallState
from insika.turn import sentences
from insika.turn.log import TurnLog
from insika.turn.rules import TurnRules
from insika.turn.state import OpenBatch

FINISHED = frozenset({CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN})


class BatchRunner:
    """One turn's way of running batches. `concurrency`: how many calls of a batch may run at once, from 1."""

    def __init__(self, toolbox: Toolbox, log: TurnLog, emit: Emit, crash: Crash, concurrency: int) -> None:
        self._toolbox = toolbox
        self._log = log
        self._emit = emit
        self._crash = crash
        self._concurrency = concurrency

    async def run(self, batch: OpenBatch, rules: TurnRules) -> tuple[CallResult, ...]:
        """The N results in announced order. When the rules stop the turn, the calls before that point have run and
        the rest are answered as not run."""
        results: dict[int, CallResult] = {}
        admitted: list[CallRow] = []
        for row, call in zip(batch.calls, batch.message.tool_calls, strict=True):
            if self._admit(rules, call):
                admitted.append(row)
            else:
                results[row.index] = _not_run(row, str(rules.stopped_by.type if rules.stopped_by else ""))
        for result in await self._run_admitted(batch, admitted):
            results[result.index] = result
        ordered = tuple(results[row.index] for row in batch.calls)
        for result in ordered:
            rules.returned(result.content, halts=result.halts)
        return ordered

    def _admit(self, rules: TurnRules, call: ToolCall) -> bool:
        tool = self._toolbox.find(call.name)
        return rules.admit(call, repeatable=tool is not None and tool.repeatable)

    async def _run_admitted(self, batch: OpenBatch, rows: list[CallRow]) -> list[CallResult]:
        if self._concurrency == 1 or len(rows) <= 1:
            return [await self._settle(batch, row, last=row is rows[-1]) for row in rows]
        slots = asyncio.Semaphore(self._concurrency)

        async def in_slot(row: CallRow) -> CallResult:
            async with slots:
                return await self._settle(batch, row, last=False)

        # Whatever one call hears, the others run to their end and are recorded: what has started has started.
        ended = await asyncio.gather(*(in_slot(row) for row in rows), return_exceptions=True)
        for result in ended:
            if isinstance(result, BaseException):
                raise result
        return [result for result in ended if isinstance(result, CallResult)]

    async def _settle(self, batch: OpenBatch, row: CallRow, *, last: bool) -> CallResult:
        if row.state in FINISHED:
            return CallResult(row.index, row.call_id, row.state, row.result or "", row.is_error, row.halts)
        call = batch.message.tool_calls[row.index]
        result = await self._result_of(batch.step, row, call)
        # The last result of a batch without effects rides on the boundary: losing it costs one harmless run.
        if not (last and not row.side_effect):
            await self._log.finish_call(batch.step, result)
            self._crash(CrashPoint.CALL_RECORDED)
        return result

    async def _result_of(self, step: int, row: CallRow, call: ToolCall) -> CallResult:
        tool = self._toolbox.find(call.name)
        if row.state is CallState.STARTED and (tool is None or not tool.idempotent):
            return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)
        if tool is None:
            text = sentences.tool_not_available(call.name)
            return CallResult(row.index, row.call_id, CallState.NOT_RUN, text, is_error=True)
        if row.side_effect and row.state is CallState.ANNOUNCED:
            refusal = self._toolbox.refuse(call)
            if refusal is not None:
                return CallResult(row.index, row.call_id, CallState.NOT_RUN, refusal.content, is_error=True)
            self._log.may_start()
            await self._log.start_call(step, row.index)
        self._log.may_start()
        self._crash(CrashPoint.CALL_STARTED)
        self._emit(EventType.TOOL_CALLED, _about(step, row))
        outcome = await self._toolbox.run(call, step)
        self._crash(CrashPoint.CALL_RAN)
        result = _result(row, outcome)
        self._emit(EventType.TOOL_RETURNED, {**_about(step, row), "state": str(result.state), "error": result.is_error})
        return result


def _result(row: CallRow, outcome: CallOutcome) -> CallResult:
    if outcome.timed_out and row.side_effect:
        return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)
    return CallResult(row.index, row.call_id, CallState.DONE, outcome.content, outcome.is_error, outcome.halts)


def _not_run(row: CallRow, reason: str) -> CallResult:
    if row.state in FINISHED:
        return CallResult(row.index, row.call_id, row.state, row.result or "", row.is_error, row.halts)
    if row.state is CallState.STARTED:
        return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)
    return CallResult(row.index, row.call_id, CallState.NOT_RUN, sentences.not_run(reason), is_error=True)


def closing_results(calls: tuple[CallRow, ...], reason: str) -> tuple[CallResult, ...]:
    """What stands for the calls of a batch whose turn ends: results that exist, the unknown, and the not run."""
    return tuple(_not_run(row, reason) for row in calls)


def _about(step: int, row: CallRow) -> Mapping[str, Any]:
    return {"call_id": row.call_id, "tool": row.name, "step": step, "index": row.index}
