"""The conversation as the messages that the Messages API wants. Pure: the same messages always give the same bytes, and
what a message becomes never depends on what comes after it.

Results lead, in announced order, in one message of the user; what people said meanwhile follows in the same one. What
may not be sent (empty and blank text) is left out, or said in visible words where silence would be no message at all.

Sources, under platform.claude.com/docs/en: agents-and-tools/tool-use/handle-tool-calls (results at once behind their
calls and before any text); api/messages/create (turns of one role are joined; the first and the last message are the
user's); build-with-claude/thinking, "Preserving thinking blocks" (back complete and unmodified, with the results).
"Text content blocks must contain non-whitespace text" (anthropics/claude-code 59812) and "content cannot be empty if
`is_error` is true" (jlevy/markform 153) are the vendor's refusals.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from insika.documents import plain
from insika.messages import Message, Role, ToolCall
from insika.providers.anthropic import kept
from insika.providers.anthropic.ids import CallIds, made_id, sendable_name
from insika.text import clean_text

Block = dict[str, Any]

BLANK_MESSAGE = "(blank message)"
EMPTY_RESULT = "(empty result)"
BEGINNING = "(the beginning of the conversation is not shown)"
GO_ON = "(please go on)"


@dataclass(slots=True)
class WireMessage:
    """`bound_to`: the digest of the prompt that the thinking in it came from; "" where nobody has noted one."""

    role: str
    content: list[Block] = field(default_factory=list)
    bound_to: str = ""

    @property
    def answers(self) -> bool:
        """It holds results."""
        return any(block["type"] == "tool_result" for block in self.content)

    @property
    def thinks_first(self) -> bool:
        return bool(self.content) and self.content[0]["type"] in kept.THINKING


def conversation(messages: Sequence[Message], goes_back: Callable[[int], bool]) -> list[WireMessage]:
    """`goes_back`: whether message number so-and-so is sent as its provider kept it, when it did."""
    writer = _Writer()
    for at, message in enumerate(messages):
        match message.role:
            case Role.USER:
                writer.user(message.content)
            case Role.TOOL:
                writer.result(message)
            case Role.ASSISTANT if message.tool_calls:
                writer.calls(message, as_kept=goes_back(at))
            case Role.ASSISTANT:
                writer.answer(message.content)
    return writer.finished()


class _Writer:
    def __init__(self) -> None:
        self._messages: list[WireMessage] = []
        self._ids = CallIds()
        self._announced: dict[str, tuple[int, str]] = {}
        self._answered: list[int] = []

    def user(self, text: str) -> None:
        self._users().content.append(_text(text if text.strip() else BLANK_MESSAGE))

    def answer(self, text: str) -> None:
        if text.strip():
            self._assistants().content.append(_text(text))

    def calls(self, message: Message, *, as_kept: bool) -> None:
        ids = [self._ids.of_call(call.id) for call in message.tool_calls]
        self._announced = {call.id: (at, ids[at]) for at, call in enumerate(message.tool_calls)}
        self._answered = []
        sent = self._assistants()
        blocks = kept.blocks_of(message, ids) if as_kept else None
        if blocks is not None:
            sent.content, sent.bound_to = blocks, kept.bound_to(message)
            return
        if message.content.strip():
            sent.content.append(_text(message.content))
        sent.content += [_call(call, id) for call, id in zip(message.tool_calls, ids, strict=True)]

    def result(self, message: Message) -> None:
        given = message.tool_call_id or ""
        place, id = self._announced.get(given, (len(self._announced), made_id(given)))
        at = bisect.bisect(self._answered, place)
        self._answered.insert(at, place)
        self._users().content.insert(at, _result(id, message))

    def finished(self) -> list[WireMessage]:
        if not self._messages or self._messages[0].role != "user":
            self._messages.insert(0, WireMessage("user", [_text(BEGINNING)]))
        if self._messages[-1].role != "user":
            self._messages.append(WireMessage("user", [_text(GO_ON)]))
        return self._messages

    def _users(self) -> WireMessage:
        if not self._messages or self._messages[-1].role != "user":
            self._messages.append(WireMessage("user"))
        return self._messages[-1]

    def _assistants(self) -> WireMessage:
        self._messages.append(WireMessage("assistant"))
        return self._messages[-1]


def _text(text: str) -> Block:
    return {"type": "text", "text": clean_text(text)}


def note_block(note: str) -> Block:
    return _text(note)


def _call(call: ToolCall, id: str) -> Block:
    """What nobody could read goes back as a call without arguments: its result says what was wrong with it."""
    readable = call.malformed is None and not call.cut_off
    return {
        "type": "tool_use",
        "id": id,
        "name": sendable_name(call.name),
        "input": plain(call.arguments) if readable else {},
    }


def _result(id: str, message: Message) -> Block:
    content = clean_text(message.content) if message.content.strip() else EMPTY_RESULT
    block: Block = {"type": "tool_result", "tool_use_id": id, "content": content}
    if message.is_error:
        block["is_error"] = True
    return block
