"""Any number of processes, an operator and a clock that also jumps, over the real store, against a model.

Each claim is a process of its own, with the real `Deliverer`: it may be slow before its POST or after it, or die at
either place. The receiver accepts, or refuses, or accepts and says nothing. What must hold whatever happens: a row
sees at most one accepted POST and one more for each resend, nothing is overtaken before its time, nothing goes back.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from insika.choices import Guarantee
from insika.clock import NEVER
from insika.crash_points import CrashPoint
from outbox.delivery import GRACE_S, Deliverer
from outbox.message import DeliveryState
from outbox.states import Answered, Delivered, NotSent, RetryIn, Uncertain, Unknown, decide, expired
from outbox.store import RESEND_GUARD_S, Resent
from tests.outbox_doubles import SECRET, FixedWaits, RecordedEvents
from tests.outbox_world import OutboxWorld

PENDING, DELIVERING, DELIVERED = DeliveryState.PENDING, DeliveryState.DELIVERING, DeliveryState.DELIVERED
FAILED, UNCERTAIN = DeliveryState.FAILED, DeliveryState.UNCERTAIN
TIMEOUT_S = 15.0
ENDS = {
    "accepts": (True, Answered(200)),
    "accepts and says nothing": (True, Unknown("no answer in time")),
    "accepts behind a proxy that gives up": (True, Answered(504)),
    "loses it": (False, Unknown("reset")),
    "is busy": (False, Answered(503)),
    "is busy for long": (False, Answered(429, 90.0)),
    "knows nobody": (False, Answered(404)),
}
ANSWERS = st.fixed_dictionaries(
    {
        "session": st.sampled_from(["s1", "s2"]),
        "guarantee": st.sampled_from(["at_most_once", "at_most_once", "at_least_once"]),
        "max_attempts": st.integers(1, 3),
        "order_wait_s": st.sampled_from([0.0, 5.0, 60.0]),
    }
)


class Died(BaseException):
    pass


@dataclass
class Row:
    """A delivery as the model has it; times in seconds of the clock."""

    id: str
    lane: str
    position: int
    guarantee: Guarantee
    max_attempts: int
    order_wait_s: float
    due: float
    state: DeliveryState = PENDING
    hold: float | None = None
    claim: str | None = None
    claimed: float | None = None
    attempts: int = 0
    tried_before: int = 0
    resends: int = 0
    marked: bool = False
    accepted: int = 0

    @property
    def open(self) -> bool:
        return self.state in (PENDING, DELIVERING)

    @property
    def terms(self):
        return {
            "attempts": self.attempts - self.tried_before,
            "max_attempts": self.max_attempts,
            "guarantee": self.guarantee,
        }


@dataclass
class Process:
    """Between the claim and the settling of one delivery. It is the `post` of its own deliverer."""

    row: Row | None = None
    claim: str | None = None
    claimed_monotonic: float = 0.0
    sending: asyncio.Task | None = None
    dies: bool = False
    go: asyncio.Event = field(default_factory=asyncio.Event)
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    result: object = None

    async def post(self, url, headers, body, *, timeout_s, attempt):
        await self.go.wait()
        if not attempt.may_start():
            return NotSent("too late")
        attempt.open_gate()
        self.sent.set()
        await self.answer.wait()
        return self.result

    def crash(self, point):
        if self.dies and point is CrashPoint.DELIVERY_SENT:
            raise Died


class OutboxMachine(RuleBasedStateMachine):
    """Subclasses say over which store, by `open_world`. It is opened and closed in the loop of this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.outbox = self.run(self.closing.enter_async_context(self.open_world()))
        self.start = self.outbox.clock.now()
        self.rows: dict[str, Row] = {}
        self.positions: dict[str, int] = {}
        self.idle: list[Process] = []  # claimed, its request not sent
        self.waiting: list[Process] = []  # its request is sent
        self.dead: list[Process] = []  # died before it sent

    def teardown(self) -> None:
        self.run(self.bury([*self.idle, *self.waiting, *self.dead]))
        self.run(self.closing.aclose())
        self.runner.close()

    def open_world(self) -> AbstractAsyncContextManager[OutboxWorld]:
        raise AssertionError("a subclass says which")

    @property
    def now(self) -> float:
        return (self.outbox.clock.now() - self.start).total_seconds()

    def run(self, coroutine):
        return self.runner.run(coroutine)

    # --- what happens

    @initialize(answers=st.lists(ANSWERS, min_size=2, max_size=6))
    def turns_have_answered(self, answers):
        for answer in answers:
            self.answer(**answer)

    @rule(answer=ANSWERS)
    def a_turn_answers(self, answer):
        if len(self.rows) < 12:
            self.answer(**answer)

    def answer(self, session, guarantee, max_attempts, order_wait_s):
        delivery_id = f"d{len(self.rows)}"
        bounds = {"max_attempts": max_attempts, "order_wait_s": order_wait_s, "timeout_s": TIMEOUT_S}
        self.run(self.outbox.add(delivery_id, session=session, guarantee=guarantee, **bounds))
        position = self.positions[session] = self.positions.get(session, 0) + 1
        self.rows[delivery_id] = Row(
            delivery_id, session, position, Guarantee(guarantee), max_attempts, order_wait_s, self.now
        )

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0, 16.0, 21.0, 36.0, 61.0, 301.0]))
    def time_passes(self, seconds):
        self.outbox.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-300.0, -2.0, 2.0, 300.0]))
    def the_wall_clock_is_set(self, seconds):
        self.outbox.clock.jump(seconds)

    # Under four names, so that most of what happens is what processes do.
    def a_process_goes_on(self, which, end, dies):
        processes = [*self.idle, *self.waiting]
        if which >= len(processes):
            self.claim_one()
        elif which < len(self.idle):
            process = self.idle.pop(which)
            if dies:
                self.dead.append(process)
            else:
                self.send_one(process)
        else:
            self.waiting.remove(processes[which])
            self.end_one(processes[which], end, dies)

    step_a = rule(which=st.integers(0, 3), end=st.sampled_from(sorted(ENDS)), dies=st.just(False))(a_process_goes_on)
    step_b = rule(which=st.integers(0, 1), end=st.sampled_from(sorted(ENDS)), dies=st.just(False))(a_process_goes_on)
    step_c = rule(which=st.integers(0, 0), end=st.sampled_from(sorted(ENDS)), dies=st.just(False))(a_process_goes_on)
    step_d = rule(which=st.integers(0, 3), end=st.sampled_from(sorted(ENDS)), dies=st.booleans())(a_process_goes_on)

    def claim_one(self):
        process = Process()
        deliverer = Deliverer(
            self.outbox.store,
            process,
            lambda delivery: (SECRET,),
            self.outbox.clock,
            RecordedEvents(),
            waits=FixedWaits(),
            crash=process.crash,
        )
        may = self.claimable()
        send = self.run(deliverer.claim())
        if send is None:
            assert not may, f"{[row.id for row in may]} could have been claimed"
            return
        delivering = self.run(self.outbox.run("SELECT id, claim FROM outbox WHERE state = 'delivering'"))
        (claimed,) = [
            (name, claim)
            for name, claim in delivering
            if self.rows[name].claim != claim or self.rows[name].state is not DELIVERING
        ]
        row = self.rows[claimed[0]]
        assert row in may, f"{row.id} was claimed and may not be"
        assert row.due == min(other.due for other in may)
        row.state, row.claim, row.claimed, row.attempts = DELIVERING, claimed[1], self.now, row.attempts + 1
        row.hold = self.now + row.order_wait_s if row.hold is None else row.hold
        process.row, process.claim = row, row.claim
        process.claimed_monotonic = self.outbox.clock.monotonic()
        self.run(self.begin(process, send))
        self.idle.append(process)

    def send_one(self, process):
        in_time = self.outbox.clock.monotonic() - process.claimed_monotonic <= GRACE_S
        self.run(self.send(process))
        if process.sent.is_set():
            assert in_time, "a request left although its claim had long been made"
            self.waiting.append(process)
        else:
            assert not in_time
            self.settle(process, NotSent("too late"))

    def end_one(self, process, end, dies):
        accepted, process.result = ENDS[end]
        process.row.accepted += accepted
        process.dies = dies
        assert self.run(self.finish(process)) is dies
        if not dies:
            self.settle(process, process.result)

    @rule()
    def somebody_sweeps(self):
        swept = {row.id: row.state for row in self.run(self.outbox.store.sweep_expired())}
        due = [
            row
            for row in self.rows.values()
            if row.state is DELIVERING and row.claimed + TIMEOUT_S + GRACE_S < self.now
        ]
        for row in due:
            self.apply(row, expired(**row.terms))
        assert swept == {row.id: row.state for row in due}

    @precondition(lambda self: self.rows)
    @rule(which=st.integers(0, 5), force=st.booleans())
    def an_operator_resends(self, which, force):
        row = list(self.rows.values())[which % len(self.rows)]
        may = row.state in (FAILED, UNCERTAIN) and (force or self.now >= row.claimed + RESEND_GUARD_S)
        done = isinstance(self.run(self.outbox.store.resend(row.id, force=force)), Resent)
        assert done is may
        if done:
            self.positions[row.lane] += 1
            row.position, row.due, row.hold = self.positions[row.lane], self.now + 1, None
            row.state, row.marked, row.resends, row.tried_before = PENDING, True, row.resends + 1, row.attempts

    # --- what must hold

    @invariant()
    def a_row_sees_one_accepted_post_and_one_more_for_each_resend(self):
        for row in self.rows.values():
            bound = 1 + row.resends if row.guarantee is Guarantee.AT_MOST_ONCE else row.attempts
            assert row.accepted <= bound, f"{row.id} was accepted {row.accepted} times after {row.resends} resends"

    @invariant()
    def the_store_says_what_the_model_says(self):
        holds = self.run(self.outbox.holds())
        stored = {
            (
                row.id,
                row.state,
                row.lane_pos,
                row.attempts,
                row.resends,
                row.possible_duplicate,
                row.due_at,
                holds[row.id],
            )
            for row in self.run(self.outbox.store.list())
        }
        expected = {
            (
                row.id,
                row.state,
                row.position,
                row.attempts,
                row.resends,
                row.marked,
                self.at(row.due),
                None if row.hold is None else self.at(row.hold),
            )
            for row in self.rows.values()
        }
        assert stored == expected

    @invariant()
    def nobody_would_sleep_through_what_is_to_be_done(self):
        due_at = self.run(self.outbox.store.next_due_at())
        sleep_until = float("inf") if due_at == NEVER else (due_at - self.start).total_seconds()
        if self.claimable():
            assert sleep_until <= self.now
        waiting = [
            max([row.due, *(other.hold for other in self.held_by(row))])
            for row in self.rows.values()
            if row.state is PENDING and all(other.hold is not None for other in self.held_by(row))
        ]
        claims = [row.claimed + TIMEOUT_S + GRACE_S + 1e-6 for row in self.rows.values() if row.state is DELIVERING]
        assert sleep_until <= min([*waiting, *claims], default=float("inf"))

    # --- the model

    def held_by(self, row: Row) -> list[Row]:
        return [
            other
            for other in self.rows.values()
            if other.lane == row.lane
            and other.position < row.position
            and other.open
            and (other.hold is None or other.hold > self.now)
        ]

    def claimable(self) -> list[Row]:
        return [
            row for row in self.rows.values() if row.state is PENDING and row.due <= self.now and not self.held_by(row)
        ]

    def settle(self, process: Process, result) -> None:
        row = process.row
        if row.claim != process.claim:
            return
        # The process decided by what it claimed; the row of its claim has not changed in what it decides by.
        decision = decide(result, **row.terms, waits=FixedWaits())
        late_news = row.state is UNCERTAIN and isinstance(decision, Delivered)
        if row.state is DELIVERING or late_news:
            self.apply(row, decision)

    def apply(self, row: Row, decision) -> None:
        if not isinstance(decision, RetryIn):
            row.state = (
                DELIVERED
                if isinstance(decision, Delivered)
                else UNCERTAIN
                if isinstance(decision, Uncertain)
                else FAILED
            )
            return
        row.state, row.due = PENDING, self.now + decision.delay_s
        row.marked = row.marked or decision.possible_duplicate
        for other in self.rows.values():
            if other.lane == row.lane and other.position > row.position and other.state is PENDING:
                other.due = max(other.due, min(row.due, row.hold))

    def at(self, seconds: float) -> datetime:
        return self.start + timedelta(seconds=seconds)

    # --- the processes

    async def begin(self, process: Process, send) -> None:
        process.sending = asyncio.create_task(send())
        await asyncio.sleep(0)

    async def send(self, process: Process) -> None:
        process.go.set()
        sent = asyncio.create_task(process.sent.wait())
        await asyncio.wait([process.sending, sent], return_when=asyncio.FIRST_COMPLETED)
        sent.cancel()

    async def finish(self, process: Process) -> bool:
        process.answer.set()
        (ended,) = await asyncio.gather(process.sending, return_exceptions=True)
        if isinstance(ended, Died):
            return True
        if isinstance(ended, BaseException):
            raise ended
        return False

    async def bury(self, processes) -> None:
        tasks = [process.sending for process in processes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def walk_far(machine: OutboxMachine, seed: int, moves: int = 600) -> None:
    """The same machine, walked far: what needs many events to line up is rare in short lives."""
    draw = random.Random(seed)
    weights = {
        lambda: machine.step_d(which=draw.randrange(9), end=draw.choice(sorted(ENDS)), dies=draw.random() < 0.05): 60,
        lambda: machine.time_passes(seconds=draw.choice([0.5, 1.0, 1.0, 1.0, 5.0, 16.0, 36.0, 61.0, 301.0])): 14,
        lambda: machine.the_wall_clock_is_set(seconds=draw.choice([-300.0, -2.0, 2.0, 300.0])): 3,
        machine.somebody_sweeps: 8,
        lambda: machine.an_operator_resends(which=draw.randrange(99), force=draw.random() < 0.5): 8,
        lambda: machine.answer(
            draw.choice(["s1", "s2", "s3", "s4"]),
            draw.choice(["at_most_once", "at_most_once", "at_least_once"]),
            draw.randint(1, 3),
            draw.choice([0.0, 5.0, 60.0]),
        ): 7,
    }
    try:
        machine.answer("s1", "at_most_once", 3, 60.0)
        for move in draw.choices(list(weights), weights=list(weights.values()), k=moves):
            move()
            machine.a_row_sees_one_accepted_post_and_one_more_for_each_resend()
            machine.the_store_says_what_the_model_says()
            machine.nobody_would_sleep_through_what_is_to_be_done()
        assert sum(row.accepted for row in machine.rows.values()) > 0
    finally:
        machine.teardown()
