"""Where each message of a session went, in a person's words, told from the session's rows. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from actors.cli.output import short_id
from insika.errors import Interrupted
from insika.storage.rows import Ended, LogEntry, Mail, SessionRow, TurnRow, TurnState, Verdict


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """`mail` and `turns` are all of the session's; `joined_at`: by position, the step at whose boundary a message
    joined a turn, 0 for one that opened it."""

    session: SessionRow
    turns: Mapping[str, TurnRow]
    mail: Mapping[int, Mail]
    joined_at: Mapping[int, int]

    @classmethod
    def of(
        cls, session: SessionRow, turns: Iterable[TurnRow], mail: Sequence[Mail], messages: Iterable[LogEntry]
    ) -> Whereabouts:
        steps = {entry.position: entry.step for entry in messages if entry.position is not None}
        return cls(session, {turn.id: turn for turn in turns}, {row.position: row for row in mail}, steps)

    def went(self, row: Mail) -> str:
        """Where this message is, or how it ended."""
        if row.verdict is Verdict.CONTROL:
            return self._asked(row)
        match row.ended:
            case None:
                return self._waits(row)
            case Ended.TURN:
                return self._was_read(row)
            case Ended.REFUSED:
                return "refused by the input guard" + self._not_interrupted(row)
            case _:
                return self._was_withdrawn(row)

    def _waits(self, row: Mail) -> str:
        turn = _turn(row.turn_id)
        running = self.session.turn_id
        match row.verdict:
            case Verdict.STEERED if row.turn_id == running:
                return f"waits to join {turn} at its next boundary"
            case Verdict.STEERED:
                return f"{turn} could not take it; waits for a turn of its own"
            case Verdict.MERGED:
                return f"merged into {turn}, which waits to begin"
            case Verdict.INTERRUPTING if row.cuts == running:
                return f"interrupts {_turn(row.cuts)}; then gets its own {turn}"
            case Verdict.INTERRUPTING:
                return f"interrupted {_turn(row.cuts)}; waits for its own {turn}"
            case _:
                return f"waits for its own {turn}"

    def _was_read(self, row: Mail) -> str:
        turn, step = _turn(row.consumed_by), self.joined_at.get(row.position, 0)
        match row.verdict:
            case Verdict.STEERED if row.consumed_by == row.turn_id:
                return f"joined {turn} at its boundary after step {step}"
            case Verdict.STEERED:
                return f"steered, but {_turn(row.turn_id)} could not take it; released as {turn}"
            case Verdict.MERGED:
                return f"merged into {turn} before it began"
            case Verdict.INTERRUPTING:
                return f"interrupted {_turn(row.cuts)}; got its own {turn}"
            case _:
                return f"got its own {turn}"

    def _was_withdrawn(self, row: Mail) -> str:
        asked = any(each.withdraws == row.position for each in self.mail.values())
        how = "withdrawn" if asked else f"withdrawn with {_turn(row.turn_id)}, which was cancelled before it began"
        return f"{how}; it had interrupted {_turn(row.cuts)}" if self._interrupted(row) else how

    def _interrupted(self, row: Mail) -> bool:
        """Whether the turn that this message was aimed at ended by an interrupt."""
        turn = self.turns.get(row.cuts or "")
        return turn is not None and (turn.error or {}).get("type") == Interrupted.type

    def _not_interrupted(self, row: Mail) -> str:
        return f"; it did not interrupt {_turn(row.cuts)}" if row.cuts is not None else ""

    def _asked(self, row: Mail) -> str:
        """Of a control message: what it asks for, or what came of it."""
        if row.withdraws is not None:
            if row.ended is None:
                return f"asks to take back message {row.withdraws}"
            target = self.mail.get(row.withdraws)
            in_time = target is not None and target.ended is Ended.WITHDRAWN
            return f"took back message {row.withdraws}" if in_time else f"too late to take back message {row.withdraws}"
        turn = _turn(row.cuts)
        if row.ended is None:
            return f"asks {turn} to end"
        aimed_at = self.turns.get(row.cuts or "")
        cancelled = aimed_at is not None and aimed_at.state is TurnState.CANCELLED
        return f"ended {turn}" if cancelled else f"too late to end {turn}"


def _turn(turn_id: str | None) -> str:
    return f"turn {short_id(turn_id or '-')}"
