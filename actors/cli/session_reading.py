"""One session as people look at it: all that is kept of it, and what it is doing just now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.cli.options import LISTED_AT_MOST
from actors.cli.output import moment, short_id
from actors.cli.refusals import no_session
from actors.cli.running import open_store
from insika.storage.port import ReadStore
from insika.storage.rows import ApprovalSummary, LogEntry, Mail, SessionRow, SessionSummary, TurnRow, TurnState, Verdict


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session, and all there is of it. `approvals`: those that wait for a person."""

    row: SessionRow
    turns: Sequence[TurnRow]
    mail: Sequence[Mail]
    messages: Sequence[LogEntry]
    approvals: Sequence[ApprovalSummary]

    @property
    def turn(self) -> TurnRow | None:
        """The one that runs, or waits for a person."""
        return next((turn for turn in self.turns if turn.id == self.row.turn_id), None)

    @property
    def doing(self) -> str:
        """For programs: what the session is doing, in one word."""
        if self.row.paused:
            return "held"
        if self.turn is not None:
            return str(self.turn.state)
        return "queued" if self.row.waiting else "idle"

    @property
    def stands(self) -> str:
        """What the session is doing, in a person's words."""
        turn, row = self.turn, self.row
        if row.paused:
            if turn is None:
                return "held: no turn begins"
            if (cut := self._cut(turn)) is not None:
                # Nobody comes for a held session but to settle a control message.
                comes = any(mail.verdict is Verdict.CONTROL and mail.ended is None for mail in self.mail)
                waits = row.lease_id is None and not comes
                then = "ends when the hold does" if waits else "ends in spite of the hold; no other begins"
                return f"held: turn {short_id(turn.id)} was {cut}, and {then}"
            if row.lease_id is not None:
                return f"held: turn {short_id(turn.id)} goes on to its next boundary"
            return f"held: turn {short_id(turn.id)} has stopped at a boundary"
        if turn is not None:
            waits = turn.state is TurnState.WAITING
            return f"turn {short_id(turn.id)} {'waits for a person' if waits else 'runs'}"
        return "waits for a turn to begin" if row.waiting else "idle"

    def _cut(self, turn: TurnRow) -> str | None:
        """How the end of this turn has been asked for, if it has: that comes before a hold."""
        cuts = [row for row in self.mail if row.cuts == turn.id and row.ended is None]
        if not cuts:
            return None
        return "interrupted" if any(row.verdict is Verdict.INTERRUPTING for row in cuts) else "cancelled"


def due(row: SessionSummary | SessionRow) -> str:
    return "held" if row.paused else moment(row.due_at)


async def read_session(name: str, tenant: str) -> Conversation:
    """Raises NotFound, or what opening the store raises."""
    async with open_store() as store:
        session = await store.session(name, tenant=tenant)
        if session is None:
            raise no_session(name, tenant)
        return Conversation(
            session,
            await store.turns(session.id),
            await store.mail(session.id),
            await store.messages(session.id),
            await _open_approvals(store, session),
        )


async def _open_approvals(store: ReadStore, session: SessionRow) -> Sequence[ApprovalSummary]:
    if session.turn_id is None:
        return ()
    waiting = await store.approvals(LISTED_AT_MOST, open_only=True)
    return [each for each in waiting if each.approval.session_id == session.id]
