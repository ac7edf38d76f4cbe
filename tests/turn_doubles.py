"""What the tests of a turn's rules share: a transcript that records, a mailbox that fills, and a strict reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from insika.messages import Message, Role, ToolCall, assistant, tool_result


class Transcript:
    """Chat and emit in one: keeps the messages and the events in the order in which they came."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.events: list[tuple[str, dict[str, Any]]] = []

    def add_message(self, role: str, content: str) -> None:
        self.messages.append(Message(Role(role), content))

    def emit(self, type: str, data: Mapping[str, Any], /) -> None:
        self.events.append((str(type), dict(data)))

    @property
    def said(self) -> list[str]:
        return [message.content for message in self.messages if message.role is Role.USER]


class WaitingMessages:
    """A mailbox in memory. Nobody may ask it for nothing: to another mailbox 0 might mean all."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def take(self, limit: int) -> Sequence[str]:
        assert limit >= 1
        taken, self.texts = self.texts[:limit], self.texts[limit:]
        return taken


def announce(size: int) -> Message:
    return assistant("", *(ToolCall(f"c{index}", "look") for index in range(size)))


def batch(size: int) -> Iterator[Message]:
    """The messages of one whole batch: the announcement and its results."""
    yield announce(size)
    for index in range(size):
        yield tool_result(f"c{index}", "")


def show(message_ended: Callable[[Message], object], size: int) -> None:
    for message in batch(size):
        message_ended(message)


def read_strictly(messages: Sequence[Message]) -> None:
    """Fail unless each announcement of N calls is followed by exactly N results before anything else is said.

    A batch that is still open at the end may be incomplete.
    """
    missing = 0
    for index, message in enumerate(messages):
        if message.role is Role.TOOL:
            assert missing > 0, f"message {index} is a result without a call"
            missing -= 1
        else:
            assert missing == 0, f"message {index} stands inside a batch, {missing} results before its end"
            missing = len(message.tool_calls)
