"""What the tests of a store share: a store under a clock that stands still, producers, owners, and a look at the rows.

`Owner` does what an owner does and nothing more; each of its steps can be given other values by name.
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from insika.clock import NEVER, ManualClock
from insika.messages import NOTHING_VERBATIM, Message, Role, ToolCall, Usage, Verbatim, assistant
from insika.storage.operations import (
    Absorbed,
    AcceptJob,
    AnnouncedCall,
    AppendStep,
    AskApproval,
    CallResult,
    CommitTurn,
    CrossBoundary,
    EndTurn,
    FailQueued,
    Fence,
    FinishAtOnce,
    ModelCallKey,
    NewAlert,
    NewDelivery,
    RedirectTurn,
    Release,
    RouteTurn,
    Seen,
    SettledModelCall,
    StartTurn,
)
from insika.storage.port import Store
from insika.storage.rows import (
    Accepted,
    ApprovalRow,
    CallRow,
    CallStart,
    CallState,
    Claim,
    Committed,
    Loaded,
    LogEntry,
    SessionRow,
    TurnState,
    Verdict,
)

Rows = Sequence[Mapping[str, Any]]
Peek = Callable[[str], Awaitable[Rows]]

TABLES = (
    *("sessions", "job_ids", "mailbox", "turns", "messages", "tool_calls", "model_calls", "approvals", "outbox"),
    *("profiles", "settings", "applied_revisions", "rejected_jobs", "spend_days", "alerts"),
)
LEASE_S = 15.0
KEY = "shop|web|bob"
ARGUMENTS = "what was shown"
"""Stands for the hash of a call's arguments."""
MEASURED = Usage(10, 5, 2, 1)
ESTIMATE = Usage(7, 0, 0, 0)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def job(text: str = "hello", *, session: str = "s", job_id: str | None = None, **values: Any) -> AcceptJob:
    ready = AcceptJob(
        tenant="",
        session=session,
        job_id=job_id or uuid.uuid4().hex,
        digest=digest(text),
        turn_id=str(uuid.uuid4()),
        text=text,
        agent="shop",
        key=KEY,
        raw=text.encode(),
        channel="web",
        recipient="bob",
    )
    return replace(ready, **values)


def answer_call(step: int, attempt: int = 1) -> ModelCallKey:
    return ModelCallKey(step, attempt, "answer", "offline/demo")


def measured(step: int, attempt: int = 1) -> SettledModelCall:
    return SettledModelCall(answer_call(step, attempt), MEASURED)


def delivery(lane: str, content: str = "answer", **values: Any) -> NewDelivery:
    ready = NewDelivery("web", lane, "bob", {"type": "answer", "content": content}, "https://shop.example/hook")
    return replace(ready, **values)


def classifier_call(step: int = 1, attempt: int = 1) -> ModelCallKey:
    return ModelCallKey(step, attempt, "classify", "offline/cheap")


def alert(key: str, **values: Any) -> NewAlert:
    """One that somebody is sent."""
    ready = NewDelivery(
        "alerts", "", "ops", {"type": "budget_warning"}, "https://ops.example/hook", kind="budget_warning"
    )
    return NewAlert(key, replace(ready, **values))


def done(index: int, call_id: str, content: str = "ok", **values: Any) -> CallResult:
    return replace(CallResult(index, call_id, CallState.DONE, content), **values)


class World:
    """A store, its clock, and a way to see the rows that no port shows."""

    def __init__(self, store: Store, clock: ManualClock, peek: Peek) -> None:
        self.store = store
        self.clock = clock
        self.peek = peek

    async def say(self, text: str = "hello", **values: Any) -> Accepted:
        return await self.store.accept(job(text, **values))

    async def claim(self, session_id: int, **values: Any) -> Claim:
        claim = await self.store.claim(session_id, LEASE_S, **values)
        assert claim is not None, "the session could not be claimed"
        return claim

    async def own(self, session_id: int) -> Owner:
        return await Owner(self, await self.claim(session_id)).look()

    async def take_over(self, session_id: int) -> Owner:
        """Let the present owner's lease run out, and claim."""
        self.clock.advance(LEASE_S + 1)
        return await self.own(session_id)

    async def session(self, name: str = "s") -> SessionRow:
        row = await self.store.session(name)
        assert row is not None
        return row

    async def everything(self) -> dict[str, list[dict[str, Any]]]:
        """Every row of every table, for tests that nothing was written."""
        tables = {}
        for table in TABLES:
            tables[table] = sorted((dict(row) for row in await self.peek(f"SELECT * FROM {table}")), key=repr)
        return tables

    async def deliveries(self) -> Rows:
        return await self.peek("SELECT * FROM outbox ORDER BY lane, lane_pos")


