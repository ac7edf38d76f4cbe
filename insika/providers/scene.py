"""What a script sees of a conversation: the turn at hand, read from the messages of one request and nothing else.

The turn at hand is all that follows the last answer, that is, the last assistant message without calls. A turn that
failed leaves no answer, so what it had is seen as part of the next one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from insika.messages import Message, Role, ToolCall
from insika.ports import ModelRequest
from insika.turn.sentences import MARK


@dataclass(frozen=True, slots=True)
class Result:
    """A call of the turn at hand and what came of it."""

    call: ToolCall
    content: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence of the engine. `results`: how many results the turn had when it was said."""

    text: str
    results: int


@dataclass(frozen=True, slots=True)
class Scene:
    """`said`: what people said in this turn, oldest first; what joined it later stands behind what opened it.
    `notices`: what the engine said. `step`: messages the model has given in this turn; `step_since_said`: those since
    the last one of `said`. `results`: what the tools gave. `tools`: the names on offer."""

    said: tuple[str, ...]
    notices: tuple[Notice, ...]
    step: int
    step_since_said: int
    results: tuple[Result, ...]
    tools: frozenset[str]

    @property
    def text(self) -> str:
        """What a person said last; "" when nobody has spoken."""
        return self.said[-1] if self.said else ""

    @classmethod
    def of(cls, request: ModelRequest) -> Scene:
        said: list[str] = []
        notices: list[Notice] = []
        calls: dict[str, ToolCall] = {}
        results: list[Result] = []
        step = step_since_said = 0
        for message in _turn(request.messages):
            if message.role is Role.ASSISTANT:
                step += 1
                step_since_said += 1
                calls.update((call.id, call) for call in message.tool_calls)
            elif message.role is Role.TOOL:
                results += _result(calls, message)
            elif message.content.startswith(MARK):
                notices.append(Notice(message.content, len(results)))
            else:
                said.append(message.content)
                step_since_said = 0
        tools = frozenset(tool.name for tool in request.tools) if request.may_call else frozenset()
        return cls(tuple(said), tuple(notices), step, step_since_said, tuple(results), tools)


def next_call_id(messages: Sequence[Message], index: int) -> str:
    """An id for call number `index` of the next message. The same conversation gives the same id, and each id follows
    from the one before it, so that they do not repeat while a conversation grows, nor when its beginning is left out.
    """
    last_call = next((message.tool_calls[-1].id for message in reversed(messages) if message.tool_calls), "")
    tail = messages[-1].content if messages else ""
    digest = hashlib.sha256(json.dumps([len(messages), last_call, tail]).encode()).hexdigest()
    return f"call_{digest[:20]}_{index}"


def _turn(messages: Sequence[Message]) -> Sequence[Message]:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.ASSISTANT and not message.tool_calls:
            return messages[index + 1 :]
    return messages


def _result(calls: dict[str, ToolCall], message: Message) -> list[Result]:
    call = calls.get(message.tool_call_id or "")
    return [] if call is None else [Result(call, message.content, message.is_error)]
