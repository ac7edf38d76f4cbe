"""What the owner of a session does next, decided from what it has just loaded and nothing else.

The order of the questions is the rule: a running turn comes before anything new; what cuts it comes before its next
step; a cancelled turn that has not begun is withdrawn before its place in the line is reached; and what waits is
taken strictly in the order of positions. Pure: the same rows always give the same move.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from insika.clock import DUE_NOW, NEVER
from insika.storage.rows import Loaded, Mail, Verdict

LOST_AFTER_DEATHS = 3
"""A turn whose owner died this often is not tried again (docs/ownership.md, section 2)."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the running turn from its log."""


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


Move = Resume | CutRunning | GiveUpRunning | WithdrawQueued | Begin | GiveUpQueued | LetGo


def next_move(loaded: Loaded, new_turn_id: Callable[[], str]) -> Move:
    session = loaded.session
    if session.turn_id is not None:
        return _running(loaded, session.turn_id)
    for control in loaded.mail:
        if control.verdict is Verdict.CONTROL and control.cuts is not None:
            return _withdraw(loaded, control, control.cuts)
    jobs = [row for row in loaded.mail if row.verdict is not Verdict.CONTROL]
    if not jobs:
        return LetGo(NEVER)
    begin = _next_turn(loaded, jobs, new_turn_id)
    ready_at = _quiet_at(begin)
    if ready_at > loaded.now:
        return LetGo(ready_at)
    return GiveUpQueued(begin) if session.deaths >= LOST_AFTER_DEATHS else begin


def cuts_of(mail: Sequence[Mail], turn_id: str) -> tuple[Mail, ...]:
    """The rows aimed at this turn. Only they may cut it: a waiting interrupt was aimed at another one."""
    return tuple(row for row in mail if row.cuts == turn_id)


def _running(loaded: Loaded, turn_id: str) -> Move:
    cuts = cuts_of(loaded.mail, turn_id)
    if cuts:
        interrupts = [row for row in cuts if row.verdict is not Verdict.CONTROL]
        return CutRunning(
            interrupted=bool(interrupts),
            control=tuple(row.position for row in cuts if row.verdict is Verdict.CONTROL),
            replaced_by=interrupts[0].turn_id if interrupts else None,
        )
    return GiveUpRunning() if loaded.session.deaths >= LOST_AFTER_DEATHS else Resume()


def _withdraw(loaded: Loaded, control: Mail, turn_id: str) -> WithdrawQueued:
    mail = tuple(
        row for row in loaded.mail if row.turn_id == turn_id and row.verdict not in (Verdict.CONTROL, Verdict.STEERED)
    )
    return WithdrawQueued(turn_id, mail, (control.position,), merging=loaded.session.merge_turn == turn_id)


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