class Owner:
    """The owner of one session, with what it has seen."""

    def __init__(self, world: World, claim: Claim) -> None:
        self.world = world
        self.store = world.store
        self.claim = claim
        self.fence = Fence(claim.session_id, claim.lease_id)
        self.loaded: Loaded = cast(Loaded, None)
        self.seen = Seen(0, 0)

    async def look(self) -> Owner:
        loaded = await self.store.load(self.fence)
        assert loaded is not None, "the lease is lost"
        self.loaded = loaded
        self.seen = Seen(loaded.session.mail_seq, loaded.session.urgent_seq)
        return self

    @property
    def turn_id(self) -> str:
        assert self.loaded.session.turn_id is not None
        return self.loaded.session.turn_id

    def opening(self, **values: Any) -> StartTurn:
        """The turn of the first message that waits, with all that merged into it."""
        mail = [row for row in self.loaded.mail if row.verdict is not Verdict.CONTROL]
        first = mail[0]
        ready = StartTurn(
            turn_id=cast(str, first.turn_id),
            positions=tuple(row.position for row in mail if row.turn_id == first.turn_id),
            agent=first.agent,
            channel=first.channel,
            recipient=first.recipient,
            origin=first.origin,
            profile_revision="r1",
            limits={"max_tool_calls": 50},
            model_call=answer_call(1),
            steerable_key=first.key,
            merging=self.loaded.session.merge_turn == first.turn_id,
        )
        return replace(ready, **values)

    async def start(self, **values: Any) -> int | None:
        started = await self.store.start(self.fence, self.seen, self.opening(**values))
        if started is not None:
            await self.look()
        return None if started is None else started.log_seq

    async def append(
        self,
        *call_ids: str,
        step: int = 1,
        side_effect: bool = True,
        verbatim: Verbatim = NOTHING_VERBATIM,
        model_call: SettledModelCall | None = None,
    ) -> int | None:
        calls = tuple(ToolCall(call_id, "look_up", {"n": 1}) for call_id in call_ids)
        announced = tuple(AnnouncedCall(call.id, call.name, call.arguments, side_effect) for call in calls)
        message = replace(assistant("let me see", *calls), verbatim=verbatim)
        asked = model_call or measured(step)
        return await self.store.append(self.fence, AppendStep(self.turn_id, step, message, announced, asked))

    def routing(self, route: str | None = "order", **values: Any) -> RouteTurn:
        settled = SettledModelCall(classifier_call(), MEASURED)
        return replace(RouteTurn(self.turn_id, route, settled, answer_call(1)), **values)

    async def route(self, route: str | None = "order", **values: Any) -> bool:
        routed = await self.store.route_turn(self.fence, self.seen, self.routing(route, **values))
        await self.look()
        return routed

    def redirecting(self, **values: Any) -> RedirectTurn:
        ready = RedirectTurn(self.turn_id, "orders", "r2", {"max_tool_calls": 9}, 1, answer_call(1, 7))
        return replace(ready, **values)

    async def redirect(self, **values: Any) -> bool:
        redirected = await self.store.redirect_turn(self.fence, self.seen, self.redirecting(**values))
        await self.look()
        return redirected

    async def screen(self, turn_id: str, *, estimate: Usage = ESTIMATE, **values: Any) -> ModelCallKey | None:
        asked: dict[str, Any] = {"purpose": "moderate", "model": "offline/moderator", **values}
        return await self.store.open_model_call(self.fence, self.seen, turn_id, 0, estimate=estimate, **asked)

    def finishing(self, **values: Any) -> FinishAtOnce:
        opening = self.opening()
        ready = FinishAtOnce(
            *(opening.turn_id, opening.positions, opening.agent, opening.channel, opening.recipient, opening.origin),
            profile_revision="r1",
            limits={"max_tool_calls": 50},
            answer="come back later",
            outcome="limited",
            deliveries=(delivery(f"{self.fence.session_id}/web"),),
            merging=opening.merging,
        )
        return replace(ready, **values)

    def giving_up(self, **values: Any) -> FailQueued:
        opening = self.opening()
        error = {"type": "worker_lost", "message": "its workers died"}
        ready = FailQueued(
            *(opening.turn_id, opening.positions, opening.agent, opening.channel, opening.recipient, opening.origin),
            error=error,
            merging=opening.merging,
        )
        return replace(ready, **values)

    async def start_call(self, index: int = 0, step: int = 1, *, arguments_hash: str | None = None) -> CallStart:
        return await self.store.start_call(
            self.fence, self.seen, self.turn_id, step, index, arguments_hash=arguments_hash
        )

    def question(self, call_id: str, **values: Any) -> AskApproval:
        return replace(AskApproval(f"{call_id} {self.turn_id}", call_id, "look_up", ARGUMENTS, 600.0), **values)

    async def ask(self, *call_ids: str, **values: Any) -> bool:
        """The approval of call `a` has the id that begins with "a "."""
        questions = tuple(self.question(call_id, **values) for call_id in call_ids)
        asked = await self.store.ask_approvals(self.fence, self.seen, self.turn_id, questions)
        await self.look()
        return asked

    def approval(self, call_id: str) -> ApprovalRow:
        (row,) = (row for row in self.loaded.approvals if row.call_id == call_id)
        return row

    async def suspend(self) -> bool:
        return await self.store.suspend(self.fence, self.seen, self.turn_id)

    async def resume(self) -> bool:
        resumed = await self.store.resume_turn(self.fence, self.seen, self.turn_id)
        await self.look()
        return resumed

    async def finish_call(self, result: CallResult, step: int = 1) -> CallStart:
        return await self.store.finish_call(self.fence, self.turn_id, step, result)

    def boundary(self, *results: CallResult, step: int = 1, **values: Any) -> CrossBoundary:
        return replace(CrossBoundary(self.turn_id, step, results, answer_call(step + 1)), **values)

    async def cross(self, *results: CallResult, step: int = 1, **values: Any) -> int | None:
        crossed = await self.store.cross_boundary(self.fence, self.seen, self.boundary(*results, step=step, **values))
        if crossed is not None:
            await self.look()
        return crossed

    def absorbing(self, *positions: int) -> tuple[Absorbed, ...]:
        return tuple(Absorbed(row.position, row.text) for row in self.loaded.mail if row.position in positions)

    def ending(self, step: int = 1, **values: Any) -> CommitTurn:
        deliveries = (delivery(f"{self.fence.session_id}/web"),)
        ready = CommitTurn(self.turn_id, step, "the answer", "completed", deliveries, model_call=measured(step))
        return replace(ready, **values)

    async def commit(self, step: int = 1, **values: Any) -> Committed | None:
        return await self.store.commit(self.fence, self.seen, self.ending(step, **values))

    def failing(self, *results: CallResult, step: int = 1, **values: Any) -> EndTurn:
        error = {"type": "timeout", "message": "the turn took too long"}
        ready = EndTurn(self.turn_id, step, TurnState.FAILED, "failed", error, results, estimate=ESTIMATE)
        return replace(ready, **values)

    async def fail(self, *results: CallResult, step: int = 1, **values: Any) -> bool:
        return await self.store.end(self.fence, self.failing(*results, step=step, **values))

    async def release(self, due_at: Any = NEVER) -> bool:
        return await self.store.release(self.fence, self.seen, Release(due_at))

    async def run_turn(self) -> Owner:
        """A turn with one tool call, to its answer; the lease is kept."""
        await self.start()
        call_id = f"c{self.seen.mail}"
        await self.append(call_id)
        await self.start_call()
        await self.finish_call(done(0, call_id))
        await self.cross(done(0, call_id))
        assert await self.commit(2) == Committed(released=False)
        return await self.look()


