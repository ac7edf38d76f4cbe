"""What the owner of a session does next, decided from what it has just loaded and nothing else.

The order of the questions is the rule:
1. Is the running turn cut? An interrupt or a cancel that was acknowledged is a fact, also when it is taken back since.
2. Is there another control message? Cancels of what has not begun and withdrawals are settled in the order in which
   they came, before whatever they concern is taken: also while a turn runs or waits, and while the session is held.
3. Is the session held by an operator? Then a turn stops here, and none begins.
4. Has the turn outlived too many owners? It is given up.
5. Does it wait for a person? It runs on when one of its calls need not wait any more, and is suspended again otherwise.
6. Else it goes on. Only with no turn at all is something new taken, strictly in the order of positions.

Pure: the same rows always give the same move.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from insika.clock import DUE_NOW, NEVER
from insika.policy.approvals import Standing, standing
from insika.storage.rows import CallState, Loaded, Mail, TurnState, Verdict

LOST_AFTER_DEATHS = 3
"""A turn whose owner died this often is not tried again (docs/ownership.md, section 2)."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the running turn from its log."""


@dataclass(frozen=True, slots=True)
class ResumeWaiting:
    """The turn waited for a person, and at least one of its calls need not wait any more: it was decided about, or its
    time is over."""


@dataclass(frozen=True, slots=True)
class SuspendAgain:
    """The turn waits for a person, and nothing that it waits for has come."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Let the session go in the middle of its turn, because an operator holds it."""


@dataclass(frozen=True, slots=True)
class CutRunning:
    """End the running turn: somebody cancelled or interrupted it. `control` are the cancels honoured by that;
    `replaced_by` is the interrupting message's turn."""

    interrupted: bool
    control: tuple[int, ...]
    replaced_by: str | None


@dataclass(frozen=True, slots=True)
class GiveUpRunning:
    """End the running turn as lost: it has outlived too many owners."""


