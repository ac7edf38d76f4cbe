"""Processes over one SQLite file, as the tests of the actors need them: each with its own runtime, ingress and leases,
a store in the way of which a test can stand, and a death that leaves nothing behind but the file.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from structlog.testing import capture_logs

from actors.admission import KeptLimits
from actors.configuration import Configuration
from actors.control import Control
from actors.guarding import outgoing_by
from actors.ingress import Ingress, Kept
from actors.lease import RENEWALS_PER_LEASE, LeaseKeeper
from actors.moderators import KnownModerators
from actors.own_policies import PolicedAdmissions
from actors.reliable_turns import ReliableTurns
from actors.runtime import Runtime
from actors.stage import Stage
from actors.token_counts import WindowTokenCounts
from actors.tool_set import ToolSet
from actors.world import World
from insika.agents.profile import load_profile
from insika.clock import ManualClock
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.local_windows import LocalWindows
from insika.crash_points import CrashPoint
from insika.messages import Message
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.policy.own import OwnPolicies, OwnPolicy
from insika.ports import ModelProvider
from insika.providers.catalog import ModelCatalog
from insika.settings import load_settings
from insika.storage.port import StoreUnavailable
from insika.storage.rows import (
    Accepted,
    ApprovalDecision,
    ApprovalRow,
    Decided,
    LogEntry,
    Mail,
    SessionRow,
    TurnRow,
    Withdrawal,
)
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from insika.testing import RecordingEvents, Script, ScriptedModel
from insika.tools.egress import EgressGuard
from insika.tools.http.sending import Sender
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from insika.tools.tool import Tool, ToolContext
from insika.turn.input_guard import InputGuard, NoInputGuard, Refusal
from tests.strict import check_anthropic, check_openai

LEASE_S = 15.0
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANNEL = "web"
GUARDS = Guards(read_library())
PATIENCE_S = 20.0
"""Only a test that hangs waits as long as that."""

AsyncHook = Callable[[str, str], Awaitable[None]]


class Died(BaseException):
    """The process is gone."""


async def no_hook(when: str, operation: str) -> None:
    return None


class WatchedStore:
    """A store that calls `hook("before" or "after", operation)` around each operation. After `cut_off` it is a store
    that nobody can reach: what a dead process still tries comes to nothing."""

    def __init__(self, store: SqliteStore) -> None:
        self.real = store
        self.hook: AsyncHook = no_hook
        self.operations: list[str] = []
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.real, name)
        if not asyncio.iscoroutinefunction(operation):
            return operation

        async def watched(*args: Any, **kwargs: Any) -> Any:
            self._hold_the_dead()
            self.operations.append(name)
            await self.hook("before", name)
            self._hold_the_dead()
            answer = await operation(*args, **kwargs)
            self._hold_the_dead()
            await self.hook("after", name)
            return answer

        return watched

    def _hold_the_dead(self) -> None:
        if self.dead:
            raise Died


class Gate:
    """Holds whoever comes until it is opened, and tells that somebody came."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def __call__(self, *_: Any) -> None:
        self._reached.set()
        await self._opened.wait()

    async def reached(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._reached.wait()

    def open(self) -> None:
        self._opened.set()


class RefusingGuard:
    """Refuses what holds the word "rude". `asked`: the texts of each question, in order."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def refusals(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        self.asked.append([row.text for row in mail])
        return {row.position: Refusal("rudeness") for row in mail if "rude" in row.text}


class Shop:
    """The tools, and a journal of what they did: `ran` holds (tool, n, call id), over all processes."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int, str]] = []
        self.gates: dict[tuple[str, int], Callable[..., Awaitable[None]]] = {}

    def count(self, name: str) -> int:
        return sum(1 for ran, _, _ in self.ran if ran == name)

    def once_each(self, *names: str) -> None:
        runs = Counter(call_id for name, _, call_id in self.ran if name in names)
        assert all(times == 1 for times in runs.values()), runs

    def tools(self) -> list[Tool]:
        async def note(name: str, n: int, context: ToolContext) -> str:
            self.ran.append((name, n, f"{context.turn_id}/{context.call_id}"))
            if (gate := self.gates.get((name, n))) is not None:
                await gate()
            return f"{name} {n} done"

        @tool
        async def look(n: int, context: ToolContext) -> str:
            return await note("look", n, context)

        @tool(side_effect=True)
        async def pay(n: int, context: ToolContext) -> str:
            return await note("pay", n, context)

        @tool(side_effect=True, idempotent=True)
        async def put(n: int, context: ToolContext) -> str:
            return await note("put", n, context)

        return [look, pay, put]


def profile(**values: Any) -> dict[str, Any]:
    return {"id": "agent", "model": "offline/script", "instructions": "You keep a shop.", **values}


class Place:
    """One file, and what all processes over it share. `clock` is everybody's unless a process brings its own."""

    def __init__(self, folder: Path, script: Script | None = None) -> None:
        self.path = folder / "insika.db"
        self.clock = ManualClock()
        self.shop = Shop()
        self.circuits = LocalCircuits(self.clock)
        self.windows = LocalWindows(self.clock)
        self.script = script or Script()
        self.processes: list[Process] = []
        self._ids = itertools.count(1)
        migrate(self.path, self.clock.now)

    async def process(
        self,
        *profiles: dict[str, Any],
        clock: ManualClock | None = None,
        model: ModelProvider | None = None,
        tools: Sequence[Tool] = (),
        slots: int = 50,
        room: Callable[[bool], None] = lambda free: None,
        guard: InputGuard | None = None,
        settings: Mapping[str, Any] | None = None,
        timing: bool = False,
        policies: Sequence[OwnPolicy] = (),
        models: ModelCatalog | None = None,
    ) -> Process:
        """A new process, with these profiles applied, and these settings beside the channel. `models`, which may be at
        vendors, are its own in place of the script's or of `model`."""
        model = model or ScriptedModel(self.script)
        process = Process(
            self,
            clock or self.clock,
            model,
            tools,
            slots,
            room,
            guard or NoInputGuard(),
            timing=timing,
            policies=policies,
            models=models,
        )
        await process.begin(profiles or (profile(),), settings or {})
        self.processes.append(process)
        return process

    async def close(self) -> None:
        for process in self.processes:
            await process.die()
            await process.store.real.close()

    def next_id(self) -> str:
        return f"job-{next(self._ids)}"


class Process:
    """`deaf`: it takes messages and hears of no session, so it runs none."""

    def __init__(
        self,
        place: Place,
        clock: ManualClock,
        model: ModelProvider,
        tools: Sequence[Tool],
        slots: int,
        room: Callable[[bool], None],
        guard: InputGuard,
        *,
        timing: bool = False,
        policies: Sequence[OwnPolicy] = (),
        models: ModelCatalog | None = None,
    ) -> None:
        self.place = place
        self.clock = clock
        self.model = model
        self.store = WatchedStore(SqliteStore.open(place.path, clock.now))
        self.events = RecordingEvents()
        self.crash: Callable[[CrashPoint], None] = lambda point: None
        self.deliveries_rung = 0
        self.signalled: list[int] = []
        self.deaf = False
        self.configuration = Configuration(self.store)  # type: ignore[arg-type]
        stage = Stage(
            self.configuration,
            models or ModelCatalog({"offline": model}),
            ToolSet(ToolRegistry([*place.shop.tools(), *tools]), ToolRegistry(), Sender(EgressGuard()), {}),
            ToolThreads(),
        )
        limits = KeptLimits(self.configuration, place.windows, self.store)  # type: ignore[arg-type]
        world = World(
            self.store,  # type: ignore[arg-type]
            stage,
            self.events,
            clock,
            self,
            self._reached,
            guard,
            turn_timing=timing,
            sleep=self._sleeps,
            policies=ReliableTurns(self.configuration, place.circuits, self.store, clock, stage.cannot_ask),  # type: ignore[arg-type]
            admissions=PolicedAdmissions(limits, OwnPolicies(policies), ToolThreads()),
            tokens=WindowTokenCounts(self.configuration, place.windows, self.store),  # type: ignore[arg-type]
            outgoing=outgoing_by(GUARDS),
            moderators=KnownModerators(self.configuration, stage, GUARDS),
        )
        self.keeper = LeaseKeeper(self.store.renewal(), LEASE_S, clock)
        self.runtime = Runtime(world, self.keeper, slots, room)
        self.ingress = Ingress(
            self.store,  # type: ignore[arg-type]
            self.configuration,
            events=self.events,
            clock=clock,
            wakes=self,
            signals=self,
            crash=self._reached,
        )

        self.control = Control(self.store, self, self, self.events, clock)  # type: ignore[arg-type]

    async def begin(self, profiles: Sequence[dict[str, Any]], others: Mapping[str, Any] = MappingProxyType({})) -> None:
        channel = {"id": CHANNEL, "url": "https://shop.example/hook", "secret": SECRET}
        settings = load_settings({"channels": [channel], **others}, "test")
        await self.store.apply_settings(settings.revision(), settings.document(), "operator")
        await self.configuration.apply_profiles([load_profile(each, "test") for each in profiles], from_file=False)
        await self.configuration.refresh()

    # --- the wakes of this process

    def session(self, session_id: int) -> None:
        if not (self.store.dead or self.deaf):
            self.runtime.wake(session_id)

    def delivery(self) -> None:
        self.deliveries_rung += 1

    def publish(self, session_id: int) -> None:
        self.signalled.append(session_id)

    # --- what a test does with it

    async def send(
        self, text: str, session: str = "s", *, id: str | None = None, agent: str = "agent", **fields: Any
    ) -> Accepted:
        accepted = await self.hand_in(text, session, id=id, agent=agent, **fields)
        assert isinstance(accepted, Accepted), accepted
        return accepted

    async def hand_in(
        self, text: str, session: str = "s", *, id: str | None = None, agent: str = "agent", **fields: Any
    ) -> Accepted | Kept:
        job = {"session": session, "agent": agent, "text": text, "id": id or self.place.next_id(), **fields}
        return await self.ingress.take(json.dumps(job).encode())

    async def cancel(self, turn_id: str, request_id: str = "cancel") -> Accepted | None:
        return await self.control.cancel(turn_id, request_id=request_id)

    async def withdraw(self, job_id: str, session: str = "s") -> Withdrawal | None:
        return await self.control.withdraw(session, job_id, request_id=f"withdraw-{job_id}")

    async def decide(self, which: int, decision: ApprovalDecision, **said: str) -> Decided:
        """About the approval that was asked for as number `which`, from 0."""
        decided = await self.control.decide((await self.approvals())[which].id, decision, by="ann", **said)
        assert decided is not None
        return decided

    async def approve(self, which: int = 0) -> Decided:
        return await self.decide(which, ApprovalDecision.APPROVED)

    async def reject(self, which: int = 0, reason: str = "") -> Decided:
        return await self.decide(which, ApprovalDecision.REJECTED, reason=reason)

    async def idle(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.runtime.idle()

    async def sweep(self) -> int:
        """Wake what is due, as a sweeper does, but without its pauses between two wakes of one session."""
        await self.store.wake_due()
        due = await self.store.due_sessions()
        for session_id in due:
            self.session(session_id)
        return len(due)

    async def finish(self) -> None:
        """Let time pass, lease by lease, until nothing is left to do."""
        for _ in range(12):
            await self.idle()
            self.clock.advance(LEASE_S + 1)
            if not await self.sweep():
                return
        raise AssertionError("this never comes to an end")

    async def die(self) -> None:
        """As SIGKILL: what runs comes to nothing at its next step, and nothing is released."""
        self.store.dead = True
        tasks = list(self.runtime._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.keeper._thread.is_alive() or not self.keeper._stop.is_set():
            self.keeper.stop()

    def _reached(self, point: CrashPoint, /) -> None:
        if self.store.dead:
            raise Died
        self.crash(point)

    async def _sleeps(self, seconds: float) -> None:
        """Between two attempts at a model: time passes, in which what is held is renewed as ever."""
        while seconds > 0:
            step = min(seconds, LEASE_S / RENEWALS_PER_LEASE)
            self.clock.advance(step)
            self.keeper.loop_ticked()
            self.keeper.renew_once()
            seconds -= step

    # --- what a test looks at

    async def row(self, session: str = "s") -> SessionRow:
        row = await self.store.real.session(session)
        assert row is not None
        return row

    async def log(self, session: str = "s") -> list[LogEntry]:
        entries = list(await self.store.real.messages((await self.row(session)).id))
        messages = [entry.message for entry in entries]
        if messages:
            check_anthropic(messages)
            check_openai(messages)
        return entries

    async def messages(self, session: str = "s") -> list[Message]:
        return [entry.message for entry in await self.log(session)]

    async def said(self, session: str = "s") -> list[str]:
        """What people said, in the order of the conversation."""
        return [entry.message.content for entry in await self.log(session) if entry.position is not None]

    async def answers(self, session: str = "s") -> list[str]:
        messages = await self.messages(session)
        return [each.content for each in messages if each.role == "assistant" and not each.tool_calls]

    async def turns(self, session: str = "s") -> list[TurnRow]:
        return list(await self.store.real.turns((await self.row(session)).id))

    async def turn(self, turn_id: str | None) -> TurnRow:
        row = await self.store.real.turn(turn_id or "")
        assert row is not None
        return row

    async def mail(self, session: str = "s") -> list[Mail]:
        return list(await self.store.real.mail((await self.row(session)).id))

    async def approvals(self) -> list[ApprovalRow]:
        """In the order of their calls."""
        rows = [each.approval for each in await self.store.real.approvals()]
        return sorted(rows, key=lambda row: (row.asked_at, row.call_id))

    async def select(self, sql: str) -> list[dict[str, Any]]:
        def read(connection: Any) -> list[dict[str, Any]]:
            cursor = connection.execute(sql)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        return await self.store.real.database.read(read)

    async def write(self, sql: str) -> None:
        await self.store.real.database.write(lambda connection: connection.execute(sql).fetchall())

    async def counts(self) -> dict[str, int]:
        tables = ("messages", "tool_calls", "model_calls", "turns", "mailbox", "outbox")
        return {table: (await self.select(f"SELECT count(*) AS n FROM {table}"))[0]["n"] for table in tables}


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("the store is away")


@pytest.fixture
async def place_for(tmp_path: Path) -> AsyncIterator[Callable[[Script], Place]]:
    """Makes the place in which a script is played; the log of the deaths there is kept quiet."""
    made: list[Place] = []

    def make(script: Script) -> Place:
        made.append(Place(tmp_path, script))
        return made[-1]

    with capture_logs():
        yield make
        for place in made:
            await place.close()
