"""The loop: ask the model, run the batch it announces, cross the boundary, and again, until it answers.

What holds: nothing counts here that is not in the log first, so that at any instant another owner can go on from the
log; a request, a call and the answer each start only while nothing urgent is unseen; and however the turn ends, its
open batch is answered. `Superseded`, `Suspended` and `LeaseLost` pass through: they are for the owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from insika.crash_points import CrashPoint
from insika.errors import InsikaError, ProviderError, ToolRepetition, TurnTimeout
from insika.events import EventType
from insika.messages import Message, Usage, tool_result, user
from insika.ports import Stop
from insika.storage.operations import (
    AnnouncedCall,
    AppendStep,
    CallResult,
    CrossBoundary,
    ModelCallKey,
    SettledModelCall,
)
from insika.storage.rows import CallRow, CallState, LogEntry
from insika.turn.asking import StepAsker
from insika.turn.batch import BatchRunner
from insika.turn.log import Answer, Failure, Superseded
from insika.turn.model_message import spoken, storable
from insika.turn.outgoing import flagged
from insika.turn.ports import TurnPorts
from insika.turn.request import ModelAsker
from insika.turn.rules import Said, TurnRules
from insika.turn.state import OpenBatch, TurnIdentity, TurnState, announced_ids
from insika.turn.step_limit import StepLimit

LOOKS_AT_ONE_BOUNDARY = 5
"""How often a boundary is decided anew because more mail came. After that it is crossed with what has been seen:
somebody who never stops writing must not keep the turn from going on."""


class TurnLoop:
    """Runs one turn from wherever its log stands to its end."""

    def __init__(self, turn: TurnIdentity, state: TurnState, ports: TurnPorts) -> None:
        self._turn = turn
        self._state = state
        self._log = ports.log
        self._toolbox = ports.toolbox
        self._emit = ports.emit
        self._crash = ports.crash
        self._times = ports.times
        self._outgoing = ports.outgoing
        self._asker = ModelAsker(turn, ports)
        self._steps = StepAsker(turn, state, ports, self._asker)
        self._batches = BatchRunner(turn, ports, self._asker.out_of_time)
        self._rules = self._rules_from_log()
        self._call_ids = announced_ids(state.history)

    async def run(self) -> None:
        """Returns once the turn has ended, well or not. Raises Suspended when it waits for a person."""
        results: tuple[CallResult, ...] = ()
        try:
            while (batch := self._state.batch or await self._ask()) is not None:
                results = await self._asker.timed_tools(self._batches.run(batch, self._rules))
                self._crash(CrashPoint.BATCH_RAN)
                if self._rules.stopped_by is not None and not self._rules.synthesizes:
                    raise self._rules.stopped_by
                if await self._close(batch, results):
                    return
                results = ()
        except (ProviderError, TurnTimeout, StepLimit.Exceeded, ToolRepetition) as error:
            await self._fail(error, results)

    @property
    def owed(self) -> Usage:
        """What an open request is booked at if the turn is left now."""
        return self._asker.owed

    @property
    def asking(self) -> bool:
        """The model is talking, or about to."""
        return self._asker.asking

    def cut(self) -> None:
        """Abandon the request under way; `run` then raises Superseded. Without one this does nothing."""
        self._asker.cut()

    async def _ask(self) -> OpenBatch | None:
        """Ask the model for the next step. None: it was the answer, and the turn has ended."""
        synthesizes = self._rules.synthesizes
        answered = await self._steps.ask(self._purpose, may_call=not synthesizes)
        self._crash(CrashPoint.MODEL_ANSWERED)
        finished = answered.finished
        state = "measured" if finished.measured else "estimated"
        settled = SettledModelCall(answered.key, finished.usage, state)
        message = storable(finished.message, self._call_ids, self._state.step, self._is_tool)
        if not message.tool_calls or synthesizes:
            await self._commit(message.content, settled, cut_off=finished.stop is Stop.LENGTH)
            return None
        return await self._open(message, settled)

    async def _open(self, message: Message, settled: SettledModelCall) -> OpenBatch:
        state = self._state
        announced = tuple(
            AnnouncedCall(call.id, call.name, call.arguments, self._changes_the_world(call.name))
            for call in message.tool_calls
        )
        seq = await self._log.append(AppendStep(self._turn.turn_id, state.step, message, announced, settled))
        self._asker.booked()
        state.usage += settled.usage
        self._crash(CrashPoint.STEP_APPENDED)
        self._call_ids.update(call.call_id for call in announced)
        self._remember(seq, state.step, message)
        if message.content or self._asker.said_something:
            said = self._outgoing.redacted(message.content)
            self._tell_redacted(state.step, said.found, self._asker.found_thinking)
            told = {"step": state.step, "attempt": settled.key.attempt, "text": said.text}
            self._emit(EventType.INTERMEDIATE, told)
        self._rules.opened(message)
        rows = tuple(
            CallRow(state.step, index, call.call_id, call.name, call.arguments, call.side_effect, CallState.ANNOUNCED)
            for index, call in enumerate(announced)
        )
        return OpenBatch(state.step, message, rows)

    async def _close(self, batch: OpenBatch, results: tuple[CallResult, ...]) -> bool:
        """True: with the batch the turn has ended."""
        try:
            if any(result.halts for result in results):
                await self._commit_halted(batch, results)
                return True
            self._asker.check_time()
            await self._cross(batch, results)
        except Superseded:
            await self._batches.record_late(batch)
            raise
        return False

    async def _cross(self, batch: OpenBatch, results: tuple[CallResult, ...]) -> None:
        closing = [tool_result(result.call_id, result.content, is_error=result.is_error) for result in results]
        next_call = ModelCallKey(batch.step + 1, 1, self._purpose, self._steps.model)
        for look in range(LOOKS_AT_ONE_BOUNDARY + 1):
            said = self._rules.close(closing, self._log.waiting())
            boundary = CrossBoundary(
                self._turn.turn_id,
                batch.step,
                results,
                next_call,
                said.notices,
                said.absorbed,
                takes_steers=self._rules.takes_steers and self._rules.stopped_by is None,
                nothing_unseen=look < LOOKS_AT_ONE_BOUNDARY,
            )
            seq = await self._log.cross_boundary(boundary)
            if seq is not None:
                break
            await self._log.look_again()
            self._rules = self._rules_from_log()
            self._show_batch(batch, results)
        else:
            raise Superseded
        self._crash(CrashPoint.BOUNDARY_CROSSED)
        self._go_on(batch, closing, said)

    def _go_on(self, batch: OpenBatch, closing: list[Message], said: Said) -> None:
        state = self._state
        for message in closing:
            self._remember(0, batch.step, message)
        for notice in said.notices:
            self._remember(0, batch.step, user(notice))
        for absorbed in said.absorbed:
            self._remember(0, batch.step, user(absorbed.content), absorbed.position)
        for type, data in said.events:
            self._emit(type, data)
        state.batch = None
        state.step, state.attempt, state.request_open = batch.step + 1, 1, True

    async def _commit(self, content: str, settled: SettledModelCall, *, cut_off: bool) -> None:
        stopped = self._rules.stopped_by
        if stopped is not None and not content:
            raise stopped
        said = self._outgoing.redacted(content)
        self._crash(CrashPoint.ANSWER_READY)
        await self._log.commit(
            Answer(
                self._state.step,
                said.text,
                "completed",
                model_call=settled,
                synthesized=stopped is not None,
                cut_off=cut_off,
                model=self._steps.model,
                fallback=self._steps.model != self._turn.model,
                usage=self._state.usage + settled.usage,
                timing=self._times.timing(),
                agent=self._turn.agent,
                route=self._turn.route,
            )
        )
        self._tell_redacted(self._state.step, said.found, self._asker.found_thinking)

    async def _commit_halted(self, batch: OpenBatch, results: tuple[CallResult, ...]) -> None:
        halting = [result.content for result in results if result.halts]
        said = self._outgoing.redacted(spoken(halting[-1]) or batch.message.content)
        self._crash(CrashPoint.ANSWER_READY)
        await self._log.commit(
            Answer(
                batch.step,
                said.text,
                "halted",
                results,
                model=self._steps.model,
                fallback=self._steps.model != self._turn.model,
                usage=self._state.usage,
                timing=self._times.timing(),
                agent=self._turn.agent,
                route=self._turn.route,
            )
        )
        self._tell_redacted(batch.step, said.found)

    def _tell_redacted(self, step: int, *found: Mapping[str, int]) -> None:
        if data := flagged(step, *found):
            self._emit(EventType.GUARDRAIL_FLAGGED, data)

    async def _fail(self, error: InsikaError, results: tuple[CallResult, ...]) -> None:
        usage, timing = self._state.usage, self._times.timing()
        await self._log.fail(Failure(self._state.step, error, results, self.owed, usage, timing, self._turn.route))

    def _rules_from_log(self) -> TurnRules:
        return TurnRules.resumed(self._turn.limits, self._state.turn, self._toolbox.repeatable)

    def _show_batch(self, batch: OpenBatch, results: tuple[CallResult, ...]) -> None:
        for call in batch.message.tool_calls:
            self._rules.admit(call, repeatable=self._toolbox.repeatable(call.name))
        for result in results:
            self._rules.returned(result.content, halts=result.halts)

    @property
    def _purpose(self) -> str:
        return "synthesis" if self._rules.synthesizes else "answer"

    def _changes_the_world(self, name: str) -> bool:
        tool = self._toolbox.find(name)
        return tool is not None and (tool.side_effect or self._toolbox.needs_approval(name))

    def _is_tool(self, name: str) -> bool:
        return self._toolbox.find(name) is not None

    def _remember(self, seq: int, step: int, message: Message, position: int | None = None) -> None:
        self._state.history.append(message)
        self._state.turn.append(LogEntry(seq, self._turn.turn_id, 0, step, message, position))
