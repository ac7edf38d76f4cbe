"""Notices when a model goes in circles: the same call again and again, or two calls that alternate.

It compares what is asked, never what is answered: a call that gives nothing is as much a circle as one that gives the
same each time. A tool whose repetition has a meaning (polling, rolling dice) is declared repeatable and never looked
at.

Its state follows from the calls, results and messages it is shown and from nothing else. To resume a turn, show a new
guard what the log holds, with a chat and an emit that discard. At a boundary the caller lets the budget speak first,
then this, then the steer injector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from insika.errors import ToolRepetition
from insika.events import EventType
from insika.ports import Chat, Emit
from insika.turn import sentences
from insika.turn.tool_batch import MessageLike, ToolBatch


@dataclass(frozen=True, slots=True)
class CallKey:
    """What makes two calls equal: the tool, and the arguments as JSON with the keys of every object in order.

    JSON tells true, 1, 1.0 and "1" apart, and so do we: a tool may too.
    """

    tool: str
    arguments: str

    @classmethod
    def of(cls, tool: str, arguments: object) -> CallKey:
        """Raises TypeError for arguments that JSON cannot hold."""
        return cls(tool, _CANONICAL.encode(arguments))


class Streak:
    """How often the last call has been made, counting back without a gap.

    Two ways of counting back, of which the longer holds: equal calls in a row (A A A: 3), and every second call while
    all in between are equal too (A B A B A: 3, and one more B makes three of those).
    """

    def __init__(self) -> None:
        self._last: CallKey | None = None
        self._before_last: CallKey | None = None
        self._in_a_row = 0
        self._alternating = 0  # length of the tail in which each call equals the one two before it

    def add(self, call: CallKey) -> int:
        """How many equal calls this one makes, itself included: from 1."""
        self._in_a_row = self._in_a_row + 1 if call == self._last else 1
        alternates = self._last is None or call == self._before_last
        self._alternating = self._alternating + 1 if alternates else 2
        self._before_last, self._last = self._last, call
        return max(self._in_a_row, (self._alternating + 1) // 2)


class RepetitionGuard:
    """Lets `max_repeat` equal calls run, says so once at the boundary after them, and stops the next.

    Below 2 it is off. A call that breaks the circle starts the count, and the right to one notice, anew. Equal calls
    within one batch count like any others, so a batch with more than `max_repeat` of them is stopped unwarned.
    """

    def __init__(self, chat: Chat, max_repeat: int, emit: Emit) -> None:
        self._chat = chat
        self._max_repeat = max_repeat
        self._emit = emit
        self._batch = ToolBatch()
        self._streak = Streak()
        self._due: tuple[str, int] | None = None  # tool and count of the notice that waits for the boundary
        self._told = False  # of the circle at hand

    def tool_call(self, name: str, arguments: object, repeatable: bool = False) -> None:
        """Count a call that is about to run. `arguments` is anything JSON can hold; of a call whose arguments could
        not be read, give the raw text. A `repeatable` call neither counts nor breaks a circle.

        Raises ToolRepetition, once it is counted, for each equal call beyond `max_repeat`; TypeError for arguments
        that JSON cannot hold.
        """
        if self._max_repeat < 2 or repeatable:
            return
        count = self._streak.add(CallKey.of(name, arguments))
        if count > self._max_repeat:
            raise ToolRepetition(
                f"{name} was called {count} times with the same arguments, where {self._max_repeat} are allowed; "
                "raise limits.max_tool_repeat, or declare the tool repeatable if calling it again has a meaning"
            )
        if count < self._max_repeat:
            self._told = False
        elif not self._told:
            self._told = True
            self._due = (name, count)

    def tool_result(self, result: object) -> None:
        """Look at what a tool returned, before it becomes a message."""
        self._batch.halt(result)

    def message_ended(self, message: MessageLike) -> None:
        """Look at a message that has just been added; at a boundary, say the notice that is due."""
        if not self._batch.closed(message):
            return
        due, self._due = self._due, None
        if due is None or self._batch.halted:
            return
        tool, count = due
        self._chat.add_message("user", sentences.repetition(tool, count))
        self._emit(EventType.TOOL_REPETITION_WARNED, {"tool": tool, "count": count, "max": self._max_repeat})


def _as_object(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"arguments must be what JSON can hold, got {type(value).__name__}")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_as_object)
