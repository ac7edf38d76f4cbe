"""Runs the calls of one batch: each is counted, found, written as started if it changes the world, run, recorded.

Holds, whatever dies in between: a call that changes the world is started at most once, unless its tool says that it
bears a second run with the same key; a call that has a result is never run again; and a call that started and has no
result is unknown, which is what the model is told. Results become messages elsewhere, all at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from insika.crash_points import Crash, CrashPoint
from insika.errors import TurnTimeout
from insika.events import EventType
from insika.messages import ToolCall
from insika.ports import CallOutcome, Emit, Toolbox, ToolTraits
from insika.storage.operations import CallResult
from insika.storage.rows import CallRow, CallState
from insika.turn import sentences
from insika.turn.log import TurnLog
from insika.turn.rules import TurnRules
from insika.turn.state import OpenBatch

FINISHED = frozenset({CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN})


class BatchRunner:
    """One turn's way of running batches. `concurrency`: how many calls of a batch may run at once, from 1.
    `out_of_time`: the turn has had its time, so that no further call may begin."""

    def __init__(  # noqa: PLR0917 - six, of which four are the turn's ports
        self,
        toolbox: Toolbox,
        log: TurnLog,
        emit: Emit,
        crash: Crash,
        concurrency: int,
        out_of_time: Callable[[], bool],
    ) -> None:
        self._toolbox = toolbox
        self._log = log
        self._emit = emit
        self._crash = crash
        self._concurrency = concurrency
        self._out_of_time = out_of_time

    async def run(self, batch: OpenBatch, rules: TurnRules) -> tuple[CallResult, ...]:
        """The N results in announced order. When the rules stop the turn, the calls before that point have run and
        the rest are answered as not run."""
        results: dict[int, CallResult] = {}
        admitted: list[CallRow] = []
        for row, call in zip(batch.calls, batch.message.tool_calls, strict=True):
            if rules.admit(call, repeatable=self._toolbox.repeatable(call.name)):
                admitted.append(row)
            else:
                results[row.index] = _not_run(row, str(rules.stopped_by.type if rules.stopped_by else ""))
        for result in await self._run_admitted(batch, admitted):
            results[result.index] = result
        ordered = tuple(results[row.index] for row in batch.calls)
        for result in ordered:
            rules.returned(result.content, halts=result.halts)
        return ordered

    async def _run_admitted(self, batch: OpenBatch, rows: list[CallRow]) -> list[CallResult]:
        if self._concurrency == 1 or len(rows) <= 1:
            return [await self._settle(batch, row, last=row is rows[-1]) for row in rows]
        slots = asyncio.Semaphore(self._concurrency)
        heard: list[BaseException] = []

        async def in_slot(row: CallRow) -> CallResult | None:
            async with slots:
                if heard:
                    return None
                try:
                    return await self._settle(batch, row, last=False)
                except BaseException as news:
                    heard.append(news)
                    raise

        # Whatever one call hears, those that have started run to their end and are recorded; no other begins.
        ended = await asyncio.gather(*(in_slot(row) for row in rows), return_exceptions=True)
        if heard:
            raise heard[0]
        return [result for result in ended if isinstance(result, CallResult)]

    async def _settle(self, batch: OpenBatch, row: CallRow, *, last: bool) -> CallResult:
        if row.state in FINISHED:
            return CallResult(row.index, row.call_id, row.state, row.result or "", row.is_error, row.halts)
        call = batch.message.tool_calls[row.index]
        tool = self._toolbox.find(call.name)
        # What a name means may have changed since the call was announced: either is reason enough to be careful.
        effects = row.side_effect or (tool is not None and tool.side_effect)
        result = await self._result_of(batch.step, row, call, tool, effects=effects)
        # The last result of a batch, without effects, rides on the boundary: losing it costs one harmless run.
        if not last or effects:
            await self._log.finish_call(batch.step, result)
            self._crash(CrashPoint.CALL_RECORDED)
        return result

    async def _result_of(
        self, step: int, row: CallRow, call: ToolCall, tool: ToolTraits | None, *, effects: bool
    ) -> CallResult:
        if row.state is CallState.STARTED and (tool is None or not tool.idempotent):
            return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)
        if tool is None:
            text = sentences.tool_not_available(call.name)
            return CallResult(row.index, row.call_id, CallState.NOT_RUN, text, is_error=True)
        if row.state is CallState.ANNOUNCED and self._out_of_time():
            return _not_run(row, TurnTimeout.type)
        if (refusal := self._toolbox.refuse(call)) is not None:
            # One that had started was run by code that took these arguments: what came of it is not known.
            state = CallState.NOT_RUN if row.state is CallState.ANNOUNCED else CallState.UNKNOWN
            text = refusal.content if row.state is CallState.ANNOUNCED else sentences.UNKNOWN_OUTCOME
            return CallResult(row.index, row.call_id, state, text, is_error=True)
        if effects and row.state is CallState.ANNOUNCED:
            self._log.may_start()
            await self._log.start_call(step, row.index)
        self._log.may_start()
        self._crash(CrashPoint.CALL_STARTED)
        self._emit(EventType.TOOL_CALLED, _about(step, row))
        outcome = await self._toolbox.run(call, step)
        self._crash(CrashPoint.CALL_RAN)
        result = _result(row, outcome, effects=effects)
        self._emit(EventType.TOOL_RETURNED, {**_about(step, row), "state": str(result.state), "error": result.is_error})
        return result


def _result(row: CallRow, outcome: CallOutcome, *, effects: bool) -> CallResult:
    if outcome.timed_out and effects:
        return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)
    return CallResult(row.index, row.call_id, CallState.DONE, outcome.content, outcome.is_error, outcome.halts)


def _not_run(row: CallRow, reason: str) -> CallResult:
    if row.state in FINISHED:
        return CallResult(row.index, row.call_id, row.state, row.result or "", row.is_error, row.halts)
    if row.state is CallState.STARTED:
        return CallResult(row.index, row.call_id, CallState.UNKNOWN, sentences.UNKNOWN_OUTCOME, is_error=True)
    return CallResult(row.index, row.call_id, CallState.NOT_RUN, sentences.not_run(reason), is_error=True)


def closing_results(calls: tuple[CallRow, ...], reason: str) -> tuple[CallResult, ...]:
    """What stands for the calls of a batch whose turn ends from outside: results that exist, the unknown, the not run,
    and those of which nobody wrote down whether they had begun."""
    return tuple(_closed(row, reason) for row in calls)


def _closed(row: CallRow, reason: str) -> CallResult:
    if row.state is CallState.ANNOUNCED and not row.side_effect:
        return CallResult(row.index, row.call_id, CallState.NOT_RUN, sentences.given_up(reason), is_error=True)
    return _not_run(row, reason)


def _about(step: int, row: CallRow) -> Mapping[str, Any]:
    return {"call_id": row.call_id, "tool": row.name, "step": step, "index": row.index}
