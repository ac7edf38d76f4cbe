"""One turn in memory: what it is, what was said so far, and where in its steps it stands.

Made anew from the log whenever its owner loads; nothing else knows how far a turn has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from insika.agents.limits import TurnLimits
from insika.clock import NEVER
from insika.messages import NO_USAGE, Message, Role, Usage
from insika.policy.approvals import Asked
from insika.storage.rows import ApprovalRow, CallRow, LogEntry, ModelCallRow


@dataclass(frozen=True, slots=True)
class TurnIdentity:
    """What does not change while a turn runs."""

    turn_id: str
    session_id: int
    session: str
    tenant: str
    agent: str
    model: str
    instructions: str
    limits: TurnLimits
    time_s: float
    """Seconds that are left of the turn's time, counted from the moment this owner took it up; 0 or less: none."""
    note: str = ""
    """The engine's own word to the model, last in each request of this turn and kept nowhere; "" is none."""
    route: str | None = None
    """What the turn was classified as; None where it was not."""


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that was announced and not closed: its message and how far each call has come, in announced order.
    `asked`: what a person was asked about its calls, by call id."""

    step: int
    message: Message
    calls: tuple[CallRow, ...]
    asked: Mapping[str, Asked] = field(default_factory=dict)


@dataclass(slots=True)
class TurnState:
    """`history` is all that is said before the next request, oldest first; `turn` the part of it that is this
    turn's. `step` is the one at hand, counted from 1; `attempt` the next attempt at its model request. `request_open`:
    that attempt's row is written, and nobody has asked yet. `usage`: what the turn's requests have cost so far, as
    far as it is booked; `unbooked`: an attempt before this one has a row that is open still, and `lost` is what it
    cost, where its owner knows although it could not write it. `model`: the reference of the one that answered last,
    which stays for the turn; "" before any has."""

    history: list[Message]
    turn: list[LogEntry]
    step: int
    attempt: int
    request_open: bool
    batch: OpenBatch | None
    usage: Usage = NO_USAGE
    lost: Usage = NO_USAGE
    unbooked: bool = False
    model: str = ""

    @property
    def turn_from(self) -> int:
        """Where in `history` the running turn begins."""
        return len(self.history) - len(self.turn)

    def opened(self, usage: Usage) -> None:
        """The row of its first request is written, by this owner, and nobody has asked. `usage`: what was booked of the
        turn since this was read from the log."""
        self.step, self.attempt, self.request_open = 1, 1, True
        self.usage += usage
        self.unbooked, self.lost, self.model = False, NO_USAGE, ""


def state_from_log(
    turn_id: str,
    log: Sequence[LogEntry],
    calls: Sequence[CallRow],
    model_calls: Sequence[ModelCallRow],
    *,
    fresh: bool,
    approvals: Sequence[ApprovalRow] = (),
    now: datetime = NEVER,
    model: str = "",
) -> TurnState:
    """Where the turn stands. `fresh`: this owner itself has just opened the request's row and not yet asked.
    `approvals` are the turn's, and `now` is the store's time as they were loaded: by it they have expired or not."""
    turn = [entry for entry in log if entry.turn_id == turn_id]
    asked = {row.call_id: Asked.as_of(row, now) for row in approvals}
    batch = _open_batch(turn, calls, asked)
    step = batch.step if batch is not None else _next_step(turn)
    attempts = [row.attempt for row in model_calls if row.step == step and row.purpose in _OF_STEPS]
    return TurnState(
        history=[entry.message for entry in log],
        turn=turn,
        step=step,
        attempt=max(attempts, default=1) if fresh else max(attempts, default=0) + 1,
        request_open=fresh,
        batch=batch,
        usage=sum((row.usage for row in model_calls), NO_USAGE),
        unbooked=not fresh and any(row.state == "open" for row in model_calls),
        model=model,
    )


_OF_STEPS = frozenset({"answer", "synthesis"})
"""The purposes of the loop's own requests; others are asked beside the conversation, and count their attempts apart."""


def announced_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls that these messages announce."""
    return {call.id for message in messages for call in message.tool_calls}


def _open_batch(turn: Sequence[LogEntry], calls: Sequence[CallRow], asked: Mapping[str, Asked]) -> OpenBatch | None:
    opening = next((entry for entry in reversed(turn) if entry.message.tool_calls), None)
    if opening is None or any(entry.seq > opening.seq for entry in turn):
        return None
    rows: Mapping[int, CallRow] = {row.index: row for row in calls if row.step == opening.step}
    ordered = tuple(rows[index] for index in range(len(opening.message.tool_calls)))
    return OpenBatch(opening.step, opening.message, ordered, asked)


def _next_step(turn: Sequence[LogEntry]) -> int:
    return max((entry.step for entry in turn if entry.message.role is Role.ASSISTANT), default=0) + 1
