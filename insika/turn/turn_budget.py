"""The tool calls of one turn: counted, announced while there is still time, and stopped at the limit.

A model that does not know of a limit runs into it and delivers nothing. So the budget speaks before it stops: as a
user message at a boundary (the instructions stay as they are, and with them the vendor's prompt cache), never inside
a batch, and never after a halted one, where no model would read it.

Its state follows from the calls, results and messages it is shown and from nothing else. To resume a turn, show a new
budget what the log holds, with a chat and an emit that discard. At a boundary the caller lets the budget speak first,
then the repetition guard, then the steer injector.

Out of reach: a single batch larger than the whole budget sees no boundary before it is stopped.
"""

from __future__ import annotations

from insika.events import EventType
from insika.ports import Chat, Emit
from insika.turn import sentences
from insika.turn.step_limit import NoStepLimit, StepLimit
from insika.turn.tool_batch import MessageLike, ToolBatch

CONVERGE, DROP_OPTIONAL, ANSWER_NOW = 10, 5, 2
THRESHOLDS = (CONVERGE, DROP_OPTIONAL, ANSWER_NOW)
"""Calls left at which a notice becomes due."""


class TurnBudget:
    """One turn's budget of `max` tool calls; None is no budget: it counts, says and stops nothing.

    A call that leaves exactly a threshold's number makes that notice due (a budget of 10 never gives the first). It
    is said at the next boundary, once; when a batch crosses several, the most urgent speaks for all. Raises what
    `StepLimit` raises for a bad `max` or `on_exhausted`, and ValueError for a synthesis without a limit.
    """

    def __init__(self, chat: Chat, max: int | None, emit: Emit, on_exhausted: str = "raise") -> None:
        self._chat = chat
        self._emit = emit
        self._limit = _limit(max, on_exhausted)
        self._batch = ToolBatch()
        self._due: int | None = None  # the threshold whose notice waits for the boundary

    @property
    def on_exhausted(self) -> str:
        """What the loop does when `tool_call` raises: one of `StepLimit.ON_EXHAUSTED`."""
        return self._limit.on_exhausted

    @property
    def calls(self) -> int:
        """Calls counted so far, with those that were refused; always 0 without a limit."""
        return self._limit.step

    @property
    def exhausted(self) -> bool:
        """A call beyond the limit was asked for."""
        return self._limit.exhausted

    @staticmethod
    def notice(remaining: int, max: int) -> str:
        """The sentence for `remaining` calls left of `max`. Raises ValueError unless `remaining` is from 0 to 10."""
        if not 0 <= remaining <= CONVERGE:
            raise ValueError(f"there is a notice for 0 to {CONVERGE} calls left, got {remaining}")
        if remaining <= ANSWER_NOW:
            return sentences.budget_answer_now(remaining)
        if remaining <= DROP_OPTIONAL:
            return sentences.budget_drop_optional(remaining)
        return sentences.budget_converge(remaining, max)

    def tool_call(self) -> None:
        """Count a call that is about to run, before anything else looks at it.

        Raises StepLimit.Exceeded, once it is counted, for each call beyond the limit. A call that a resumed turn
        takes up again is counted once, where it was announced.
        """
        self._limit.tick()
        left = self._limit.remaining
        if left in THRESHOLDS:  # what is left only shrinks: each comes once a turn, and a later one is more urgent
            self._due = left

    def tool_result(self, result: object) -> None:
        """Look at what a tool returned, before it becomes a message."""
        self._batch.halt(result)

    def message_ended(self, message: MessageLike) -> None:
        """Look at a message that has just been added; at a boundary, say the notice that is due."""
        if not self._batch.closed(message):
            return
        threshold, self._due = self._due, None
        limit = self._limit
        if threshold is None or self._batch.halted or isinstance(limit, NoStepLimit):
            return
        self._chat.add_message("user", self.notice(limit.remaining, limit.max))
        self._emit(
            EventType.TOOL_BUDGET_WARNED,
            {"remaining": limit.remaining, "max": limit.max, "threshold": threshold},
        )


def _limit(max: int | None, on_exhausted: str) -> StepLimit | NoStepLimit:
    if max is not None:
        return StepLimit(max, on_exhausted)
    if on_exhausted != NoStepLimit.on_exhausted:
        raise ValueError(f"without a max nothing is ever exhausted, so on_exhausted={on_exhausted!r} has no meaning")
    return NoStepLimit()
