"""Workers over one store that take a step only when a test lets them: before each operation of the store, while the
model talks, and within each tool they stand still, until they are told to go on, are put to sleep, or die.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from actors.configuration import Configuration
from actors.ingress import Ingress
from actors.lease import LeaseKeeper
from actors.runtime import Runtime
from actors.stage import Stage
from actors.wakes import NoWakes
from actors.world import World as ActorWorld
from insika.agents.profile import load_profile
from insika.crash_points import CrashPoint, no_crash
from insika.errors import ProviderFatal
from insika.messages import Halt, Message, ToolCall, Usage, assistant
from insika.ports import Finished, ModelEvent, ModelRequest
from insika.providers.catalog import ModelCatalog
from insika.settings import load_settings
from insika.storage.operations import Fence, Seen
from insika.storage.port import LeaseRenewal, Store
from insika.storage.rows import Mail
from insika.testing import RecordingEvents
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from insika.tools.tool import Tool, ToolContext
from insika.turn.input_guard import Refusal
from tests.store_world import LEASE_S, World

CHANNELS = ("web", "mail")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PATIENCE_S = 20.0
"""Only a machine that hangs waits as long as that."""

BAD = "bad"
"""What the guard refuses begins like this."""

TALKS, ACTS, SCREENS = "model", "tool", "guard"
"""Where an owner stands when it is not before an operation of the store."""


class Died(BaseException):
    """The process is gone."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that reached the model, with what the store held at that moment."""

    session_id: int
    worker: Worker
    messages: tuple[Message, ...]
    log: tuple[Message, ...]
    open_calls: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """One start of a tool in the world."""

    session_id: int
    worker: Worker
    tool: str
    turn_id: str
    call_id: str
    at: datetime


@dataclass(eq=False, slots=True)
class Stop:
    """Where an owner stands. `seen`: what it has looked at, where the operation says so."""

    where: str
    seen: Seen | None
    going: asyncio.Future[Any]


HERE: ContextVar[tuple[Worker, int]] = ContextVar("HERE")
"""Which worker runs which session, in the task of its owner."""


@dataclass
class Hall:
    """What all workers share: the store, its clock, the configuration, and a journal of what reached the world."""

    world: World
    in_flight: int = 0
    landed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Asked] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    signalled: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store: Store = self.world.store
        self.clock = self.world.clock
        self.events = RecordingEvents()
        self.configuration = Configuration(self.store)
        self.renewal: LeaseRenewal = self.store.renewal()
        self.ingress = Ingress(
            self.store,
            self.configuration,
            events=self.events,
            clock=self.clock,
            wakes=NoWakes(),
            signals=self,
            crash=no_crash,
        )

    async def open(self, profiles: Sequence[Mapping[str, Any]]) -> None:
        channels = [{"id": name, "url": f"https://shop.example/{name}", "secret": SECRET} for name in CHANNELS]
        settings = load_settings({"channels": channels}, "test")
        await self.store.apply_settings(settings.revision(), settings.document(), "operator")
        await self.apply(profiles)

    async def apply(self, profiles: Sequence[Mapping[str, Any]]) -> None:
        read = [load_profile(dict(each), "test") for each in profiles]
        await self.configuration.apply_profiles(read, from_file=False)
        await self.configuration.refresh()

    def publish(self, session_id: int) -> None:
        self.signalled.add(session_id)

    @contextlib.contextmanager
    def flying(self) -> Iterator[None]:
        """While an owner waits for the store."""
        self.in_flight += 1
        self.landed.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self.landed.set()

    def close(self) -> None:
        self.renewal.close()


class Stepped:
    """The store as one worker's owners reach it."""

    def __init__(self, hall: Hall, worker: Worker) -> None:
        self._hall = hall
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._hall.store, name)
        if not asyncio.iscoroutinefunction(operation):
            return operation

        async def stepped(*args: Any, **kwargs: Any) -> Any:
            worker = self._worker
            if name == "claim":
                HERE.set((worker, args[0]))
            if args and (name == "claim" or isinstance(args[0], Fence)):
                await worker.stop(name, next((each for each in args if isinstance(each, Seen)), None))
            worker.must_live()
            with self._hall.flying():
                answer = await operation(*args, **kwargs)
            worker.must_live()
            if name == "confirm":
                worker.renew()  # the thread that renews comes round sooner or later
            return answer

        return stepped


class HeldRenewal:
    """The one connection that renews, lent to a keeper that may not close it."""

    def __init__(self, renewal: LeaseRenewal) -> None:
        self.renew = renewal.renew

    def close(self) -> None:
        return None


class TalkingModel:
    """A model that says what the test makes it say, by `Worker.go(..., reply)`."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        worker, session_id = HERE.get()
        with self._hall.flying():
            self._hall.asked.append(await self._asked(worker, session_id, tuple(request.messages)))
        reply = await worker.stop(TALKS)
        if reply is None:
            raise ProviderFatal("the model is out of order")
        yield Finished(reply, Usage(10, 5))

    async def _asked(self, worker: Worker, session_id: int, messages: tuple[Message, ...]) -> Asked:
        store = self._hall.store
        row = await store.session_by_id(session_id)
        assert row is not None
        calls = await store.model_calls(row.turn_id) if row.turn_id is not None else ()
        log = tuple(entry.message for entry in await store.messages(session_id))
        open_calls = tuple((call.turn_id, call.step, call.attempt) for call in calls if call.state == "open")
        return Asked(session_id, worker, messages, log, open_calls)


class StrictGuard:
    """Refuses what begins badly, and takes its time."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def refusals(self, mail: Sequence[Mail]) -> Mapping[int, Refusal]:
        await self._worker.stop(SCREENS)
        return {row.position: Refusal("rude") for row in mail if row.text.startswith(BAD)}


