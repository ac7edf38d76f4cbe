"""Two sessions, two workers, and whatever people, time and death may do to them, against the rules of the mailbox.

The workers are real: ingress, runtime, owners, loop and store. They take a step only when a rule lets them, so that
anything may happen between any two of their steps; after each of them `SessionRules` judges the rows. At the end
everything is let run, and both sessions must come to rest.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from structlog.testing import capture_logs

from actors.ingress import Kept
from insika.clock import NEVER
from insika.crash_points import CrashPoint
from insika.storage.rows import TERMINAL, Accepted, ApprovalDecision, ApprovalRow, TurnState, Verdict
from tests.mailbox_rules import AgentRules, Job, Message, Picture, SessionRules
from tests.stepped_world import ACTS, BAD, SCREENS, TALKS, Hall, Worker, reply
from tests.store_world import LEASE_S, World
from tests.strict import check_anthropic, check_openai

T = TypeVar("T")

AGENTS = {
    "shop": AgentRules(turn_s=120.0, asks=frozenset({"refund"})),
    "calm": AgentRules(mode="collect", debounce_s=2.0, longest_s=5.0),
}
PROFILES = [
    {
        "id": name,
        "model": "offline/talks",
        "instructions": f"You are {name}.",
        "approvals_required": sorted(rules.asks),
        "limits": {
            "queue_mode": rules.mode,
            "debounce_ms": round(rules.debounce_s * 1000),
            "debounce_max_ms": round(rules.longest_s * 1000),
            "steer_max_messages": rules.takes,
            "mailbox_max": rules.room,
            "turn_timeout": rules.turn_s,
            "approval_timeout": rules.approval_s,
            "max_tool_calls": None,
            "tool_concurrency": 1 if name == "shop" else 3,
        },
    }
    for name, rules in AGENTS.items()
]
PEOPLE = {
    "ann": ("shop", "web", "ann", "customer"),
    "bob": ("shop", "web", "bob", "customer"),
    "calm ann": ("calm", "web", "ann", "customer"),
    "silent ann": ("shop", None, "ann", "customer"),
    "mail ann": ("shop", "mail", "ann", "customer"),
    "a timer": ("shop", "web", "ann", "scheduled"),
    "the engine": ("shop", "web", "ann", "engine"),
}
TWO = ["ann", "bob"]
MORE = ["steer", "steer", "collect", "collect", "interrupt"]
MODES = [None, "followup", "collect", "steer", "interrupt"]
BATCHES = ["", "l", "p", "lp", "pl", "ppl", "r", "rp", "rr", "lrr", "h", "hr"]
POINTS = [
    *["next", "start", "append", "ask_approvals", "start_call", "tool", "finish_call", "suspend", "resume_turn"],
    *["guard", "settle_mail", "cross_boundary", "commit", "end", "rest"],
]
NEWS = {
    "guard": ["interrupt", "withdrawal", "cancel", "followup", "collect"],
    "start": ["cancel", "withdrawal", "hold", "collect", "followup"],
    "start_call": ["interrupt", "cancel", "rudeness", "time", "time"],
    "ask_approvals": ["interrupt", "cancel", "steer"],
    "suspend": ["decision", "interrupt", "cancel", "followup", "steer"],
    "resume_turn": ["interrupt", "cancel", "decision"],
    "retry_model": ["interrupt", "cancel", "rudeness"],
    "cross_boundary": ["steer", "interrupt", "hold", "withdrawal", "cancel"],
    "commit": ["interrupt", "cancel", "steer", "rudeness", "followup"],
    "end": ["interrupt", "cancel", "steer"],
    "release": ["followup", "withdrawal", "hold"],
    "release_for_drain": ["followup", "withdrawal", "go on"],
    "settle_mail": ["interrupt", "cancel", "collect", "steer"],
}
"""What may come just before an owner's step, so that it would be wrong to take it."""
MOMENTS = [(before, what) for before, news in NEWS.items() for what in news]
WRITES_NOTHING = {TALKS, ACTS, SCREENS, "load", "confirm", "death"}
DEATHS = [point for point in CrashPoint if point is not CrashPoint.ACCEPTED and "delivery" not in point]

