"""Where a message that arrived while the agent works may enter the conversation: at a boundary, at the tail.

Nothing is put inside a batch, and nothing is taken from the mailbox after a halted batch, because no model would read
it: what stays there becomes the next turn. Nothing said earlier is touched.

Its state follows from the results and messages it is shown, from what it took, and from nothing else. What was taken
is not in the mailbox any more, so a resumed turn gets an injector that is told how many have joined `already`, and is
shown what the log holds while its mailbox gives nothing: a closed batch must not take what waits now. At a boundary
the caller lets the budget speak first, then the repetition guard, then this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from insika.events import EventType
from insika.ports import Chat, Emit, Mailbox
from insika.turn.tool_batch import MessageLike, ToolBatch

PLACE = "%{message}"
"""Where a template takes the person's text."""


class JoinPolicy(Protocol):
    """How messages join a running turn. `SteerPolicy` is one."""

    @property
    def steer_max_messages(self) -> int:
        """Most messages that may join one turn, from 0."""
        ...

    def frame(self, text: str) -> str:
        """The text as the model is to read it."""
        ...


@dataclass(frozen=True, slots=True)
class SteerPolicy:
    """At most `steer_max_messages` (from 0) join one turn; each is put into the template `steer_join`, when there is
    one, in place of `%{message}`. Raises ValueError for a template without that place or a number below 0."""

    steer_max_messages: int = 5
    steer_join: str | None = None

    def __post_init__(self) -> None:
        if self.steer_max_messages < 0:
            raise ValueError(f"steer_max_messages must be 0 or more, got {self.steer_max_messages}")
        if self.steer_join is not None and PLACE not in self.steer_join:
            raise ValueError(f"steer_join must hold {PLACE}, got {self.steer_join!r}")

    def frame(self, text: str) -> str:
        """What the person wrote is put in as it is, whatever signs are in it."""
        return text if self.steer_join is None else self.steer_join.replace(PLACE, text)


class SteerInjector:
    """Lets the messages in `actor`'s mailbox join one turn, in their order. Raises ValueError for `already` below 0."""

    def __init__(self, chat: Chat, actor: Mailbox, policy: JoinPolicy, emit: Emit, already: int = 0) -> None:
        if already < 0:
            raise ValueError(f"already must be 0 or more, got {already}")
        self._chat = chat
        self._actor = actor
        self._policy = policy
        self._emit = emit
        self._batch = ToolBatch()
        self._injected = already

    @property
    def injected(self) -> int:
        """Messages that have joined this turn, with those that did so before it was resumed."""
        return self._injected

    def tool_result(self, result: object) -> None:
        """Look at what a tool returned, before it becomes a message."""
        self._batch.halt(result)

    def message_ended(self, message: MessageLike) -> None:
        """Look at a message that has just been added; at a boundary, let in what waits and still has room."""
        if not self._batch.closed(message) or self._batch.halted:
            return
        room = self._policy.steer_max_messages - self._injected
        if room <= 0:
            return
        texts = self._actor.take(room)
        for text in texts:
            self._chat.add_message("user", self._policy.frame(text))
        self._injected += len(texts)
        if texts:
            self._emit(EventType.TURN_STEERED, {"count": len(texts), "total": self._injected})
