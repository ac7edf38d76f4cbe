"""The rules of one session's mailbox, said once more, from the documents and not from the code: what a message's
verdict must be, who may take it, what may end a turn, what a decision lets run, and when somebody must come by.

It is told what people do, and shown the rows after every step of an owner; whatever the rules do not allow is an
AssertionError that says so. It never decides for the product, and takes nothing from it but rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from insika.clock import DUE_NOW, NEVER
from insika.storage.operations import Seen
from insika.storage.rows import (
    TERMINAL,
    Accepted,
    ApprovalDecision,
    ApprovalRow,
    CallRow,
    CallState,
    Decided,
    Ended,
    LogEntry,
    Mail,
    SessionRow,
    TurnRow,
    TurnState,
    Verdict,
    Withdrawal,
)
from tests.stepped_world import BAD, Asked, Ran
from tests.store_world import assert_resumable

LOST_AT = 3
"""Deaths at which a turn is not tried again."""

By = tuple[str, str | None, str, str]
"""The agent, channel, recipient and origin of a message: what it must have in common with a turn to be part of it."""


@dataclass(frozen=True, slots=True)
class AgentRules:
    """What a profile says, as far as the mailbox goes. `asks`: the tools that need a person."""

    mode: str = "followup"
    debounce_s: float = 0.0
    longest_s: float = 10.0
    takes: int = 2
    room: int = 5
    turn_s: float = 300.0
    approval_s: float = 60.0
    asks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Job:
    """A message as somebody sends it."""

    id: str
    text: str
    mode: str | None
    by: By

    @property
    def agent(self) -> str:
        return self.by[0]

    @property
    def refused(self) -> bool:
        """The guard does not let this through."""
        return self.text.startswith(BAD)


@dataclass(slots=True)
class Message:
    job: Job
    position: int
    at: datetime
    verdict: Verdict
    turn: str
    quiet: timedelta
    longest: timedelta
    ended: Ended | None = None


@dataclass(slots=True)
class Turn:
    """A turn that has begun. `joins`: who may still steer it; `cuts`: positions of what was aimed at it."""

    id: str
    by: By
    joins: By | None
    began: datetime
    steered: int = 0
    parked: timedelta = timedelta(0)
    parked_at: datetime | None = None
    cuts: set[int] = field(default_factory=set)
    broke: bool = False
    """The model failed in it."""

    @property
    def agent(self) -> str:
        return self.by[0]


@dataclass(slots=True)
class Control:
    """`turn` is what it cancels; `message` the position that it takes back."""

    position: int
    turn: str | None = None
    message: int | None = None
    ended: bool = False


@dataclass(slots=True)
class Approval:
    row: ApprovalRow
    decision: ApprovalDecision | None = None
    reason: str = ""
    uses: int = 0

    @property
    def open(self) -> bool:
        return self.decision is None


@dataclass(frozen=True, slots=True)
class Picture:
    """Every row of one session at one moment."""

    session: SessionRow
    mail: Mapping[int, Mail]
    turns: Mapping[str, TurnRow]
    log: tuple[LogEntry, ...]
    calls: Mapping[tuple[str, int, int], CallRow]
    approvals: Mapping[str, ApprovalRow]


class SessionRules:
    def __init__(self, agents: Mapping[str, AgentRules]) -> None:
        self.agents = agents
        self.messages: dict[int, Message] = {}
        self.controls: dict[int, Control] = {}
        self.approvals: dict[str, Approval] = {}
        self.turn: Turn | None = None
        self.over: set[str] = set()
        self.tail: tuple[str, By] | None = None
        self.paused = False
        self.urgent = 0
        self.deaths = 0
        self.ran: list[Ran] = []
        self.asked: list[Asked] = []
        self.picture: Picture | None = None

    # --- what people do

    @property
    def waiting(self) -> list[Message]:
        return [message for message in self.messages.values() if message.ended is None]

    def says(self, job: Job, told: Accepted, now: datetime) -> None:
        """A job with an id that was not used before."""
        rules = self.agents[job.agent]
        person = job.by[3] == "customer"
        mode = (job.mode or rules.mode) if person else "followup"
        quiet = rules.debounce_s if person else 0.0
        collects = mode == "collect" or (mode == "steer" and quiet > 0)
        cuts = False
        if len(self.waiting) >= rules.room:
            verdict = Verdict.REJECTED
        elif mode == "interrupt" and self.turn is not None:
            verdict, cuts, collects = Verdict.INTERRUPTING, True, False
        elif mode == "steer" and self.turn is not None and self.turn.joins == job.by:
            verdict, collects = Verdict.STEERED, False
        elif collects and self.tail is not None and self.tail[1] == job.by:
            verdict = Verdict.MERGED
        else:
            verdict = Verdict.ACCEPTED
        assert told.verdict is verdict, f"{job.text!r} is {told.verdict}, and should be {verdict}"
        if verdict is Verdict.REJECTED:
            assert told.field is None, f"{job.text!r} is rejected for its {told.field}, not for a full mailbox"
            return
        assert told.position is not None
        assert told.turn_id is not None
        assert told.position > max([*self.messages, *self.controls], default=0), "arrived before one that was there"
        if verdict is Verdict.MERGED and self.tail is not None:
            assert told.turn_id == self.tail[0], f"{job.text!r} merged into another turn than the last"
        if verdict is Verdict.STEERED and self.turn is not None:
            assert told.turn_id == self.turn.id, f"{job.text!r} steers another turn than the running one"
        message = Message(
            job,
            told.position,
            now,
            verdict,
            told.turn_id,
            timedelta(seconds=quiet),
            timedelta(seconds=rules.longest_s),
        )
        self.messages[told.position] = message
        self.tail = (told.turn_id, job.by) if collects else None
        if cuts and self.turn is not None:
            self.turn.cuts.add(told.position)
            self.turn.joins = None
            self.urgent = told.position

    def says_again(self, first: Job, told: Accepted) -> None:
        """The same id and text as a message that was accepted."""
        assert told.verdict is Verdict.DUPLICATE, f"{first.text!r}, sent again, is {told.verdict}"
        message = next(each for each in self.messages.values() if each.job.id == first.id)
        assert told.position == message.position

    def cancels(self, turn_id: str, told: Accepted | None) -> None:
        if turn_id in self.over:
            assert told is None, "a turn that is over was cancelled"
            return
        assert told is not None
        assert told.verdict is Verdict.CONTROL
        assert told.position is not None
        self.controls[told.position] = Control(told.position, turn=turn_id)
        self.urgent = told.position
        if self.turn is not None and self.turn.id == turn_id:
            self.turn.cuts.add(told.position)
            self.turn.joins = None
        if self.tail is not None and self.tail[0] == turn_id:
            self.tail = None

    def takes_back(self, message: Message, told: Withdrawal | None) -> None:
        assert told is not None
        assert told.position == message.position
        assert told.ended is message.ended, f"{message.job.text!r} is {message.ended}, and was said to be {told.ended}"
        assert (told.control is None) == (message.ended is not None)
        if told.control is not None:
            self.controls[told.control] = Control(told.control, message=message.position)

    def decides(self, id: str, decision: ApprovalDecision, reason: str, told: Decided | None, now: datetime) -> None:
        assert told is not None
        approval = self.approvals[id]
        counts = approval.open and approval.row.turn_id not in self.over
        wins = counts and now < approval.row.expires_at
        assert told.won == wins, f"{decision} {'did not win' if wins else 'won'} over {approval.decision}"
        if wins:
            approval.decision, approval.reason = decision, reason
        elif counts:
            approval.decision = ApprovalDecision.EXPIRED
        if counts or approval.decision is not None:
            assert told.approval.decision is approval.decision

    # --- what an owner does

    def sees(self, now: datetime, new: Picture, step: str, seen: Seen | None) -> None:
        """The rows after one operation of an owner, `step`, which looked at `seen` before; or after what people did."""
        old, self.picture = self.picture, new
        if old is None:
            return
        ended = {
            position: row
            for position, row in new.mail.items()
            if row.ended is not None and (position not in old.mail or old.mail[position].ended is None)
        }
        left = dict(ended)
        self._lease(old, new, step, now)
        before, after = old.session.turn_id, new.session.turn_id
        if before is None and after is not None:
            self._begins(after, new, left, seen, now)
        elif before is not None and after is None:
            self._ends(before, old, new, left, now)
        elif step == "cross_boundary" and len(new.log) > len(old.log):
            self._crosses(new, new.log[len(old.log) :], left)
        elif step == "fail_queued" and left:
            self._gives_up(new, left)
        else:
            assert len(new.log) == len(old.log) or step == "append", f"{step} wrote into the conversation"
        self._settles(new, left, seen)
        assert not left, f"{step} ended messages {sorted(left)}, which nothing allows"
        for position, row in ended.items():
            if position in self.messages:
                self.messages[position].ended = row.ended
            else:
                self.controls[position].ended = True
        self._questions(new, now)
        self._calls(old, new, step, now)
        if step == "suspend" and old.session.lease_id is not None and new.session.lease_id is None:
            self._suspends(new)
        self._stand(old, new, now)

    def _begins(self, turn_id: str, new: Picture, left: dict[int, Mail], seen: Seen | None, now: datetime) -> None:
        assert not self.paused, "a turn began although the session is held"
        group = self._next()
        head = group[0]
        if head.verdict is Verdict.STEERED:
            assert turn_id not in {message.turn for message in self.messages.values()}
        else:
            assert turn_id == head.turn, f"turn {turn_id} began before its time: {head.job.text!r} comes first"
        assert now >= self._ready_at(group), f"turn {turn_id} began before its person was quiet"
        cancels = [each for each in self.controls.values() if each.turn == turn_id and not each.ended]
        assert not cancels, "a turn began after it was cancelled"
        for control in self._withdrawals():
            known = seen is None or control.position <= seen.mail
            assert not (known and control.message in {each.position for each in group}), (
                f"message {control.message} was taken although its owner knew that it was taken back"
            )
        self._takes(turn_id, group, left)
        opened = [entry.position for entry in new.log if entry.turn_id == turn_id]
        assert opened == [message.position for message in group], f"turn {turn_id} opens with {opened}"
        takes = self.agents[head.job.agent].takes
        self.turn = Turn(turn_id, head.job.by, head.job.by if takes else None, now)
        if self.tail is not None and self.tail[0] == turn_id:
            self.tail = None
        self.deaths = 0

    def _takes(self, turn_id: str, group: Sequence[Message], left: dict[int, Mail]) -> None:
        """All of these end now, in this turn."""
        for message in group:
            assert not message.job.refused, f"{message.job.text!r} got past the guard"
            row = left.pop(message.position, None)
            assert row is not None, f"turn {turn_id} left out {message.job.text!r}"
            assert (row.ended, row.consumed_by) == (Ended.TURN, turn_id), f"{message.job.text!r} is {row.ended}"

    def _gives_up(self, new: Picture, left: dict[int, Mail]) -> None:
        """A turn is failed before it begins, because its owners die."""
        group = self._next()
        (turn_id,) = {row.consumed_by for row in left.values()}
        assert turn_id is not None
        assert new.turns[turn_id].state is TurnState.FAILED
        assert self.deaths >= LOST_AT, f"turn {turn_id} was given up after {self.deaths} deaths"
        assert not self.paused
        assert head_turn(group) in (turn_id, None)
        self._takes(turn_id, group, left)
        self.over.add(turn_id)
        self.deaths = 0
        if self.tail is not None and self.tail[0] == turn_id:
            self.tail = None

    def _crosses(self, new: Picture, written: Sequence[LogEntry], left: dict[int, Mail]) -> None:
        turn = self._running()
        assert not turn.cuts, "a boundary was crossed although the turn was cut"
        waits = [each for each in self.waiting if each.verdict is Verdict.STEERED and each.turn == turn.id]
        back = {control.message for control in self._withdrawals()}
        room = self.agents[turn.agent].takes - turn.steered
        joining = waits[:room] if room > 0 else []
        assert not back & {each.position for each in waits}, "a boundary was crossed before what was taken back"
        absorbed = [entry.position for entry in written if entry.position is not None]
        expected = [each.position for each in joining]
        assert absorbed == expected, f"messages {absorbed} joined turn {turn.id} at its boundary, expected {expected}"
        self._takes(turn.id, joining, left)
        turn.steered += len(joining)
        if turn.steered >= self.agents[turn.agent].takes:
            turn.joins = None

    def _ends(self, turn_id: str, old: Picture, new: Picture, left: dict[int, Mail], now: datetime) -> None:
        turn, row = self._running(), new.turns[turn_id]
        error = (row.error or {}).get("type")
        if row.state is TurnState.COMPLETED:
            assert not turn.cuts, "an answer was published although the turn was cut"
        elif row.state is TurnState.CANCELLED:
            assert turn.cuts, "a turn was cut that nobody had cut"
            interrupted = any(position in self.messages for position in turn.cuts)
            cancelled = any(position in self.controls for position in turn.cuts)
            reasons = {"interrupted": interrupted, "cancelled": cancelled}
            assert reasons.get(error or "", False), f"a turn was cut as {error}, and nobody asked for that"
        else:
            assert row.state is TurnState.FAILED, f"a running turn is {row.state}"
            reasons = {
                "worker_lost": self.deaths >= LOST_AT,
                "timeout": self._spent(turn, now) >= self.agents[turn.agent].turn_s,
                "provider_fatal": turn.broke,
            }
            assert reasons.get(error or "", False), f"turn {turn_id} failed with {error}, for no reason"
        for position, mail in list(left.items()):
            control = self.controls.get(position)
            if control is not None and control.turn == turn_id and mail.ended is Ended.CONTROL:
                del left[position]
        self.over.add(turn_id)
        self.turn = None
        self.deaths = 0

    def _settles(self, new: Picture, left: dict[int, Mail], seen: Seen | None) -> None:
        """What else may end, without a turn: what was cancelled, taken back or refused, and the requests for that."""
        for position, row in list(left.items()):
            if position in self.controls:
                assert row.ended is Ended.CONTROL
                self._honoured(self.controls[position], new)
                del left[position]
                continue
            message = self.messages[position]
            if row.ended is Ended.WITHDRAWN:
                asked = any(control.message == position for control in self._withdrawals()) or any(
                    control.turn == message.turn and not control.ended and self._queued(message)
                    for control in self.controls.values()
                )
                assert asked, f"{message.job.text!r} was taken back, and nobody asked for that"
                cut = self.turn is not None and position in self.turn.cuts
                assert not cut, "an interrupt was taken back before it had interrupted"
                del left[position]
            elif row.ended is Ended.REFUSED:
                self._refused(message, seen)
                del left[position]
        for turn_id in {self.messages[at].turn for at in new.mail if at in self.messages}:
            state = new.turns[turn_id].state if turn_id in new.turns else None
            alive = any(row.turn_id == turn_id and row.ended is None for row in new.mail.values() if row.text)
            if state is TurnState.QUEUED:
                assert alive, f"turn {turn_id} is queued and has no message left"
            elif state in TERMINAL:
                self.over.add(turn_id)
        if self.tail is not None and self.tail[0] in self.over:
            self.tail = None

    def _refused(self, message: Message, seen: Seen | None) -> None:
        """By the guard, which is only asked about what is about to be said, or to interrupt."""
        turn = self.turn
        assert message.job.refused or self.deaths > LOST_AT, f"{message.job.text!r} was refused"
        if turn is None:
            assert message in self._next(), f"{message.job.text!r} was refused before its turn had come"
        elif message.position in turn.cuts:
            turn.cuts.discard(message.position)
            # It does not interrupt, and the turn may be joined again, unless something newer is urgent.
            refusable = all(at in self.messages and self.messages[at].job.refused for at in turn.cuts)
            newest = seen is None or self.urgent <= seen.urgent
            if refusable and newest and turn.steered < self.agents[turn.agent].takes:
                turn.joins = turn.by
        else:
            assert (message.verdict, message.turn) == (Verdict.STEERED, turn.id), f"{message.job.text!r} was refused"

    def _honoured(self, control: Control, new: Picture) -> None:
        if control.message is not None:
            assert new.mail[control.message].ended is not None, "a request to take back ended before its message"
        elif control.turn is not None:
            assert new.turns[control.turn].state in TERMINAL, "a cancel ended before its turn"

    def _suspends(self, new: Picture) -> None:
        turn = self._running()
        assert not turn.cuts, "a turn was suspended although it was cut"
        waits = {each.row.call_id for each in self._about(turn) if each.open}
        assert waits, "a turn waits, and nobody was asked"
        left = [row for (turn_id, _, _), row in new.calls.items() if turn_id == turn.id and row.state not in FINISHED]
        assert all(row.state is CallState.ANNOUNCED for row in left)
        assert {row.call_id for row in left} <= waits, "a turn waits although something of its batch could run"

    def _questions(self, new: Picture, now: datetime) -> None:
        for id, row in new.approvals.items():
            approval = self.approvals.get(id)
            if approval is None:
                turn = self._running()
                rules = self.agents[turn.agent]
                assert row.turn_id == turn.id
                assert row.tool in rules.asks, f"a person was asked about {row.tool}"
                assert row.expires_at == now + timedelta(seconds=rules.approval_s)
                assert row.call_id not in {each.row.call_id for each in self._about(turn)}, "asked twice about a call"
                self.approvals[id] = approval = Approval(row)
            if row.decision is ApprovalDecision.EXPIRED:
                assert approval.uses == 0
                assert now >= row.expires_at, "an approval expired before its time"
                assert approval.decision is not ApprovalDecision.REJECTED
            elif row.decision is ApprovalDecision.VOID:
                assert approval.uses == 0
                not_run = any(
                    turn_id == row.turn_id and call.call_id == row.call_id and call.state is CallState.NOT_RUN
                    for (turn_id, _, _), call in new.calls.items()
                )
                assert not_run, "an approval was voided while its call may yet run"
            else:
                assert row.decision is approval.decision, f"{row.decision}, and a person said {approval.decision}"
            approval.decision = row.decision

    # --- what reaches the world

    def asks(self, asked: Asked, holds: bool, now: datetime) -> None:
        """A request has reached the model."""
        turn = self._running()
        assert holds, "a model was asked by a worker that has lost the session"
        assert not turn.cuts, "a model was asked although the turn was cut"
        assert not self.paused, "a model was asked although the session is held"
        assert self.deaths < LOST_AT, "a turn was tried again after three deaths"
        assert self._spent(turn, now) < self.agents[turn.agent].turn_s, "a model was asked after the turn's time"
        assert len(asked.open_calls) == 1, f"a request with open rows {asked.open_calls}"
        assert asked.open_calls[0] not in {each.open_calls[0] for each in self.asked}, "two requests have one row"
        assert asked.messages == asked.log, "the model was told something else than the conversation"
        if self.asked:
            before = self.asked[-1].messages
            assert asked.messages[: len(before)] == before, "what was sent before is no prefix of what is sent now"
        self.asked.append(asked)

    def runs(self, ran: Ran, holds: bool, now: datetime) -> None:
        """A tool has been started in the world."""
        turn = self._running()
        assert holds, f"{ran.tool} was started by a worker that has lost the session"
        assert ran.turn_id == turn.id
        assert self.deaths < LOST_AT
        if ran.tool != "look":
            before = [each for each in self.ran if (each.turn_id, each.call_id) == (ran.turn_id, ran.call_id)]
            assert not before, f"{ran.tool} {ran.call_id} was started twice"
            assert not turn.cuts, f"{ran.tool} was started although the turn was cut"
        if ran.tool in self.agents[turn.agent].asks:
            self._uses(ran, now)
        self.ran.append(ran)

    def _uses(self, ran: Ran, now: datetime) -> None:
        about = [each for each in self._about(self._running()) if each.row.call_id == ran.call_id]
        assert about, f"{ran.tool} {ran.call_id} was started, and nobody was asked"
        (approval,) = about
        assert approval.decision is ApprovalDecision.APPROVED, f"{ran.call_id} was started: {approval.decision}"
        assert now < approval.row.expires_at, f"{ran.call_id} was started after its approval had expired"
        assert approval.uses == 0, f"the approval of {ran.call_id} was used twice"
        approval.uses += 1

    # --- what must hold at every instant

    def _stand(self, old: Picture, new: Picture, now: datetime) -> None:
        session = new.session
        for position, row in old.mail.items():
            assert row.ended is None or new.mail[position] == row, f"message {position} ended twice"
        for turn_id, turn in old.turns.items():
            assert turn.state not in TERMINAL or new.turns[turn_id].state is turn.state, f"{turn_id} left its end"
        assert {at: row.text for at, row in new.mail.items() if at not in self.controls} == {
            at: message.job.text for at, message in self.messages.items()
        }, "a message was lost"
        assert session.waiting == len(self.waiting)
        alive = [each.id for each in new.turns.values() if each.state in (TurnState.RUNNING, TurnState.WAITING)]
        assert alive == ([session.turn_id] if session.turn_id else [])
        assert new.log[: len(old.log)] == old.log, "the conversation was changed"
        self._conversation(new)
        self._comes_in_time(session, now)

    def _conversation(self, new: Picture) -> None:
        last = new.log[-1].turn_id if new.log else ""
        assert_resumable(new.log, [row for (turn_id, _, _), row in new.calls.items() if turn_id == last])
        said = [(entry.position, entry.turn_id) for entry in new.log if entry.position is not None]
        consumed = {at: row.consumed_by for at, row in new.mail.items() if row.ended is Ended.TURN}
        assert len(dict(said)) == len(said), "a message was said twice"
        assert dict(said) == consumed, "what was consumed is not what was said"
        began = [entry.position or 0 for entry in new.log if entry.step == 0]
        assert began == sorted(began), "turns began out of the order of arrival"

    def _calls(self, old: Picture, new: Picture, step: str, now: datetime) -> None:
        rejected = {
            (each.row.turn_id, each.row.call_id): each.reason
            for each in self.approvals.values()
            if each.decision is ApprovalDecision.REJECTED
        }
        ran = {(each.turn_id, each.call_id) for each in self.ran}
        for key, row in new.calls.items():
            before = old.calls.get(key)
            assert before is None or before.state not in FINISHED or before == row, f"{row.call_id} ended twice"
            happened = (key[0], row.call_id) in ran
            if row.state is CallState.DONE and not row.is_error:
                assert happened, f"{row.call_id} is done and was never run"
            if row.state is CallState.NOT_RUN and row.side_effect:
                assert not happened, f"{row.call_id} was run and is called not run"
            reason = rejected.get((key[0], row.call_id))
            in_time = self.turn is not None and self._spent(self.turn, now) < self.agents[self.turn.agent].turn_s
            if reason is not None and in_time and step == "finish_call" and before is not None and before != row:
                assert reason in (row.result or ""), "the model is not told why its call was rejected"

    def _lease(self, old: Picture, new: Picture, step: str, now: datetime) -> None:
        before, after = old.session.lease_id, new.session.lease_id
        if before == after:
            return
        if after is None:
            assert step in LETS_GO, f"{step} let the session go"
            if self.turn is not None:
                self.turn.parked_at = now
            return
        assert step == "claim", f"{step} took the session"
        if before is not None:
            assert (old.session.lease_until or now) < now, "took what was held"
            self.deaths += 1
        if self.paused:
            assert self.open_controls, "a session that is held was taken"
        if self.turn is not None and self.turn.parked_at is not None:
            self.turn.parked += now - self.turn.parked_at
            self.turn.parked_at = None

    def _comes_in_time(self, session: SessionRow, now: datetime) -> None:
        """Somebody is there, or will be told to come no later than there is something to do."""
        wanted = self._wanted_at(now)
        if session.lease_id is not None:
            assert session.due_at <= now, "nobody would come if this owner died"
        else:
            assert session.due_at <= max(wanted, now), f"due at {session.due_at}, but something is to do at {wanted}"

    def _wanted_at(self, now: datetime) -> datetime:
        if self.open_controls:
            return DUE_NOW
        if self.paused:
            return NEVER
        if self.turn is not None:
            assert self.picture is not None
            if self.picture.turns[self.turn.id].state is TurnState.RUNNING or self.turn.cuts:
                return DUE_NOW
            unfinished = {row.call_id for row in self.picture.calls.values() if row.state not in FINISHED}
            asked = [each for each in self._about(self.turn) if each.row.call_id in unfinished]
            return min([each.row.expires_at if each.open else DUE_NOW for each in asked])
        return self._ready_at(self._next()) if self.waiting else NEVER

    # --- in other words

    @property
    def open_controls(self) -> list[Control]:
        return [control for control in self.controls.values() if not control.ended]

    def _about(self, turn: Turn) -> list[Approval]:
        return [each for each in self.approvals.values() if each.row.turn_id == turn.id]

    def _withdrawals(self) -> list[Control]:
        return [control for control in self.open_controls if control.message is not None]

    def _running(self) -> Turn:
        assert self.turn is not None, "something goes on without a turn"
        return self.turn

    def _queued(self, message: Message) -> bool:
        """Its turn has not begun, and it waits for no other."""
        began = self.turn is not None and self.turn.id == message.turn
        return not began and message.turn not in self.over and message.verdict is not Verdict.STEERED

    def _next(self) -> list[Message]:
        """What the next turn must take, in order of arrival."""
        waiting = self.waiting
        assert waiting, "a turn began without a message"
        head = waiting[0]
        if head.verdict is Verdict.STEERED:
            return list(
                itertools.takewhile(
                    lambda each: each.verdict is Verdict.STEERED and each.job.by == head.job.by, waiting
                )
            )
        return [each for each in waiting if each.turn == head.turn]

    def _ready_at(self, group: Sequence[Message]) -> datetime:
        first, last = group[0], group[-1]
        if first.quiet <= timedelta(0) or self.tail is None or self.tail[0] != first.turn:
            return DUE_NOW
        return min(last.at + first.quiet, first.at + first.longest)

    def _spent(self, turn: Turn, now: datetime) -> float:
        """Seconds of the turn's own time."""
        parked = turn.parked + (now - turn.parked_at if turn.parked_at is not None else timedelta(0))
        return (now - turn.began - parked).total_seconds()


FINISHED = frozenset({CallState.DONE, CallState.UNKNOWN, CallState.NOT_RUN})
LETS_GO = frozenset({"release", "commit", "suspend", "release_for_drain"})


def head_turn(group: Sequence[Message]) -> str | None:
    return None if group[0].verdict is Verdict.STEERED else group[0].turn