SESSION = st.sampled_from("sst")
WHO = st.sampled_from("AB")
BAD_IN_4 = [False, False, False, True]
BADLY = st.sampled_from(BAD_IN_4)
NTH = st.integers(0, 3)
"""Counts from the newest."""


def asked_at(row: ApprovalRow) -> tuple[datetime, str]:
    return row.asked_at, row.call_id


class Session:
    """One session as the machine knows it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = 0
        self.rules = SessionRules(AGENTS)
        self.jobs: list[Job] = []
        self.turned_away: list[Job] = []


class MailboxMachine(RuleBasedStateMachine):
    """Subclasses say over which store, by `open_world`. It is opened and closed in the loop of this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.closing = AsyncExitStack()
        self.closing.enter_context(capture_logs())
        self.world = self.run(self.closing.enter_async_context(self.open_world()))
        self.hall = Hall(self.world)
        self.closing.callback(self.hall.close)
        self.run(self.hall.open(PROFILES))
        self.workers = {name: Worker(self.hall, name) for name in "AB"}
        self.sessions = {name: Session(name) for name in "st"}
        self.count = 0
        self.asked = self.ran = 0

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.run(self.let_everything_end())
        finally:
            for worker in self.workers.values():
                self.run(worker.die())
            self.run(self.closing.aclose())
            self.runner.close()

    def open_world(self) -> AbstractAsyncContextManager[World]:
        raise AssertionError("a subclass says which")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    # --- people

    @initialize()
    def somebody_writes(self) -> None:
        self.says("s", "followup", "ann", bad=False)

    @rule(session=SESSION, mode=st.sampled_from(MODES), by=st.sampled_from(list(PEOPLE)), bad=BADLY)
    def says(self, session: str, mode: str | None, by: str, bad: bool) -> None:
        self.count += 1
        there = self.sessions[session]
        job = Job(f"j{self.count}", f"{BAD if bad else 'message'} {self.count}", mode, PEOPLE[by])
        self.send(there, job)

    @rule(session=SESSION, mode=st.sampled_from(MORE), by=st.sampled_from(TWO), count=st.integers(1, 3), bad=BADLY)
    def somebody_says_more(self, session: str, mode: str, by: str, count: int, bad: bool) -> None:
        """`bad`: the first of them is refused."""
        for place in range(count):
            self.says(session, mode, by, bad=bad and place == 0)

    def send(self, there: Session, job: Job) -> None:
        told = self.run(self.hand_in(there, job, job.text))
        there.id = told.session_id
        there.rules.says(job, told, self.hall.clock.now())
        (there.jobs if told.position is not None else there.turned_away).append(job)
        self.run(self.judge(there, "says"))

    async def hand_in(self, there: Session, job: Job, text: str) -> Accepted:
        agent, channel, recipient, origin = job.by
        sent = {"session": there.name, "agent": agent, "channel": channel, "recipient": recipient, "origin": origin}
        sent |= {"id": job.id, "text": text, "queue_mode": job.mode}
        told = await self.hall.ingress.take(json.dumps({k: v for k, v in sent.items() if v is not None}).encode())
        assert not isinstance(told, Kept)
        return told

    @rule(session=SESSION, nth=NTH, other_text=st.booleans())
    def says_again(self, session: str, nth: int, other_text: bool) -> None:
        """The producer never heard, and sends its message once more; or uses its id for another."""
        there = self.sessions[session]
        if nth >= len(there.jobs):
            return
        job = there.jobs[-1 - nth]
        before = self.run(self.picture(there))
        told = self.run(self.hand_in(there, job, "another text" if other_text else job.text))
        if other_text:
            assert (told.verdict, told.field) == ("rejected", "id")
        else:
            there.rules.says_again(job, told)
        assert self.run(self.picture(there)) == before

    @precondition(lambda self: any(there.turned_away for there in self.sessions.values()))
    @rule(session=SESSION, nth=NTH)
    def tries_again(self, session: str, nth: int) -> None:
        """A message that was turned away has not used up its id."""
        there = self.sessions[session]
        if nth < len(there.turned_away):
            self.send(there, there.turned_away.pop(-1 - nth))

    @rule(session=SESSION, nth=NTH)
    def cancels(self, session: str, nth: int) -> None:
        there = self.sessions[session]
        turns = list(there.rules.picture.turns) if there.rules.picture is not None else []
        if nth >= len(turns):
            return
        self.cancel(there, turns[-1 - nth])

    def cancel(self, there: Session, turn_id: str) -> None:
        self.count += 1
        told = self.run(self.hall.store.cancel(turn_id, request_id=f"cancel {self.count}"))
        there.rules.cancels(turn_id, told)
        if told is not None:
            self.hall.publish(there.id)
        self.run(self.judge(there, "cancel"))

    @precondition(lambda self: any(there.jobs for there in self.sessions.values()))
    @rule(session=SESSION, nth=NTH)
    def takes_back(self, session: str, nth: int) -> None:
        there = self.sessions[session]
        if nth < len(there.jobs):
            job = there.jobs[-1 - nth]
            self.take_back(there, next(each for each in there.rules.messages.values() if each.job == job))

    def take_back(self, there: Session, message: Message) -> None:
        self.count += 1
        request = f"withdraw {self.count}"
        told = self.run(self.hall.store.withdraw(there.name, message.job.id, request_id=request))
        there.rules.takes_back(message, told)
        self.run(self.judge(there, "withdraw"))

    # --- operators

    @precondition(lambda self: any(there.rules.approvals for there in self.sessions.values()))
    @rule(session=SESSION, nth=st.integers(0, 2), approves=st.booleans())
    def decides(self, session: str, nth: int, approves: bool) -> None:
        there = self.sessions[session]
        if nth >= len(there.rules.approvals):
            return
        self.count += 1
        decision = ApprovalDecision.APPROVED if approves else ApprovalDecision.REJECTED
        id, reason = list(there.rules.approvals)[-1 - nth], f"reason {self.count}"
        told = self.run(self.hall.store.decide(id, decision, by="olga", reason=reason))
        there.rules.decides(id, decision, reason, told, self.hall.clock.now())
        self.run(self.judge(there, "decide"))

    @rule(session=SESSION, paused=st.booleans())
    def holds(self, session: str, paused: bool) -> None:
        """An operator's hold, or its end."""
        there = self.sessions[session]
        told = self.run(self.hall.store.set_paused(session, paused))
        assert told == bool(there.id)
        there.rules.paused = paused and bool(there.id)
        if there.id:
            self.run(self.judge(there, "hold"))

    # --- time

    @rule(seconds=st.sampled_from([0.5, 3.0, 16.0, 16.0, 70.0]))
    def time_passes(self, seconds: float) -> None:
        """Who is awake renews what it holds."""
        while seconds > 0:
            self.hall.clock.advance(min(seconds, LEASE_S / 3))
            seconds -= LEASE_S / 3
            for worker in self.workers.values():
                if not worker.asleep:
                    worker.renew()
        for there in self.sessions.values():
            self.run(self.judge(there, "time"))

    # --- workers

    @rule(who=WHO, session=SESSION)
    def is_woken(self, who: str, session: str) -> None:
        """A hint, perhaps a stale one, that there may be something to do."""
        worker, there = self.workers[who], self.sessions[session]
        if there.id and not worker.asleep and not worker.runs(there.id):
            self.run(worker.wake(there.id))
            self.run(self.goes(worker, there, "load"))

    # Under three names, so that most of what happens is what owners do.
    def owner_goes_on(self, session: str, until: str) -> None:
        there = self.sessions[session]
        for worker in self.at_work(there):
            self.run(self.goes(worker, there, until))

    step_a = precondition(lambda self: self.busy)(rule(session=SESSION, until=st.sampled_from(POINTS))(owner_goes_on))
    step_b = precondition(lambda self: self.busy)(rule(session=SESSION, until=st.sampled_from(POINTS))(owner_goes_on))

    def model_says(self, session: str, calls: str) -> None:
        there = self.sessions[session]
        for worker in self.at_work(there):
            self.run(self.answers(worker, there, calls))

    model_a = precondition(lambda self: self.talks)(rule(session=SESSION, calls=st.sampled_from(BATCHES))(model_says))
    model_b = precondition(lambda self: self.talks)(rule(session=SESSION, calls=st.sampled_from(BATCHES))(model_says))

    @precondition(lambda self: self.talks)
    @rule(session=SESSION)
    def model_breaks(self, session: str) -> None:
        there = self.sessions[session]
        for worker in self.at_work(there):
            self.run(self.answers(worker, there, None))

    @rule(who=WHO, session=SESSION, calls=st.sampled_from(BATCHES), until=st.sampled_from(POINTS))
    def a_turn_gets_far(self, who: str, session: str, calls: str, until: str) -> None:
        """What many small steps would do: some worker takes the session, its model speaks, and its turn goes on."""
        self.is_woken(who, session)
        self.owner_goes_on(session, "rest")
        self.model_says(session, calls)
        self.owner_goes_on(session, until)

    @precondition(lambda self: self.busy)
    @rule(session=SESSION, moment=st.sampled_from(MOMENTS))
    def comes_between(self, session: str, moment: tuple[str, str]) -> None:
        """An owner is about to take a step; something happens, of which it does not know; it takes the step."""
        there, (before, what) = self.sessions[session], moment
        if not self.stands(there, before):
            self.owner_goes_on(session, before)
        if self.stands(there, before):
            self.happens(there, what)
            self.owner_goes_on(session, "next")

    def stands(self, there: Session, before: str) -> bool:
        return any(stop.where == before for worker in self.at_work(there) for stop in worker.stops[there.id])

    def happens(self, there: Session, what: str) -> None:
        rules = there.rules
        if what == "time":
            self.time_passes(65.0)
        elif what in ("hold", "go on"):
            self.holds(there.name, paused=what == "hold")
        elif what == "decision":
            self.decides(there.name, 0, approves=self.count % 2 == 0)
        elif what == "cancel" and rules.turn is not None:
            self.cancel(there, rules.turn.id)
        elif what == "cancel" and rules.waiting and rules.waiting[0].verdict is not Verdict.STEERED:
            self.cancel(there, rules.waiting[0].turn)
        elif what == "withdrawal" and rules.waiting:
            self.take_back(there, rules.waiting[0])
        elif what in MODES:
            whose = rules.turn.by if rules.turn is not None else PEOPLE["ann"]
            if rules.turn is None and rules.waiting:
                whose = rules.waiting[0].job.by
            self.says(there.name, what, next(name for name, by in PEOPLE.items() if by == whose), bad=False)
        elif what == "rudeness":
            self.says(there.name, "interrupt", "ann", bad=True)

    @rule(session=SESSION, lives=st.integers(1, 4), until=st.sampled_from(["load", "start", "rest"]))
    def kills_its_owners(self, session: str, lives: int, until: str) -> None:
        """One worker after the other takes the session, and dies in it."""
        there = self.sessions[session]
        for _ in range(lives):
            for worker in self.workers.values():
                worker.asleep = False
                if worker.runs(there.id):
                    self.run(self.bury(worker))
            self.time_passes(LEASE_S + 1)
            self.is_woken("A", session)
            self.owner_goes_on(session, until)

    @rule(session=SESSION, count=st.integers(2, 4))
    def ann_writes_slowly(self, session: str, count: int) -> None:
        """Each of her messages comes before she has been quiet for long enough, and somebody looks each time."""
        for _ in range(count):
            self.says(session, "collect", "calm ann", bad=False)
            self.time_passes(1.5)
            self.is_woken("B", session)
            self.owner_goes_on(session, "rest")

    @precondition(lambda self: self.hall.signalled)
    @rule()
    def signals_come(self) -> None:
        signalled, self.hall.signalled = self.hall.signalled, set()
        for there in self.sessions.values():
            for worker in self.workers.values():
                if there.id in signalled and not worker.asleep:
                    self.run(worker.look(there.id))
                    self.run(self.judge(there, "signal"))

    @rule(who=WHO)
    def dies(self, who: str) -> None:
        self.run(self.bury(self.workers[who]))

    @rule(who=WHO, point=st.sampled_from(DEATHS))
    def will_die_at(self, who: str, point: CrashPoint) -> None:
        self.workers[who].dies_at = point

    @rule(who=WHO)
    def falls_asleep(self, who: str) -> None:
        self.workers[who].asleep = True

    @rule(who=WHO)
    def wakes_up(self, who: str) -> None:
        self.workers[who].asleep = False

    @rule(who=WHO, at_once=st.booleans())
    def leaves(self, who: str, at_once: bool) -> None:
        """SIGTERM, and with `at_once` also the end of the time it may take."""
        worker = self.workers[who]
        if not worker.asleep:
            self.run(self.leave(worker, at_once))

    # --- how it is done

    @property
    def busy(self) -> bool:
        """Somebody stands somewhere."""
        return any(self.at_work(there) for there in self.sessions.values())

    @property
    def talks(self) -> bool:
        """A model is to say something."""
        return any(
            stop.where == TALKS
            for there in self.sessions.values()
            for worker in self.at_work(there)
            for stop in worker.stops[there.id]
        )

    def at_work(self, there: Session) -> list[Worker]:
        return [worker for worker in self.workers.values() if worker.runs(there.id) and not worker.asleep]

    async def goes(self, worker: Worker, there: Session, until: str) -> None:
        """At least one step, then until it stands before `until`; never past a model that talks."""
        for step in range(60):
            stop = worker.stop_of(there.id)
            if stop is None or stop.where == TALKS or (step > 0 and until in (stop.where, "next")):
                return
            await worker.go(there.id)
            await self.judge(there, stop.where, stop.seen)
            if worker.gone:
                await self.bury(worker)
                return
        raise AssertionError("an owner goes on for ever")

    async def answers(self, worker: Worker, there: Session, calls: str | None) -> None:
        stop = worker.stop_of(there.id)
        if stop is None or stop.where != TALKS:
            return
        self.count += 1
        if calls is None and there.rules.turn is not None:
            there.rules.turn.broke = True
        await worker.go(there.id, None if calls is None else reply(self.count, calls))
        await self.judge(there, TALKS)
        if worker.gone:
            await self.bury(worker)

    async def leave(self, worker: Worker, at_once: bool) -> None:
        for there in self.sessions.values():
            stop = worker.stop_of(there.id)
            if at_once and stop is not None and stop.where == "claim":
                await worker.go(there.id)
                await self.judge(there, "claim")
        await worker.leave(at_once=at_once)
        for there in self.sessions.values():
            await self.judge(there, "release_for_drain")
        if worker.gone:
            await self.bury(worker)

    async def bury(self, worker: Worker) -> None:
        """Another process takes its place."""
        await worker.die()
        self.workers[worker.name] = Worker(self.hall, worker.name)
        for there in self.sessions.values():
            await self.judge(there, "death")

    async def judge(self, there: Session, step: str, seen: Any = None) -> None:
        now = self.hall.clock.now()
        if there.id and step not in WRITES_NOTHING:
            picture = await self.picture(there)
            there.rules.sees(now, picture, step, seen)
            self.valid(picture)
        asked, self.asked = self.hall.asked[self.asked :], len(self.hall.asked)
        ran, self.ran = self.hall.ran[self.ran :], len(self.hall.ran)
        for one in asked:
            assert one.session_id == there.id, "the step of one session asked the model of another"
            there.rules.asks(one, self.owns(one.worker, there), now)
        for run in ran:
            assert run.session_id == there.id, "the step of one session ran a tool of another"
            there.rules.runs(run, self.owns(run.worker, there), now)

    @staticmethod
    def owns(worker: Worker, there: Session) -> bool:
        assert there.rules.picture is not None
        return there.rules.picture.session.lease_id in worker.keeper._held

    @staticmethod
    def valid(picture: Picture) -> None:
        if picture.log and not picture.session.open_calls:
            messages = [entry.message for entry in picture.log]
            check_anthropic(messages)
            check_openai(messages)

    async def picture(self, there: Session) -> Picture:
        store, old = self.hall.store, there.rules.picture
        session = await store.session_by_id(there.id)
        assert session is not None
        turn_ids = {session.turn_id, old.session.turn_id if old is not None else None} - {None}
        calls = {} if old is None else dict(old.calls)
        for turn_id in turn_ids:
            calls |= {(turn_id, row.step, row.index): row for row in await store.calls(turn_id)}
        log = old.log if old is not None else ()
        approvals = [each.approval for each in await store.approvals(1000)]
        return Picture(
            session,
            {row.position: row for row in await store.mail(there.id)},
            {row.id: row for row in await store.turns(there.id)},
            (*log, *await store.messages(there.id, after=len(log))),
            calls,
            {row.id: row for row in sorted(approvals, key=asked_at) if row.session_id == there.id},
        )

    # --- the end

    async def let_everything_end(self) -> None:
        """Whatever has happened: people fall silent, models answer, and each session comes to rest."""
        for worker in list(self.workers.values()):
            worker.asleep, worker.dies_at = False, None
            await self.leave(worker, at_once=True)
        for there in self.sessions.values():
            if there.rules.paused:
                await self.hall.store.set_paused(there.name, False)
                there.rules.paused = False
        for _ in range(20):
            for there in self.sessions.values():
                for worker in self.workers.values():
                    await self.runs_out(worker, there)
            if all([await self.rests(there) for there in self.sessions.values()]):
                break
            self.hall.clock.advance(LEASE_S + 1)
            await self.hall.store.wake_due()
            for session_id in await self.hall.store.due_sessions():
                await self.workers["A"].wake(session_id)
        else:
            raise AssertionError("this never comes to an end")
        for there in self.sessions.values():
            if there.id:
                await self.at_rest(there)

    async def rests(self, there: Session) -> bool:
        row = await self.hall.store.session_by_id(there.id)
        return row is None or (row.lease_id is None and row.due_at == NEVER)

    async def runs_out(self, worker: Worker, there: Session) -> None:
        while worker.runs(there.id):
            await self.goes(worker, there, "rest")
            await self.answers(worker, there, "")

    async def at_rest(self, there: Session) -> None:
        picture = await self.picture(there)
        session = picture.session
        assert (session.waiting, session.turn_id, session.lease_id, session.due_at) == (0, None, None, NEVER)
        assert all(row.ended is not None for row in picture.mail.values()), "a message has no end"
        assert all(turn.state in TERMINAL for turn in picture.turns.values())
        model_calls = [row for turn_id in picture.turns for row in await self.hall.store.model_calls(turn_id)]
        assert all(row.state != "open" for row in model_calls)
        assert all(row.decision is not None for row in picture.approvals.values()), "a question is left open"
        requests = {each.open_calls[0] for each in there.rules.asked}
        assert requests <= {(row.turn_id, row.step, row.attempt) for row in model_calls}, "a request has no row"
        where = f"session_id = {there.id}"
        delivered = await self.world.peek(f"SELECT turn_id FROM outbox WHERE {where} ORDER BY turn_id")
        answered = [
            turn.id
            for turn in picture.turns.values()
            if turn.state is TurnState.COMPLETED and turn.channel is not None and self.spoke(picture, turn.id)
        ]
        assert [row["turn_id"] for row in delivered] == sorted(answered), "an answer was lost or sent twice"

    @staticmethod
    def spoke(picture: Picture, turn_id: str) -> bool:
        last = [entry.message for entry in picture.log if entry.turn_id == turn_id][-1]
        return last.role == "assistant" and bool(last.content)