def assert_valid_conversation(log: Sequence[LogEntry]) -> None:
    """Gapless; every batch answered, in the order announced, before anything else is said."""
    missing: list[str] = []
    for place, entry in enumerate(log, start=1):
        assert entry.seq == place
        message = entry.message
        if message.role is Role.TOOL:
            assert missing, f"message {place} answers a call that nobody made"
            assert message.tool_call_id == missing.pop(0)
        else:
            assert not missing, f"message {place} stands inside a batch that still lacks {missing}"
            missing = [call.id for call in message.tool_calls]


def assert_resumable(log: Sequence[LogEntry], calls: Sequence[CallRow]) -> None:
    """As above, but the last batch may be open: then every call of it has its row, to be answered from."""
    results = list(itertools.takewhile(lambda entry: entry.message.role is Role.TOOL, reversed(log)))
    last = len(log) - len(results) - 1
    announced = log[last].message.tool_calls if last >= 0 else ()
    if announced and not results:
        assert_valid_conversation(log[:last])
        assert [call.id for call in announced] == [row.call_id for row in calls if row.step == log[last].step]
    else:
        assert_valid_conversation(log)


def texts(log: Sequence[LogEntry], role: Role = Role.USER) -> list[str]:
    return [entry.message.content for entry in log if entry.message.role is role]


def message_of(entry: LogEntry) -> Message:
    return entry.message
