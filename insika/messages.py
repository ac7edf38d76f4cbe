"""What is said in a conversation: messages, the tool calls they announce, and the answers to those calls.

These are the values that everything else passes around. They are immutable: a conversation only grows at its tail,
so that the bytes already sent to a model stay what they were.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Role(enum.StrEnum):
    """Who speaks. There is no system role: an agent's instructions stand before the conversation, not in it."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that an assistant message announces.

    `id` is unique within its turn. `arguments` is what the model wrote, decoded; `malformed` holds the raw text
    instead when it was not a JSON object, in which case `arguments` is empty and the call is answered with an error.
    `cut_off`: the model's output limit fell into it, so that nobody knows what it was to be: it is never run, and
    `arguments` is empty.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    malformed: str | None = None
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Verbatim:
    """An assistant message exactly as its provider wants it back: signed reasoning among it.

    `model` is the whole reference of the model that said it: nothing of this is ever sent to another one, nor after
    its turn has ended. `parts` are the provider's own JSON objects, in order; only its adapter reads them. Empty:
    there is nothing that the message itself does not say.
    """

    model: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)


NOTHING_VERBATIM = Verbatim()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    An assistant message with `tool_calls` opens a batch; a tool message answers the call named by `tool_call_id`.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    verbatim: Verbatim = NOTHING_VERBATIM


@dataclass(frozen=True, slots=True)
class Halt:
    """Returned by a tool: end the turn once this batch is done, and answer with `content`.

    The other calls of the batch still run. Where `content` is empty, the text of the message that announced the
    batch is the answer; where several calls halt, the last one in announced order speaks.
    """

    content: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call. The four parts are disjoint: `input` counts only what was not read from a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


NO_USAGE = Usage()


def user(content: str) -> Message:
    return Message(Role.USER, content)


def assistant(content: str, *tool_calls: ToolCall) -> Message:
    return Message(Role.ASSISTANT, content, tool_calls)


def tool_result(call_id: str, content: str, *, is_error: bool = False) -> Message:
    return Message(Role.TOOL, content, tool_call_id=call_id, is_error=is_error)
