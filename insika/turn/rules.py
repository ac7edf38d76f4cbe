"""The rules that watch one turn, as one object: the budget, the repetition guard, and steering.

They are deterministic functions of the turn's log, so nothing of them is stored: `resumed` shows new ones what the
log holds and throws away what they say. What they say at a boundary is gathered, not spoken: it becomes true, and its
events are emitted, only when the boundary is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from insika.agents.limits import TurnLimits
from insika.errors import InsikaError, ToolRepetition
from insika.messages import Halt, Message, ToolCall
from insika.storage.operations import Absorbed
from insika.storage.rows import LogEntry, Mail
from insika.turn import sentences
from insika.turn.repetition import RepetitionGuard
from insika.turn.steer_injector import SteerInjector, SteerPolicy
from insika.turn.step_limit import StepLimit
from insika.turn.turn_budget import TurnBudget


@dataclass(frozen=True, slots=True)
class Said:
    """What comes after the results of one batch, and the events to emit once that is written."""

    notices: tuple[str, ...] = ()
    absorbed: tuple[Absorbed, ...] = ()
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(slots=True)
class _Tail:
    """A chat that remembers what was appended to it."""

    texts: list[str] = field(default_factory=list)

    def add_message(self, role: str, content: str) -> None:
        self.texts.append(content)


@dataclass(slots=True)
class _WaitingMail:
    """The mailbox as the injector sees it; it remembers which rows were taken."""

    rows: list[Mail] = field(default_factory=list)
    taken: list[Mail] = field(default_factory=list)

    def take(self, limit: int) -> Sequence[str]:
        taking, self.rows = self.rows[:limit], self.rows[limit:]
        self.taken.extend(taking)
        return [row.text for row in taking]


class TurnRules:
    """Show it each assistant message with calls, each call before it runs, each result once it is known; then close
    the batch. `absorbed` is how many steered messages the turn has taken before."""

    def __init__(self, limits: TurnLimits, absorbed: int = 0) -> None:
        self._notices = _Tail()
        self._steered = _Tail()
        self._mailbox = _WaitingMail()
        self._events: list[tuple[str, Mapping[str, Any]]] = []
        self._policy = SteerPolicy(limits.steer_max_messages, limits.steer_join)
        self._budget = TurnBudget(self._notices, limits.max_tool_calls, self._emit, limits.on_exhausted)
        self._repetition = RepetitionGuard(self._notices, limits.max_tool_repeat, self._emit)
        self._steer = SteerInjector(self._steered, self._mailbox, self._policy, self._emit, already=absorbed)
        self._on_exhausted = limits.on_exhausted
        self.stopped_by: InsikaError | None = None

    @classmethod
    def resumed(cls, limits: TurnLimits, turn: Sequence[LogEntry], repeatable: Callable[[str], bool]) -> TurnRules:
        """The rules as they stood after the last message of `turn`. A batch that is open there stays open, its calls
        not yet counted: whoever takes it up admits them once more, in order. `repeatable` tells of a tool, by name,
        whether the repetition guard leaves it alone."""
        rules = cls(limits, absorbed=sum(1 for entry in turn if entry.step > 0 and entry.position is not None))
        batches = [entry.message for entry in turn if entry.message.tool_calls]
        results = {entry.message.tool_call_id: entry.message for entry in turn if entry.message.tool_call_id}
        for message in batches:
            rules.opened(message)
            closing = [results[call.id] for call in message.tool_calls if call.id in results]
            if len(closing) < len(message.tool_calls):
                break
            for call in message.tool_calls:
                rules.admit(call, repeatable=repeatable(call.name))
            rules.close(closing, ())
        return rules

    @property
    def synthesizes(self) -> bool:
        """A call was refused for good, and the policy is to answer from the evidence at hand."""
        return self.stopped_by is not None and self._on_exhausted == "synthesize"

    @property
    def takes_steers(self) -> bool:
        """There is room for one more steered message in this turn."""
        return self._steer.injected < self._policy.steer_max_messages

    def opened(self, message: Message) -> None:
        """The assistant message that announces a batch."""
        self._show(message)

    def admit(self, call: ToolCall, *, repeatable: bool) -> bool:
        """Count a call before anything else looks at it. False, and from then on always: it must not run."""
        if self.stopped_by is not None:
            return False
        arguments = call.arguments if call.malformed is None else call.malformed
        try:
            self._budget.tool_call()
            # Of a call that was cut off nobody knows whether it was to be the same again.
            self._repetition.tool_call(call.name, arguments, repeatable or call.cut_off)
        except (StepLimit.Exceeded, ToolRepetition) as stop:
            self.stopped_by = stop
            return False
        return True

    def returned(self, content: str, *, halts: bool) -> None:
        """A call's result, before it becomes a message."""
        result: object = Halt(content) if halts else content
        for rule in (self._budget, self._repetition, self._steer):
            rule.tool_result(result)

    def close(self, results: Sequence[Message], waiting: Sequence[Mail]) -> Said:
        """Close the batch with its N results. `waiting` are the rows that may join the turn now.

        A turn that was stopped has one answer left and no tool to act with: what waits gets a turn of its own.
        """
        self._mailbox.rows = [] if self.stopped_by is not None else list(waiting)
        self._mailbox.taken = []
        for message in results:
            self._show(message)
        absorbed = tuple(
            Absorbed(row.position, text) for row, text in zip(self._mailbox.taken, self._steered.texts, strict=True)
        )
        notices = [*self._notices.texts, *([sentences.SYNTHESIS_REQUEST] if self.synthesizes else [])]
        said = Said(tuple(notices), absorbed, tuple(self._events))
        self._notices.texts.clear()
        self._steered.texts.clear()
        self._events.clear()
        return said

    def _show(self, message: Message) -> None:
        # Notices before steered texts: the engine's news is about the batch, a person's about what comes next.
        self._budget.message_ended(message)
        self._repetition.message_ended(message)
        self._steer.message_ended(message)

    def _emit(self, type: str, data: Mapping[str, Any], /) -> None:
        self._events.append((type, data))
