"""The loop by itself: no store, no network, a model that answers at once. What is measured is our own overhead."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence

from benchmarks.measure import Figure, Work, against
from insika.agents.limits import TurnLimits
from insika.clock import SystemClock
from insika.coordination.local import LocalEventStream
from insika.crash_points import no_crash
from insika.events import Event
from insika.messages import Role, ToolCall, Usage, assistant, tool_result, user
from insika.ports import CallOutcome, Emit, Finished, ModelEvent, ModelRequest, TextDelta, ToolSpec, ToolTraits
from insika.storage.rows import LogEntry
from insika.turn.in_memory import InMemoryTurnLog, said_before
from insika.turn.ports import TurnPorts
from insika.turn.run import TurnLoop
from insika.turn.state import TurnIdentity
from insika.turn.times import TurnTimes

USAGE = Usage(10, 10)


class StubModel:
    """Calls a tool `calls` times, one a step, then answers in `deltas` pieces."""

    def __init__(self, calls: int, deltas: int = 1) -> None:
        self._calls = calls
        self._deltas = deltas

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        said_last = itertools.takewhile(lambda message: message.role is not Role.USER, reversed(request.messages))
        done = sum(message.role is Role.TOOL for message in said_last)
        if done < self._calls:
            yield Finished(assistant("", ToolCall(f"c{done}", "add", {"a": done, "b": 2})), USAGE)
            return
        for _ in range(self._deltas):
            yield TextDelta("word ")
        yield Finished(assistant("the answer"), USAGE)


class Traits:
    side_effect = False
    idempotent = False
    repeatable = False
    definition = ""


class StubTools:
    def repeatable(self, name: str) -> bool:
        return False

    def needs_approval(self, name: str) -> bool:
        return False

    def specs(self) -> Sequence[ToolSpec]:
        return ()

    def find(self, name: str) -> ToolTraits | None:
        return Traits()

    def refuse(self, call: ToolCall) -> CallOutcome | None:
        return None

    async def run(self, call: ToolCall, step: int) -> CallOutcome:
        return CallOutcome(str(call.arguments["a"] + call.arguments["b"]))


def nothing(type: str, data: Mapping[str, object], /) -> None:
    return None


def turn(calls: int, history: Sequence[LogEntry] = (), deltas: int = 1, emit: Emit = nothing) -> Work:
    """One turn of the product's loop."""
    limits = TurnLimits(max_tool_calls=None, max_tool_repeat=3)
    identity = TurnIdentity("t", 1, "s", "", "a", "stub/m", "", limits, 300.0)

    async def run() -> None:
        log = InMemoryTurnLog("t", "stub/m", ["add"], history)
        clock = SystemClock()
        ports = TurnPorts(StubModel(calls, deltas), StubTools(), log, emit, clock, no_crash, TurnTimes(clock))
        await TurnLoop(identity, log.state(fresh=True), ports).run()
        if log.ended is None:
            raise AssertionError("the turn did not end")

    return run


def bare_loop(calls: int) -> Work:
    """What one writes by hand: ask, run the calls, append, ask again."""
    tools = StubTools()

    async def run() -> None:
        messages = [user("add")]
        model = StubModel(calls)
        while True:
            message = assistant("")
            async for event in model.stream(ModelRequest("m", "", messages)):
                if isinstance(event, Finished):
                    message = event.message
            messages.append(message)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                outcome = await tools.run(call, 0)
                messages.append(tool_result(call.id, outcome.content))

    return run


def streaming() -> tuple[Work, Work]:
    """200 deltas through the loop and the event stream to one subscriber, against the same through a queue."""
    stream = LocalEventStream()
    clock = SystemClock()

    def emit(type: str, data: Mapping[str, object], /) -> None:
        stream.publish(Event(type, clock.now(), "t", "s", "a", None, data=data))

    loop_run = turn(0, deltas=200, emit=emit)

    async def ours() -> None:
        with stream.subscribe() as subscription:
            await loop_run()
            if len(subscription.take()) < 200:
                raise AssertionError("deltas were lost")

    async def queue() -> None:
        pieces: asyncio.Queue[TextDelta] = asyncio.Queue()
        async for event in StubModel(0, 200).stream(ModelRequest("m", "", [])):
            if isinstance(event, TextDelta):
                pieces.put_nowait(event)
        for _ in range(200):
            await pieces.get()

    return ours, queue


async def figures() -> list[Figure]:
    said = [message for i in range(100) for message in (user(f"question {i}"), assistant(f"answer {i}"))]
    history = said_before(said)
    ours, queue = streaming()
    return [
        await against("memory.turn_one_tool", turn(1), bare_loop(1), rounds=200, each=10, note="floor: a bare loop"),
        await against(
            "memory.turn_20_calls", turn(20), bare_loop(20), rounds=100, each=2, units=20, note="per_s counts calls"
        ),
        await against(
            "memory.call_of_20", turn(20), turn(1), rounds=100, each=2, units=20, note="floor: one with 1 call"
        ),
        await against(
            "memory.turn_200_messages", turn(1, history), turn(1), rounds=200, each=5, note="floor: without history"
        ),
        await against(
            "memory.stream_200_deltas", ours, queue, rounds=200, each=2, units=200, note="floor: an asyncio queue"
        ),
    ]
