"""A turn's log that lives in memory only: for tests of the loop, and for measuring it without a store.

It keeps the rules a store keeps, so far as one owner can break them: a batch is closed whole and in order, a call is
started once, and with a person's approval where one was asked, a request is opened once, nothing is written after the
end. It knows no lease and no other owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from insika.messages import Message, Role, Usage, assistant, tool_result, user
from insika.policy.approvals import Standing, standing
from insika.storage.operations import (
    AppendStep,
    AskApproval,
    CallResult,
    CrossBoundary,
    ModelCallKey,
    SettledModelCall,
)
from insika.storage.rows import ApprovalDecision, ApprovalRow, CallRow, CallState, LogEntry, Mail, ModelCallRow
from insika.turn.log import Answer, Failure, Superseded
from insika.turn.state import TurnState, state_from_log

_MAY_START = frozenset({CallState.ANNOUNCED})
_UNUSED = (None, ApprovalDecision.APPROVED)
_MAY_END = frozenset({CallState.ANNOUNCED, CallState.STARTED})


def said_before(messages: Sequence[Message]) -> list[LogEntry]:
    """A history, as an earlier turn left it."""
    return [LogEntry(seq, "earlier", 0, 0, message) for seq, message in enumerate(messages, start=1)]


class InMemoryTurnLog:
    """The log of one turn, just begun: `history` is what was said before it, `opening` what the person said to open
    it, `model` names the model of its first request. `mail` may be added to, and approvals be decided, at any time, as
    people do; `now` is the time by which approvals expire. `refused` are the positions of mail that a guard refuses."""

    def __init__(self, turn_id: str, model: str, opening: Sequence[str], history: Sequence[LogEntry] = ()) -> None:
        self.turn_id = turn_id
        self.entries = list(history)
        self.mail: list[Mail] = []
        self.calls: dict[tuple[int, int], CallRow] = {}
        self.model_calls: dict[ModelCallKey, ModelCallRow] = {}
        self.approvals: dict[str, ApprovalRow] = {}
        """By call id."""
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.refused: set[int] = set()
        self.suspended = False
        self.started: list[str] = []
        """Ids of the calls that were written as started, in that order."""
        self.ended: Answer | Failure | None = None
        self._open: AppendStep | None = None
        self._seen_mail = 0
        self._decisions = self._seen_decisions = 0
        for position, text in enumerate(opening, start=1):
            self._add(turn_id, 0, user(text), position)
        self._open_request(ModelCallKey(1, 1, "answer", model))

    @property
    def messages(self) -> list[Message]:
        """The conversation as it stands."""
        return [entry.message for entry in self.entries]

    def said_by(self, role: Role) -> list[str]:
        return [message.content for message in self.messages if message.role is role]

    def state(self, *, fresh: bool) -> TurnState:
        """The turn as whoever loads it now finds it. `fresh`: the one who has just begun it."""
        self.suspended = False
        self._see()
        return state_from_log(
            self.turn_id,
            self.entries,
            tuple(self.calls.values()),
            tuple(self.model_calls.values()),
            fresh=fresh,
            approvals=tuple(self.approvals.values()),
            now=self.now,
        )

    def decide(self, call_id: str, decision: ApprovalDecision, reason: str = "") -> bool:
        """A person's word on a call. False: it came too late, or another had come first."""
        approval = self.approvals[call_id]
        if approval.decision is not None or self.ended is not None:
            return False
        won = standing(approval, self.now) is Standing.PENDING
        became = decision if won else ApprovalDecision.EXPIRED
        self.approvals[call_id] = replace(approval, decision=became, reason=reason or None, decided_at=self.now)
        self._decisions += 1
        return won

    def may_start(self) -> None:
        return None

    def waiting(self) -> Sequence[Mail]:
        return [row for row in self.mail if row.position <= self._seen_mail]

    async def look_again(self) -> None:
        self._see()

    async def retry_model(self, call: ModelCallKey, estimate: Usage) -> None:
        self._estimate(estimate)
        self._open_request(call)

    async def append(self, step: AppendStep) -> int:
        _hold(self.ended is None and self._open is None, "a batch is open already, or the turn has ended")
        self._open = step
        for index, call in enumerate(step.calls):
            self.calls[step.step, index] = CallRow(
                step.step, index, call.call_id, call.name, call.arguments, call.side_effect, CallState.ANNOUNCED
            )
        self._settle(step.model_call)
        return self._add(self.turn_id, step.step, step.message)

    async def ask_approvals(self, asks: Sequence[AskApproval]) -> None:
        announced = {row.call_id for row in self.calls.values() if row.state is CallState.ANNOUNCED}
        _hold(bool(asks) and all(ask.call_id in announced for ask in asks), "only an announced call can be approved")
        for ask in asks:
            expires_at = self.now + timedelta(seconds=ask.valid_s)
            asked = ApprovalRow(
                ask.id, self.turn_id, 1, ask.call_id, ask.tool, ask.arguments_hash, self.now, expires_at
            )
            self.approvals.setdefault(ask.call_id, asked)

    async def suspend(self) -> None:
        if self._unseen():
            raise Superseded
        _hold(any(row.decision is None for row in self.approvals.values()), "nobody is waited for")
        _hold(all(row.state is not CallState.STARTED for row in self.calls.values()), "a call is running still")
        self.suspended = True

    async def start_call(self, step: int, index: int, *, arguments_hash: str | None = None) -> None:
        row = self.calls[step, index]
        _hold(row.state in _MAY_START, f"call {index} of step {step} was started or ended before")
        approval = self.approvals.get(row.call_id)
        if approval is not None and (
            standing(approval, self.now) is not Standing.APPROVED or approval.arguments_hash != arguments_hash
        ):
            raise Superseded
        self.calls[step, index] = replace(row, state=CallState.STARTED)
        self.started.append(row.call_id)

    async def finish_call(self, step: int, result: CallResult) -> None:
        self._record(step, result)

    async def cross_boundary(self, boundary: CrossBoundary) -> int | None:
        if boundary.nothing_unseen and self._unseen():
            return None
        if refused := {absorbed.position for absorbed in boundary.absorbed} & self.refused:
            self.mail = [row for row in self.mail if row.position not in refused]
            return None
        self._close(boundary.results)
        for notice in boundary.notices:
            self._add(self.turn_id, boundary.step, user(notice))
        for absorbed in boundary.absorbed:
            self._add(self.turn_id, boundary.step, user(absorbed.content), absorbed.position)
        taken = {absorbed.position for absorbed in boundary.absorbed}
        self.mail = [row for row in self.mail if row.position not in taken]
        self._open_request(boundary.next_call)
        return len(self.entries)

    async def commit(self, answer: Answer) -> None:
        _hold(self.ended is None, "the turn has ended already")
        if answer.results:
            self._close(answer.results)
        _hold(self._open is None, "a batch is open still")
        if answer.content:
            self._add(self.turn_id, answer.step, assistant(answer.content))
        if answer.model_call is not None:
            self._settle(answer.model_call)
        self.ended = answer

    async def fail(self, failure: Failure) -> None:
        _hold(self.ended is None, "the turn has ended already")
        if self._open is not None:
            self._close(failure.results)
        for call_id, approval in self.approvals.items():
            if approval.decision is None:
                self.approvals[call_id] = replace(approval, decision=ApprovalDecision.VOID)
        self._estimate(failure.estimate)
        self.ended = failure

    def _close(self, results: Sequence[CallResult]) -> None:
        step = self._open
        if step is None:
            raise AssertionError("no batch is open")
        announced = [call.call_id for call in step.calls]
        _hold([result.call_id for result in results] == announced, "the results are not those of the open batch")
        for result in results:
            row = self.calls[step.step, result.index]
            if row.result is None:
                self._record(step.step, result)
            said = self.calls[step.step, result.index]
            self._add(self.turn_id, step.step, tool_result(said.call_id, said.result or "", is_error=said.is_error))
        self._open = None

    def _record(self, step: int, result: CallResult) -> None:
        row = self.calls[step, result.index]
        _hold(row.state in _MAY_END, f"call {result.index} of step {step} has ended before")
        approval = self.approvals.get(row.call_id)
        if approval is not None and approval.decision in _UNUSED and result.approval is not None:
            self.approvals[row.call_id] = replace(approval, decision=result.approval)
        self.calls[step, result.index] = replace(
            row, state=result.state, result=result.content, is_error=result.is_error, halts=result.halts
        )

    def _add(self, turn_id: str, step: int, message: Message, position: int | None = None) -> int:
        self.entries.append(LogEntry(len(self.entries) + 1, turn_id, 0, step, message, position))
        return len(self.entries)

    def _open_request(self, key: ModelCallKey) -> None:
        _hold(key not in self.model_calls, f"attempt {key.attempt} of step {key.step} was opened before")
        self.model_calls[key] = ModelCallRow(
            self.turn_id, key.step, key.attempt, key.purpose, key.model, "open", Usage()
        )

    def _settle(self, call: SettledModelCall) -> None:
        row = self.model_calls[call.key]
        if row.state != "measured":
            self.model_calls[call.key] = replace(row, state=call.state, usage=call.usage)

    def _estimate(self, usage: Usage) -> None:
        for key, row in self.model_calls.items():
            if row.state == "open":
                self.model_calls[key] = replace(row, state="estimated", usage=usage)

    def _see(self) -> None:
        self._seen_mail, self._seen_decisions = self._last_mail(), self._decisions

    def _unseen(self) -> bool:
        return self._seen_mail < self._last_mail() or self._seen_decisions < self._decisions

    def _last_mail(self) -> int:
        return max((row.position for row in self.mail), default=0)


def _hold(rule: bool, broken: str) -> None:
    if not rule:
        raise AssertionError(broken)
