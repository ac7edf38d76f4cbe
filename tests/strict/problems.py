"""What a strict check finds, and the checks that both vendors share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from insika.messages import Message, Role, ToolCall


@dataclass(frozen=True, slots=True)
class Problem:
    """`at` is the index of the message."""

    rule: str
    at: int
    why: str


class Refused(AssertionError):
    """A vendor would answer 400."""

    def __init__(self, vendor: str, problems: Sequence[Problem]) -> None:
        lines = "\n".join(f"  message {one.at}: {one.rule}: {one.why}" for one in problems)
        super().__init__(f"{vendor} would refuse this conversation:\n{lines}")
        self.problems = tuple(problems)

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(problem.rule for problem in self.problems)


def refuse(vendor: str, problems: Iterator[Problem]) -> None:
    if found := list(problems):
        raise Refused(vendor, found)


def shape_problems(messages: Sequence[Message]) -> Iterator[Problem]:
    """A conversation that neither vendor's wire form can express."""
    if not messages:
        yield Problem("empty-conversation", 0, "there must be at least one message")
    for at, message in enumerate(messages):
        if (message.role is Role.TOOL) != (message.tool_call_id is not None):
            yield Problem("shape", at, "a tool message, and no other, answers a call")
        if message.tool_calls and message.role is not Role.ASSISTANT:
            yield Problem("shape", at, "only an assistant message announces calls")
        if message.is_error and message.role is not Role.TOOL:
            yield Problem("shape", at, "only a result can be an error")
        if not _is_json_text(message):
            yield Problem("encoding", at, "its text or arguments cannot be written as JSON in UTF-8")


def batch_problems(messages: Sequence[Message], sent: bool) -> Iterator[Problem]:
    """All results of a batch, no others, directly behind the message that announced it.

    Both vendors take the results in any order; in announced order is the house's own rule.
    """
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role is Role.TOOL:
            yield Problem("orphan-result", at - 1, f"no batch is open for the result of {message.tool_call_id!r}")
        elif message.tool_calls:
            results = _results_behind(messages, at)
            if results or at < len(messages) or sent:
                yield from _one_batch(message.tool_calls, results, at - 1)
            at += len(results)


def end_problems(messages: Sequence[Message], sent: bool) -> Iterator[Problem]:
    if sent and messages and messages[-1].role is Role.ASSISTANT:
        yield Problem("ends-with-assistant", len(messages) - 1, "a request ends with a user message or with results")


def _one_batch(calls: Sequence[ToolCall], results: Sequence[Message], at: int) -> Iterator[Problem]:
    announced = [call.id for call in calls]
    answered = [message.tool_call_id for message in results]
    if missing := [id for id in announced if id not in answered]:
        yield Problem("missing-result", at, f"no result directly behind it for {missing}")
    if strange := [id for id in answered if id not in announced]:
        yield Problem("strange-result", at, f"it did not announce {strange}")
    if len(set(answered)) < len(answered):
        yield Problem("double-result", at, "a call has more than one result")
    elif not missing and not strange and answered != announced:
        yield Problem("result-order", at, "the results are not in announced order")


def _results_behind(messages: Sequence[Message], at: int) -> list[Message]:
    results: list[Message] = []
    for message in messages[at:]:
        if message.role is not Role.TOOL:
            break
        results.append(message)
    return results


def _is_json_text(message: Message) -> bool:
    try:
        content: object = [message.content, [[call.id, call.name, dict(call.arguments)] for call in message.tool_calls]]
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True