TOOL_OF = {"l": "look", "p": "pay", "r": "refund", "h": "hang_up"}
"""The tools by first letters. `refund` needs a person's word, `hang_up` halts; all but `look` have effects."""


def reply(number: int, letters: str) -> Message:
    """The `number`th thing the model says; no letters: its answer."""
    if not letters:
        return assistant(f"answer {number}")
    calls = [ToolCall(f"c{number}_{place}", TOOL_OF[it], {"n": number}) for place, it in enumerate(letters)]
    return assistant(f"let me see {number}", *calls)


def tools(hall: Hall) -> list[Tool]:
    async def note(name: str, context: ToolContext) -> str:
        worker, session_id = HERE.get()
        hall.ran.append(Ran(session_id, worker, name, context.turn_id, context.call_id, hall.clock.now()))
        await worker.stop(ACTS)
        return f"{name} did {context.call_id}"

    @tool(repeatable=True)
    async def look(n: int, context: ToolContext) -> str:
        return await note("look", context)

    @tool(side_effect=True, repeatable=True)
    async def pay(n: int, context: ToolContext) -> str:
        return await note("pay", context)

    @tool(side_effect=True, repeatable=True)
    async def refund(n: int, context: ToolContext) -> str:
        return await note("refund", context)

    @tool(side_effect=True, repeatable=True)
    async def hang_up(n: int, context: ToolContext) -> Halt:
        return Halt(await note("hang_up", context))

    return [look, pay, refund, hang_up]


class Worker:
    """One process. `asleep`: it does nothing and renews nothing; `gone`: it died, or left."""

    def __init__(self, hall: Hall, name: str) -> None:
        self.hall = hall
        self.name = name
        self.stops: dict[int, list[Stop]] = defaultdict(list)
        self.asleep = self.gone = self.unstoppable = False
        self.dies_at: CrashPoint | None = None
        self._leaving: asyncio.Task[None] | None = None
        store: Any = Stepped(hall, self)
        stage = Stage(
            hall.configuration,
            ModelCatalog({"offline": TalkingModel(hall)}),
            ToolRegistry(tools(hall)),
            ToolThreads(),
        )
        self.keeper = LeaseKeeper(HeldRenewal(hall.renewal), LEASE_S, hall.clock, self._urgent)
        world = ActorWorld(store, stage, hall.events, hall.clock, NoWakes(), self._reached, StrictGuard(self))
        self.runtime = Runtime(world, self.keeper, 50)

    # --- what a machine asks for

    def runs(self, session_id: int) -> bool:
        return session_id in self.runtime._running

    def stop_of(self, session_id: int) -> Stop | None:
        return next(iter(self.stops[session_id]), None)

    async def wake(self, session_id: int) -> None:
        self.runtime.wake(session_id)
        await self._settled(session_id)

    async def go(self, session_id: int, reply: Message | None = None) -> None:
        """Let the owner of the session go on to its next stop."""
        stop = self.stops[session_id].pop(0)
        stop.going.set_result(reply)
        await self._settled(session_id)

    async def look(self, session_id: int) -> None:
        """A signal reaches this worker."""
        self.runtime.signal(session_id)
        await self._settled(session_id)

    def renew(self) -> None:
        self.keeper.loop_ticked()
        self.keeper.renew_once()

    async def leave(self, *, at_once: bool) -> None:
        """SIGTERM: turns go on to their next boundary; `at_once`: the time for that is over."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self.runtime.drain(1e6))
            await self._ticks()
        if at_once:
            self.unstoppable = True
            async with asyncio.timeout(PATIENCE_S):
                await self.runtime.drain(0)
            self.gone = True

    async def die(self) -> None:
        """As SIGKILL: nothing is written and nothing is released."""
        self.gone = True
        tasks = [*self.runtime._running.values(), *([self._leaving] if self._leaving else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.stops.clear()

    # --- what its owners come to

    async def stop(self, where: str, seen: Seen | None = None) -> Any:
        here = HERE.get(None)
        if here is None or self.unstoppable:  # a look at the mailbox on a signal; the end of a drain
            return None
        self.must_live()
        stop = Stop(where, seen, asyncio.get_running_loop().create_future())
        self.stops[here[1]].append(stop)
        try:
            return await stop.going
        finally:
            with contextlib.suppress(ValueError):
                self.stops[here[1]].remove(stop)
            self.must_live()

    def must_live(self) -> None:
        if self.gone:
            raise Died

    def _reached(self, point: CrashPoint, /) -> None:
        if point is self.dies_at:
            self.gone = True
        self.must_live()

    def _urgent(self, session_id: int) -> None:
        if not self.asleep:
            self.hall.signalled.add(session_id)

    async def _settled(self, session_id: int) -> None:
        """Until the owner of the session stands still again, or is no more."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await self._ticks()
                if self.hall.in_flight:
                    await self.hall.landed.wait()
                elif not self.runs(session_id) or self.stops[session_id]:
                    return
                else:
                    await asyncio.sleep(0.001)  # it waits for something that no test stands before

    async def _ticks(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)
