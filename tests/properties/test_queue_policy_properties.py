"""An owner that follows the queue policy ends every message once, in order, whatever people and operators send.

A small session, with the rules by which messages are accepted, is played against the policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from insika.clock import NEVER
from insika.storage.rows import Loaded, Mail, SessionRow, Verdict
from insika.turn.queue_policy import (
    Begin,
    CutRunning,
    GiveUpQueued,
    GiveUpRunning,
    Hold,
    LetGo,
    Resume,
    TakeBack,
    WithdrawQueued,
    next_move,
)

START = datetime(2030, 1, 1, tzinfo=UTC)
KEYS = ("alice", "bob")


@dataclass
class Session:
    """What the row knows, and what became of everything."""

    now: datetime = START
    turn_id: str | None = None
    turn_key: str | None = None
    merge_turn: str | None = None
    merge_key: str | None = None
    deaths: int = 0
    paused: bool = False
    mail: list[Mail] = field(default_factory=list)
    positions: int = 0
    turns: int = 0
    alive: set[str] = field(default_factory=set)
    accepted: list[int] = field(default_factory=list)
    ended: dict[int, str] = field(default_factory=dict)
    begun: list[int] = field(default_factory=list)
    cut: list[tuple[str, str]] = field(default_factory=list)

    def accept(self, mode: str, key: str, debounce_ms: int) -> None:
        self.positions += 1
        self.turns += 1
        turn, verdict, cuts, merge = f"t{self.turns}", Verdict.ACCEPTED, None, (None, None)
        if mode == "interrupt" and self.turn_id is not None:
            verdict, cuts, self.turn_key = Verdict.INTERRUPTING, self.turn_id, None
        elif mode == "steer" and self.turn_id is not None and key == self.turn_key:
            verdict, turn = Verdict.STEERED, self.turn_id
        elif mode == "collect":
            if key == self.merge_key and self.merge_turn is not None:
                verdict, turn = Verdict.MERGED, self.merge_turn
            merge = (turn, key)
        self.merge_turn, self.merge_key = merge
        if verdict in (Verdict.ACCEPTED, Verdict.INTERRUPTING):
            self.alive.add(turn)
        self.accepted.append(self.positions)
        self.mail.append(self._row(turn, verdict, cuts, key, debounce_ms))

    def cancel(self, which: int) -> None:
        open_turns = sorted(self.alive | ({self.turn_id} if self.turn_id else set()))
        if not open_turns:
            return
        turn = open_turns[which % len(open_turns)]
        self.positions += 1
        if self.merge_turn == turn:
            self.merge_turn = self.merge_key = None
        if self.turn_id == turn:
            self.turn_key = None
        self.mail.append(self._row(turn, Verdict.CONTROL, turn, None, 0))

    def withdraw(self, which: int) -> None:
        if not self.accepted:
            return
        self.positions += 1
        row = self._row("", Verdict.CONTROL, None, None, 0)
        self.mail.append(replace(row, turn_id=None, withdraws=self.accepted[which % len(self.accepted)]))

    def owner_moves(self) -> bool:
        """One move of the owner. False: it let the session go."""
        move = next_move(self.loaded(), self.new_turn)
        match move:
            case Resume():
                assert self.turn_id is not None
                assert not self.paused
                assert not [row for row in self.mail if row.verdict is Verdict.CONTROL], "settled before the next step"
                self._end_turn()
            case CutRunning(interrupted, control, replaced_by):
                assert self.turn_id is not None
                self.cut.append((self.turn_id, replaced_by or ""))
                assert interrupted == (replaced_by is not None)
                aimed = [row.position for row in self.mail if row.cuts == self.turn_id]
                assert aimed, "nobody cut it"
                assert set(control) <= set(aimed)
                self._end(control, "control")
                self._end_turn()
            case GiveUpRunning():
                assert self.deaths >= 3
                self._end_turn()
            case TakeBack(control, row, ends_turn, merging):
                self._take_back(control, row, ends_turn, merging=merging)
            case Hold():
                assert self.turn_id is not None
                assert self.paused
                return False
            case WithdrawQueued(turn, rows, control, _):
                assert self.turn_id != turn
                self._end([row.position for row in rows], f"withdrawn {turn}")
                self._end(control, "control")
                self.alive.discard(turn)
                if self.merge_turn == turn:
                    self.merge_turn = self.merge_key = None
            case Begin() | GiveUpQueued():
                self._begin(move.begin if isinstance(move, GiveUpQueued) else move)
                if isinstance(move, GiveUpQueued):
                    assert self.deaths == 0
                    self._end_turn()
            case LetGo(due_at):
                if self.paused:
                    assert (due_at == NEVER) is not bool(self.mail)
                    return False
                if due_at != NEVER:
                    assert due_at > self.now
                    assert self.merge_turn is not None, "nothing more can join what waits"
                    self.now = due_at
                return due_at != NEVER
        return True

    def _take_back(self, control: int, row: Mail | None, ends_turn: str | None, *, merging: bool) -> None:
        (asked,) = [each for each in self.mail if each.position == control]
        if row is None:
            assert asked.withdraws in self.ended, "too late only for what has ended"
        else:
            assert row.position == asked.withdraws
            self._end([row.position], "taken back")
        self._end([control], "control")
        if ends_turn is not None:
            self.alive.remove(ends_turn)
            assert merging is (self.merge_turn == ends_turn)
            if merging:
                self.merge_turn = self.merge_key = None

    def _begin(self, begin: Begin) -> None:
        assert self.turn_id is None
        assert not self.paused
        jobs = [row.position for row in self.mail if row.verdict is not Verdict.CONTROL]
        taken = [row.position for row in begin.mail]
        assert taken == jobs[: len(taken)], "what waits longest comes first"
        assert len({row.key for row in begin.mail}) == 1
        self.begun.append(taken[0])
        self._end(taken, begin.turn_id)
        self.alive.discard(begin.turn_id)
        self.turn_id, self.turn_key, self.deaths = begin.turn_id, begin.mail[0].key, 0
        if self.merge_turn == begin.turn_id:
            assert begin.merging
            self.merge_turn = self.merge_key = None

    def _end_turn(self) -> None:
        self.turn_id = self.turn_key = None
        self.deaths = 0

    def _end(self, positions, how: str) -> None:
        for position in positions:
            (row,) = [row for row in self.mail if row.position == position]
            self.mail.remove(row)
            if row.verdict is not Verdict.CONTROL:
                assert position not in self.ended
                self.ended[position] = how

    def new_turn(self) -> str:
        self.turns += 1
        return f"t{self.turns}"

    def loaded(self) -> Loaded:
        session = SessionRow(
            id=1,
            tenant="",
            name="s",
            epoch=1,
            lease_id="lease",
            lease_until=self.now,
            due_at=self.now,
            paused=self.paused,
            mail_seq=self.positions,
            urgent_seq=0,
            log_seq=0,
            waiting=len(self.mail),
            open_calls=0,
            turn_id=self.turn_id,
            turn_key=self.turn_key,
            merge_turn=self.merge_turn,
            merge_key=self.merge_key,
            deaths=self.deaths,
            load_from=0,
        )
        return Loaded(session, self.now, tuple(self.mail), None, (), (), ())

    @property
    def taken_back(self) -> set[int]:
        return {position for position, how in self.ended.items() if how == "taken back"}

    def _row(self, turn: str, verdict: Verdict, cuts: str | None, key: str | None, debounce_ms: int) -> Mail:
        return Mail(
            position=self.positions,
            job_id=f"job-{self.positions}",
            mode="cancel" if verdict is Verdict.CONTROL else "steer",
            key=key,
            text="",
            at=self.now,
            verdict=verdict,
            turn_id=turn,
            cuts=cuts,
            debounce_ms=debounce_ms,
            debounce_max_ms=5_000,
            agent="agent",
            channel=None,
            recipient=key,
            origin="customer",
        )


MESSAGES = st.tuples(
    st.sampled_from(["followup", "collect", "steer", "interrupt"]), st.sampled_from(KEYS), st.sampled_from([0, 0, 1500])
)
HAPPENINGS = st.lists(
    st.one_of(
        MESSAGES,
        st.tuples(st.just("cancel"), st.integers(0, 5)),
        st.tuples(st.just("withdraw"), st.integers(0, 9)),
        st.tuples(st.just("hold"), st.booleans()),
        st.tuples(st.just("owner")),
        st.tuples(st.just("owner")),
        st.tuples(st.just("death")),
        st.tuples(st.just("time"), st.integers(1, 3_000)),
    ),
    max_size=40,
)


def play(happenings) -> Session:
    session = Session()
    for what, *how in happenings:
        if what == "owner":
            session.owner_moves()
        elif what == "cancel":
            session.cancel(*how)
        elif what == "withdraw":
            session.withdraw(*how)
        elif what == "hold":
            session.paused = how[0]
        elif what == "death":
            session.deaths += 1
        elif what == "time":
            session.now += timedelta(milliseconds=how[0])
        else:
            session.accept(what, *how)
    return session


def settle(session: Session) -> None:
    for _ in range(200):
        if not session.owner_moves():
            return
    raise AssertionError("the owner never comes to an end")


@given(HAPPENINGS)
def test_every_message_ends_once_and_in_order(happenings):
    session = play(happenings)
    session.paused = False
    settle(session)

    assert session.mail == []
    assert session.alive == set(), "a turn without messages waits for ever"
    assert sorted(session.ended) == session.accepted
    assert session.begun == sorted(session.begun)
    assert len({cut for cut, _ in session.cut}) == len(session.cut)


@given(HAPPENINGS)
def test_a_held_session_settles_every_control_and_begins_nothing(happenings):
    session = play(happenings)
    session.paused = True
    begun = list(session.begun)
    settle(session)

    assert not [row for row in session.mail if row.verdict is Verdict.CONTROL]
    assert session.begun == begun


@given(HAPPENINGS, st.integers(0, 5))
def test_the_same_rows_give_the_same_move(happenings, deaths):
    session = play(happenings)
    loaded = replace(session.loaded(), session=replace(session.loaded().session, deaths=deaths))

    assert next_move(loaded, lambda: "new") == next_move(loaded, lambda: "new")