@dataclass(frozen=True, slots=True)
class WithdrawQueued:
    """End a turn that never began, because it was cancelled; also when it is gone already (then `mail` is empty)."""

    turn_id: str
    mail: tuple[Mail, ...]
    control: tuple[int, ...]
    merging: bool


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Settle a withdrawal. `mail` is the message to end, None when it has ended already: then it is too late, and only
    that is said. `ends_turn`: the queued turn that has no other message. `merging`: that turn is the one that messages
    still merge into."""

    control: int
    mail: Mail | None
    ends_turn: str | None
    merging: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """Start a turn with these rows. `steers_released`: they were meant for a turn that could not take them, and
    `turn_id` is new."""

    turn_id: str
    mail: tuple[Mail, ...]
    merging: bool
    steers_released: bool


@dataclass(frozen=True, slots=True)
class GiveUpQueued:
    """The session killed its owners before this turn could begin: fail it visibly."""

    begin: Begin


@dataclass(frozen=True, slots=True)
class LetGo:
    """Nothing to do until `due_at`."""

    due_at: datetime


Settlement = WithdrawQueued | TakeBack
Move = (
    Resume
    | ResumeWaiting
    | SuspendAgain
    | Hold
    | CutRunning
    | GiveUpRunning
    | Settlement
    | Begin
    | GiveUpQueued
    | LetGo
)

_UNFINISHED = frozenset({CallState.ANNOUNCED, CallState.STARTED})


def next_move(loaded: Loaded, new_turn_id: Callable[[], str]) -> Move:
    session = loaded.session
    if session.turn_id is not None and (cuts := cuts_of(loaded.mail, session.turn_id)):
        return _cut(cuts)
    if (settlement := next_settlement(loaded)) is not None:
        return settlement
    if session.turn_id is not None:
        return _running(loaded)
    return _idle(loaded, new_turn_id)


def cuts_of(mail: Sequence[Mail], turn_id: str) -> tuple[Mail, ...]:
    """The rows aimed at this turn. Only they may cut it: a waiting interrupt was aimed at another one."""
    return tuple(row for row in mail if row.cuts == turn_id)


def next_settlement(loaded: Loaded) -> Settlement | None:
    """The first control message that is not aimed at the running turn, and what it comes to."""
    for control in loaded.mail:
        if control.verdict is not Verdict.CONTROL:
            continue
        if control.withdraws is not None:
            return _take_back(loaded, control.position, control.withdraws)
        if control.cuts is not None and control.cuts != loaded.session.turn_id:
            return _withdraw(loaded, control.position, control.cuts)
    return None


def _cut(cuts: Sequence[Mail]) -> CutRunning:
    interrupts = [row for row in cuts if row.verdict is not Verdict.CONTROL]
    return CutRunning(
        interrupted=bool(interrupts),
        control=tuple(row.position for row in cuts if row.verdict is Verdict.CONTROL),
        replaced_by=interrupts[0].turn_id if interrupts else None,
    )


def _idle(loaded: Loaded, new_turn_id: Callable[[], str]) -> Move:
    jobs = [row for row in loaded.mail if row.verdict is not Verdict.CONTROL]
    if not jobs:
        return LetGo(NEVER)
    if loaded.session.paused:
        return LetGo(DUE_NOW)
    begin = _next_turn(loaded, jobs, new_turn_id)
    ready_at = _quiet_at(begin)
    if ready_at > loaded.now:
        return LetGo(ready_at)
    return GiveUpQueued(begin) if loaded.session.deaths >= LOST_AFTER_DEATHS else begin


def _running(loaded: Loaded) -> Move:
    if loaded.session.paused:
        return Hold()
    if loaded.session.deaths >= LOST_AFTER_DEATHS:
        return GiveUpRunning()
    if loaded.turn is None or loaded.turn.state is not TurnState.WAITING:
        return Resume()
    return SuspendAgain() if _all_wait(loaded) else ResumeWaiting()


def _all_wait(loaded: Loaded) -> bool:
    """Every call without a result waits for a person who still has time."""
    pending = {each.call_id for each in loaded.approvals if standing(each, loaded.now) is Standing.PENDING}
    unfinished = {call.call_id for call in loaded.calls if call.state in _UNFINISHED}
    return bool(unfinished) and unfinished <= pending


def _withdraw(loaded: Loaded, control: int, turn_id: str) -> WithdrawQueued:
    return WithdrawQueued(turn_id, _opening(loaded, turn_id), (control,), merging=loaded.session.merge_turn == turn_id)


def _take_back(loaded: Loaded, control: int, position: int) -> TakeBack:
    mail = next((row for row in loaded.mail if row.position == position), None)
    if mail is None or mail.turn_id is None or _opening(loaded, mail.turn_id) != (mail,):
        return TakeBack(control, mail, None, merging=False)
    return TakeBack(control, mail, mail.turn_id, merging=loaded.session.merge_turn == mail.turn_id)


def _opening(loaded: Loaded, turn_id: str) -> tuple[Mail, ...]:
    """The messages with which a queued turn will begin; what was steered was meant for a turn that ran."""
    return tuple(
        row for row in loaded.mail if row.turn_id == turn_id and row.verdict not in (Verdict.CONTROL, Verdict.STEERED)
    )


def _next_turn(loaded: Loaded, jobs: Sequence[Mail], new_turn_id: Callable[[], str]) -> Begin:
    head = jobs[0]
    if head.verdict is Verdict.STEERED or head.turn_id is None:
        together = tuple(itertools.takewhile(lambda row: row.verdict is Verdict.STEERED and row.key == head.key, jobs))
        return Begin(new_turn_id(), together, merging=False, steers_released=True)
    together = tuple(row for row in jobs if row.turn_id == head.turn_id)
    return Begin(head.turn_id, together, loaded.session.merge_turn == head.turn_id, steers_released=False)


def _quiet_at(begin: Begin) -> datetime:
    """When the person has been quiet for long enough. Only while messages may still merge into the turn."""
    first, last = begin.mail[0], begin.mail[-1]
    if not begin.merging or first.debounce_ms <= 0:
        return DUE_NOW
    return min(
        last.at + timedelta(milliseconds=first.debounce_ms),
        first.at + timedelta(milliseconds=first.debounce_max_ms),
    )