def walk_far(machine: MailboxMachine, seed: int, moves: int = 400) -> None:
    """The same machine, walked far: what needs many events to line up is rare in short lives."""
    draw = random.Random(seed)

    def one(strategy: Any) -> Any:
        return draw.choice(strategy)

    session: Callable[[], str] = lambda: one("sst")  # noqa: E731 - a name for what is said often

    def wander(session: str) -> None:
        machine.owner_goes_on(session, "next")
        for before, news in NEWS.items():
            if machine.stands(machine.sessions[session], before) and draw.random() < 0.4:
                machine.comes_between(session, (before, one(news)))

    weights: dict[Callable[[], None], float] = {
        lambda: machine.says(session(), one(MODES), one(list(PEOPLE)), bad=one(BAD_IN_4)): 5,
        lambda: machine.somebody_says_more(
            session(), one(MORE), one(TWO), draw.randint(1, 3), bad=draw.random() < 0.2
        ): 6,
        lambda: machine.says_again(session(), draw.randrange(3), other_text=draw.random() < 0.5): 1,
        lambda: machine.tries_again(session(), 0): 1,
        lambda: machine.cancels(session(), draw.randrange(3)): 0.7,
        lambda: machine.takes_back(session(), draw.randrange(3)): 1,
        lambda: machine.decides(session(), draw.randrange(3), approves=draw.random() < 0.7): 5,
        lambda: machine.holds(session(), paused=True): 0.5,
        lambda: machine.holds(session(), paused=False): 4,
        lambda: wander(session()): 40,
        lambda: machine.kills_its_owners(session(), draw.randint(1, 4), one(["load", "start", "rest"])): 0.4,
        lambda: machine.ann_writes_slowly(session(), draw.randint(2, 4)): 0.6,
        lambda: machine.time_passes(one([0.5, 3.0, 16.0, 16.0])): 6,
        lambda: machine.is_woken(one("AB"), session()): 12,
        lambda: machine.owner_goes_on(session(), one(POINTS)): 20,
        lambda: machine.model_says(session(), one(BATCHES)): 25,
        lambda: machine.model_breaks(session()): 0.3,
        lambda: machine.signals_come() if machine.hall.signalled else None: 3,
        lambda: machine.dies(one("AB")): 0.3,
        lambda: machine.will_die_at(one("AB"), one(DEATHS)): 0.5,
        lambda: machine.falls_asleep(one("AB")): 0.5,
        lambda: machine.wakes_up(one("AB")): 3,
        lambda: machine.leaves(one("AB"), at_once=draw.random() < 0.5): 0.4,
    }
    try:
        machine.somebody_writes()
        for move in draw.choices(list(weights), weights=list(weights.values()), k=moves):
            move()
    finally:
        machine.teardown()


