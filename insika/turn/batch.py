"""Runs the calls of one batch: each is counted, found, checked, approved where it must be, written as started if it
changes the world, run, recorded.

Holds, whatever dies in between: a call that changes the world is started at most once, unless its tool says that it
bears a second run with the same key; a call that has a result is never run again; and a call that started and has no
result is unknown, which is what the model is told. Results become messages elsewhere, all at once.

Where a person must decide, all else of the batch runs first and is recorded, a call that ends the turn among it; then
the turn waits. A batch that the rules have stopped asks nobody: what its model is told next does not depend on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from insika.crash_points import CrashPoint
from insika.errors import TurnTimeout
from insika.events import EventType
from insika.ports import ToolTraits
from insika.storage.operations import CallResult
from insika.storage.rows import CallRow, CallState
from insika.turn import sentences
from insika.turn.approval_gate import ApprovalGate
from insika.turn.call_results import FINISHED, kept_back, not_run, ran, recorded, refused, settles, unknown
from insika.turn.log import Superseded
from insika.turn.ports import TurnPorts
from insika.turn.rules import TurnRules
from insika.turn.state import OpenBatch, TurnIdentity


class BatchRunner:
    """One turn's way of running batches. `out_of_time`: the turn has had its time, so that no further call may begin
    and nobody is waited for."""

    def __init__(self, turn: TurnIdentity, ports: TurnPorts, out_of_time: Callable[[], bool]) -> None:
        self._toolbox = ports.toolbox
        self._log = ports.log
        self._emit = ports.emit
        self._crash = ports.crash
        self._gate = ApprovalGate(turn, ports)
        self._concurrency = turn.limits.tool_concurrency
        self._out_of_time = out_of_time
        self._riding: CallResult | None = None

    async def run(self, batch: OpenBatch, rules: TurnRules) -> tuple[CallResult, ...]:
        """The N results in announced order. When the rules stop the turn, the calls before that point have run and
        the rest are answered as not run. Raises Suspended when the turn waits for a person."""
        self._riding = None
        results: dict[int, CallResult] = {}
        admitted: list[CallRow] = []
        stopped: list[CallRow] = []
        for row, call in zip(batch.calls, batch.message.tool_calls, strict=True):
            may_run = rules.admit(call, repeatable=self._toolbox.repeatable(call.name))
            (admitted if may_run else stopped).append(row)
        stop = str(rules.stopped_by.type) if rules.stopped_by is not None else None
        for row in stopped:
            results[row.index] = await self._record(batch, row, not_run(row, stop or ""), rides=True)
        for result in await self._run_admitted(batch, admitted, stop):
            results[result.index] = result
        ordered = tuple(results[row.index] for row in batch.calls)
        for result in ordered:
            rules.returned(result.content, halts=result.halts)
        return ordered

    async def record_late(self, batch: OpenBatch) -> None:
        """The batch will not be closed as it was meant to be: record what a call has answered and was to be written
        with that. What was done was done, also when the turn is cut. Raises Superseded when it may not be written."""
        if self._riding is not None:
            riding, self._riding = self._riding, None
            await self._log.finish_call(batch.step, riding)

    async def _run_admitted(self, batch: OpenBatch, rows: list[CallRow], stop: str | None) -> list[CallResult]:
        waiting = {row.index: row for row in rows if stop is None and self._waits(batch, row)}
        batch = await self._gate.ask(batch, waiting.values())
        others = [row for row in rows if row.index not in waiting]
        ended = await self._run_all(batch, others, stop, rides=not waiting)
        if waiting and not self._out_of_time():
            await self._gate.wait(batch, len(waiting))
        return ended + [await self._settle(batch, row, stop) for row in waiting.values()]

    async def _run_all(
        self, batch: OpenBatch, rows: list[CallRow], stop: str | None, *, rides: bool
    ) -> list[CallResult]:
        if self._concurrency == 1 or len(rows) <= 1:
            return [await self._settle(batch, row, stop, rides=rides and row is rows[-1]) for row in rows]
        slots = asyncio.Semaphore(self._concurrency)
        heard: list[BaseException] = []

        async def in_slot(row: CallRow) -> CallResult | None:
            async with slots:
                if heard:
                    return None
                try:
                    return await self._settle(batch, row, stop)
                except BaseException as news:
                    heard.append(news)
                    raise

        # Whatever one call hears, those that have started run to their end and are recorded; no other begins.
        ended = await asyncio.gather(*(in_slot(row) for row in rows), return_exceptions=True)
        if heard:
            raise heard[0]
        return [result for result in ended if isinstance(result, CallResult)]

    def _waits(self, batch: OpenBatch, row: CallRow) -> bool:
        """Nothing but a person's word keeps this call from running."""
        if row.state is not CallState.ANNOUNCED or not self._gate.undecided(batch, row):
            return False
        return self._refusal(batch, row, self._toolbox.find(row.name)) is None

    async def _settle(self, batch: OpenBatch, row: CallRow, stop: str | None, *, rides: bool = False) -> CallResult:
        """`rides`: its result may be written at the boundary, with all others."""
        if row.state in FINISHED:
            return recorded(row)
        tool = self._toolbox.find(row.name)
        # What a name means may have changed since the call was announced: either is reason enough to be careful. What
        # a person was asked about is written as started too: that write is what proves the approval.
        effects = row.side_effect or row.call_id in batch.asked or (tool is not None and tool.side_effect)
        result = await self._result_of(batch, row, tool, stop, effects=effects)
        # The last result of a batch, without effects, rides on the boundary: losing it costs one harmless run.
        return await self._record(batch, row, result, rides=rides and not effects)

    async def _record(self, batch: OpenBatch, row: CallRow, result: CallResult, *, rides: bool) -> CallResult:
        asked = batch.asked.get(row.call_id)
        if row.state in FINISHED or (rides and asked is None):
            if row.state not in FINISHED and result.state is CallState.DONE:
                self._riding = result
            return result
        result = settles(result, asked)
        await self._log.finish_call(batch.step, result)
        self._crash(CrashPoint.CALL_RECORDED)
        if asked is not None and result.approval is not None:
            self._gate.tell(batch, row, result.approval)
        return result

    async def _result_of(
        self, batch: OpenBatch, row: CallRow, tool: ToolTraits | None, stop: str | None, *, effects: bool
    ) -> CallResult:
        if (refusal := self._refusal(batch, row, tool)) is not None:
            return refusal
        asked = batch.asked.get(row.call_id)
        if row.state is CallState.ANNOUNCED:
            if self._gate.undecided(batch, row):
                if stop is None:  # it has come to need approval since the batch was looked at
                    raise Superseded
                return not_run(row, stop)
            if effects:
                self._log.may_start()
                proof = asked.arguments_hash if asked is not None else None
                await self._log.start_call(batch.step, row.index, arguments_hash=proof)
        self._log.may_start()
        self._crash(CrashPoint.CALL_STARTED)
        self._emit(EventType.TOOL_CALLED, _about(batch.step, row))
        outcome = await self._toolbox.run(batch.message.tool_calls[row.index], batch.step)
        self._crash(CrashPoint.CALL_RAN)
        result = ran(row, outcome, effects=effects)
        returned = {"state": str(result.state), "error": result.is_error}
        self._emit(EventType.TOOL_RETURNED, {**_about(batch.step, row), **returned})
        return result

    def _refusal(self, batch: OpenBatch, row: CallRow, tool: ToolTraits | None) -> CallResult | None:
        """Why this call does not run, as things stand now. None: it may, once a person has said so where one must.
        What the model did not write to its end comes first: nobody is asked about it, by any door."""
        if row.state is CallState.STARTED and (tool is None or not tool.idempotent):
            return unknown(row)
        if batch.message.tool_calls[row.index].cut_off:
            return refused(row, sentences.CUT_OFF)
        if tool is None:
            return refused(row, sentences.tool_not_available(row.name))
        if row.state is CallState.ANNOUNCED and self._out_of_time():
            return not_run(row, TurnTimeout.type)
        if (refusal := self._toolbox.refuse(batch.message.tool_calls[row.index])) is not None:
            return refused(row, refusal.content)
        asked = batch.asked.get(row.call_id)
        announced = row.state is CallState.ANNOUNCED
        return kept_back(row, asked, tool.definition) if asked is not None and announced else None


def _about(step: int, row: CallRow) -> Mapping[str, Any]:
    return {"call_id": row.call_id, "tool": row.name, "step": step, "index": row.index}
