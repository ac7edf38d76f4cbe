"""A turn's log that lives in memory only: for tests of the loop, and for measuring it without a store.

It keeps the rules a store keeps, so far as one owner can break them: a batch is closed whole and in order, a call is
started once, nothing is written after the end. It knows no lease and no other owner.
"""

from __future__ import annotations

from collections.abc import Sequence

from insika.messages import Message, Role, Usage, assistant, tool_result, user
from insika.storage.operations import AppendStep, CallResult, CrossBoundary, ModelCallKey
from insika.storage.rows import CallState, Mail
from insika.turn.log import Answer, Failure


class InMemoryTurnLog:
    """`history` is what was said before. `mail` may be added to at any time, as people do."""

    def __init__(self, history: Sequence[Message]) -> None:
        self.messages = list(history)
        self.mail: list[Mail] = []
        self.calls: dict[tuple[int, int], CallState] = {}
        self.started: list[str] = []
        self.model_calls: list[ModelCallKey] = []
        self.ended: Answer | Failure | None = None
        self._open: AppendStep | None = None
        self._seen_mail = 0

    def may_start(self) -> None:
        return None

    def waiting(self) -> Sequence[Mail]:
        return self.mail[: self._seen_mail]

    async def look_again(self) -> None:
        self._seen_mail = len(self.mail)

    async def retry_model(self, call: ModelCallKey, estimate: Usage) -> None:
        self.model_calls.append(call)

    async def append(self, step: AppendStep) -> int:
        _hold(self.ended is None and self._open is None, "a batch is open already, or the turn has ended")
        self._open = step
        self.messages.append(step.message)
        for index in range(len(step.calls)):
            self.calls[step.step, index] = CallState.ANNOUNCED
        return len(self.messages)

    async def start_call(self, step: int, index: int) -> None:
        _hold(self.calls[step, index] is CallState.ANNOUNCED, f"call {index} of step {step} was started before")
        self.calls[step, index] = CallState.STARTED
        if self._open is not None:
            self.started.append(self._open.calls[index].call_id)

    async def finish_call(self, step: int, result: CallResult) -> None:
        self.calls[step, result.index] = result.state

    async def cross_boundary(self, boundary: CrossBoundary) -> int | None:
        if boundary.nothing_unseen and self._seen_mail < len(self.mail):
            return None
        self._close(boundary.results)
        self.messages.extend(user(text) for text in boundary.notices)
        self.messages.extend(user(absorbed.content) for absorbed in boundary.absorbed)
        taken = {absorbed.position for absorbed in boundary.absorbed}
        self.mail = [row for row in self.mail if row.position not in taken]
        self._seen_mail = len(self.mail)
        self.model_calls.append(boundary.next_call)
        return len(self.messages)

    async def commit(self, answer: Answer) -> None:
        _hold(self.ended is None, "the turn has ended already")
        if answer.results:
            self._close(answer.results)
        if answer.content:
            self.messages.append(assistant(answer.content))
        self.ended = answer

    async def fail(self, failure: Failure) -> None:
        _hold(self.ended is None, "the turn has ended already")
        if self._open is not None:
            self._close(failure.results)
        self.ended = failure

    def _close(self, results: Sequence[CallResult]) -> None:
        announced = [call.call_id for call in self._open.calls] if self._open is not None else []
        _hold([result.call_id for result in results] == announced, "the results are not those of the open batch")
        for result in results:
            self.messages.append(tool_result(result.call_id, result.content, is_error=result.is_error))
        self._open = None

    def said_by(self, role: Role) -> list[str]:
        return [message.content for message in self.messages if message.role is role]


def _hold(rule: bool, broken: str) -> None:
    if not rule:
        raise AssertionError(broken)