def steers_of_two_turns_are_left(machine: MailboxMachine) -> None:
    """Neither turn took its steer; what they have in common with nobody becomes a turn of its own."""
    machine.says("s", "followup", "bob", bad=False)
    machine.is_woken("A", "s")
    machine.owner_goes_on("s", "rest")
    machine.says("s", "steer", "ann", bad=False)
    machine.model_says("s", "")
    machine.owner_goes_on("s", "rest")
    machine.says("s", "steer", "bob", bad=False)
    machine.model_says("s", "")
    machine.owner_goes_on("s", "rest")


def a_message_merges_as_its_turn_begins(machine: MailboxMachine) -> None:
    machine.says("t", "collect", "ann", bad=False)
    machine.is_woken("A", "t")
    machine.comes_between("t", ("start", "collect"))


def an_approval_expires_as_its_call_begins(machine: MailboxMachine) -> None:
    machine.a_turn_gets_far("A", "s", "r", "rest")
    machine.decides("s", 0, approves=True)
    machine.is_woken("B", "s")
    machine.comes_between("s", ("start_call", "time"))
    machine.owner_goes_on("s", "rest")


def a_rude_interrupt_is_followed_by_a_steer(machine: MailboxMachine) -> None:
    machine.is_woken("A", "s")
    machine.owner_goes_on("s", "rest")
    machine.says("s", "interrupt", "ann", bad=True)
    machine.signals_come()
    machine.says("s", "steer", "ann", bad=False)


LIVES = [
    steers_of_two_turns_are_left,
    a_message_merges_as_its_turn_begins,
    an_approval_expires_as_its_call_begins,
    a_rude_interrupt_is_followed_by_a_steer,
]
"""Short lives that chance seldom leads."""


def lead(machine: MailboxMachine, life: Callable[[MailboxMachine], None]) -> None:
    try:
        machine.somebody_writes()
        life(machine)
    finally:
        machine.teardown()
