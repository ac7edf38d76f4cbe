"""Follows one session in the store: what has been said since the last look, and which turns have ended.

It reads, and nothing else; so it does not matter which process runs the session, nor whether that one died meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from insika.storage.port import ReadStore
from insika.storage.rows import (
    TERMINAL,
    Accepted,
    ApprovalSummary,
    LogEntry,
    SessionRow,
    TurnRow,
    TurnState,
    Verdict,
)

ASKED_AT_MOST = 1_000
"""Open questions of all sessions together, the oldest first, among which this one's are looked for."""

NEVER_BEGUN = (TurnState.CANCELLED, TurnState.REFUSED)


@dataclass(frozen=True, slots=True)
class News:
    """What is new. Everything that a turn said stands in `entries` by the time it is in `ended`. `asked`: calls about
    which a person is asked now; `settled`: such of earlier looks about which nobody need decide any more."""

    entries: Sequence[LogEntry]
    ended: Sequence[TurnRow]
    asked: Sequence[ApprovalSummary] = ()
    settled: Sequence[ApprovalSummary] = ()


class Follower:
    """`name`: the session, which need not exist yet. Call `begin` first."""

    def __init__(self, store: ReadStore, name: str, tenant: str = "") -> None:
        self.name = name
        self._store = store
        self._tenant = tenant
        self._seq = 0
        self._open: set[str] = set()
        self._heard: set[int] = set()
        self._awaited: dict[int, Accepted] = {}
        self._busy = False
        self._suspended = False
        self._told_of: set[str] = set()
        self.paused = False
        self.questions: Sequence[ApprovalSummary] = ()
        """The calls that waited for a person at the last look, the oldest first."""

    @property
    def seen(self) -> int:
        """How many messages of the conversation have been looked at."""
        return self._seq

    @property
    def quiet(self) -> bool:
        """At the last look nothing ran, nothing waited, and all that was awaited had come; or all of it waits for a
        person."""
        if (
            self._suspended
            and self.questions
            and not any(each.verdict is Verdict.INTERRUPTING for each in self._awaited.values())
        ):
            return True
        return not (self._busy or self._open or self._awaited)

    async def begin(self) -> None:
        """Start from the present end of the conversation. A turn that runs now is followed from here on."""
        session = await self._store.session(self.name, tenant=self._tenant)
        if session is not None:
            self._seq = session.log_seq
        await self.look()
        self._told_of.clear()  # what is asked now is news, too

    def expect(self, accepted: Accepted) -> None:
        """This message is on its way: until it has been heard of, the session is not quiet."""
        position = accepted.position
        if position is not None and position not in self._heard and accepted.verdict is not Verdict.DUPLICATE:
            self._awaited[position] = accepted

    def decided(self, approval_id: str) -> None:
        """Somebody has said a word on this question: it is no longer asked."""
        self.questions = [each for each in self.questions if each.approval.id != approval_id]

    async def look(self) -> News:
        """Raises StoreUnavailable."""
        session = await self._store.session(self.name, tenant=self._tenant)
        if session is None:
            return News((), (), *await self._asked(None))
        self.paused = session.paused
        self._busy = session.turn_id is not None or session.waiting > 0
        if session.turn_id is not None:
            self._open.add(session.turn_id)
        ended = [*await self._ended(session.turn_id), *await self._withdrawn()]
        # Read after the turns: so whatever an ended turn has said is among it.
        entries = await self._store.messages(session.id, after=self._seq)
        for entry in entries:
            self._seq = entry.seq
            self._open.add(entry.turn_id)
            if entry.position is not None:
                self._heard.add(entry.position)
                self._awaited.pop(entry.position, None)
        for turn in ended:
            self._open.discard(turn.id)
        return News(entries, ended, *await self._asked(session))

    async def open_questions(self) -> Sequence[ApprovalSummary]:
        """The calls of this session that wait for a person now, the oldest first. Raises StoreUnavailable."""
        session = await self._store.session(self.name, tenant=self._tenant)
        return [] if session is None else await self._waiting(session.turn_id)

    async def _asked(self, session: SessionRow | None) -> tuple[list[ApprovalSummary], list[ApprovalSummary]]:
        """What is newly asked, and what is asked no longer."""
        turn = await self._store.turn(session.turn_id) if session is not None and session.turn_id is not None else None
        self._suspended = turn is not None and turn.state is TurnState.WAITING
        waiting = await self._waiting(turn.id if turn is not None else None)
        new = [each for each in waiting if each.approval.id not in self._told_of]
        found = [await self._store.approval(id_) for id_ in self._told_of - {each.approval.id for each in waiting}]
        gone = [each for each in found if each is not None and not each.open]
        self._told_of.update(each.approval.id for each in new)
        self._told_of.difference_update(each.approval.id for each in gone)
        self.questions = waiting
        return new, sorted(gone, key=lambda each: (each.approval.asked_at, each.approval.id))

    async def _waiting(self, turn_id: str | None) -> list[ApprovalSummary]:
        if turn_id is None:
            return []
        waiting = await self._store.approvals(ASKED_AT_MOST, open_only=True)
        return [each for each in waiting if each.approval.turn_id == turn_id]

    async def _ended(self, running: str | None) -> list[TurnRow]:
        ended = []
        for turn_id in sorted(self._open - {running}):
            turn = await self._store.turn(turn_id)
            if turn is not None and turn.state in TERMINAL:
                ended.append(turn)
        return ended

    async def _withdrawn(self) -> list[TurnRow]:
        """The turns that were awaited and will never begin: they do not enter the conversation."""
        withdrawn: dict[str, TurnRow] = {}
        for position, accepted in list(self._awaited.items()):
            turn = await self._store.turn(accepted.turn_id) if accepted.turn_id else None
            if turn is not None and turn.state in NEVER_BEGUN and turn.started_at is None:
                del self._awaited[position]
                withdrawn[turn.id] = turn
        return list(withdrawn.values())
