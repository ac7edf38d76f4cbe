"""Where a batch of tool calls opens and where it closes: the one place in a turn at which a message may be added.

Model vendors refuse a conversation in which anything stands between an assistant message with N calls and its N
results. Everything that speaks in mid-turn asks this object first; nothing may count results on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol

from insika.messages import Halt


class MessageParts(Protocol):
    """What a rule reads of a message; `insika.messages.Message` has it."""

    @property
    def role(self) -> str: ...

    @property
    def tool_calls(self) -> Sized | None: ...


MessageLike = MessageParts | Mapping[str, object]
"""A message as an object or as a mapping with the same names. Only an assistant message needs `tool_calls`."""


class ToolBatch:
    """Answers one question, "did a batch close just now?", and remembers one fact, "did a tool of it halt?".

    It must be shown every message of the turn, in order, each once.
    """

    def __init__(self) -> None:
        self._announced = 0
        self._answered = 0
        self._halted = False

    @property
    def halted(self) -> bool:
        """A tool of the batch at hand ended the turn. Stays readable after the batch has closed, until the next."""
        return self._halted

    def closed(self, message: MessageLike) -> bool:
        """Count `message`; True for exactly the one that brings the last result of a batch: the boundary.

        An assistant message with calls opens a batch and forgets the one before. One without calls changes nothing,
        and a result outside a batch closes nothing.
        """
        role = _part(message, "role")
        if role == "assistant":
            self._open(_part(message, "tool_calls"))
            return False
        if role != "tool" or not self._announced:
            return False
        self._answered += 1
        if self._answered < self._announced:
            return False
        self._announced = 0
        return True

    def halt(self, result: object) -> None:
        """Look at what a tool returned, as it returned it: in a message a `Halt` can no longer be recognised."""
        if isinstance(result, Halt):
            self._halted = True

    def _open(self, tool_calls: object) -> None:
        if isinstance(tool_calls, Sized) and len(tool_calls):
            self._announced = len(tool_calls)
            self._answered = 0
            self._halted = False


def _part(message: MessageLike, name: str) -> object:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)
