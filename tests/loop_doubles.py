"""What the tests of the turn loop share: tools that remember, a turn made ready, and people who write meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from insika.agents.limits import TurnLimits
from insika.clock import Clock, ManualClock
from insika.crash_points import Crash, CrashPoint, no_crash
from insika.messages import Message, Role, ToolCall
from insika.ports import CallOutcome, Emit, ModelProvider, ToolSpec
from insika.reliability.attempts import Attempts, OneAttempt
from insika.storage.rows import Mail, Verdict
from insika.testing import RecordingEmit, Script, ScriptedModel
from insika.turn.in_memory import InMemoryTurnLog, said_before
from insika.turn.outgoing import UNGUARDED, OutgoingGuard
from insika.turn.ports import TurnPorts
from insika.turn.run import TurnLoop
from insika.turn.state import TurnIdentity
from insika.turn.times import TurnTimes
from tests.strict import check_anthropic, check_openai

TURN = "turn-1"
MODEL = "offline/script"


def ok(call: ToolCall) -> CallOutcome:
    return CallOutcome(f"result of {call.id}")


@dataclass
class FakeTool:
    side_effect: bool = False
    idempotent: bool = False
    repeatable: bool = False
    needs_approval: bool = False
    outcome: Callable[[ToolCall], CallOutcome] = ok
    refuses: str | None = None
    definition: str = ""


@dataclass
class FakeToolbox:
    """Runs by `tools`; keeps the ids of the calls that ran. Each call awaits `gate`, if it is set, before it ends."""

    tools: dict[str, FakeTool]
    ran: list[str] = field(default_factory=list)
    running: int = 0
    most_at_once: int = 0
    gate: Callable[[ToolCall], Any] | None = None

    def specs(self) -> Sequence[ToolSpec]:
        return [ToolSpec(name, "", {"type": "object"}) for name in sorted(self.tools)]

    def find(self, name: str) -> FakeTool | None:
        return self.tools.get(name)

    def repeatable(self, name: str) -> bool:
        return name in self.tools and self.tools[name].repeatable

    def needs_approval(self, name: str) -> bool:
        return name in self.tools and self.tools[name].needs_approval

    def refuse(self, call: ToolCall) -> CallOutcome | None:
        if call.malformed is not None:
            return CallOutcome("not an object", is_error=True)
        if (tool := self.tools.get(call.name)) is None:
            return CallOutcome("denied meanwhile", is_error=True)
        refusal = tool.refuses
        return None if refusal is None else CallOutcome(refusal, is_error=True)

    async def run(self, call: ToolCall, step: int) -> CallOutcome:
        if (refused := self.refuse(call)) is not None:
            return refused
        self.ran.append(call.id)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            if self.gate is not None:
                await self.gate(call)
            return self.tools[call.name].outcome(call)
        finally:
            self.running -= 1


class StrictModel(ScriptedModel):
    """A scripted model that refuses a conversation as both vendors would."""

    async def stream(self, request: Any) -> Any:
        check_anthropic(request.messages, sent=True)
        check_openai(request.messages, sent=True)
        async for event in super().stream(request):
            yield event


def some_tools() -> FakeToolbox:
    return FakeToolbox(
        {
            "look": FakeTool(),
            "poll": FakeTool(repeatable=True),
            "pay": FakeTool(side_effect=True),
            "put": FakeTool(side_effect=True, idempotent=True),
            "stop": FakeTool(outcome=lambda call: CallOutcome(str(call.arguments.get("say", "")), halts=True)),
            "break": FakeTool(outcome=lambda call: CallOutcome("it broke", is_error=True)),
            "hang": FakeTool(side_effect=True, outcome=lambda call: CallOutcome("late", is_error=True, cut=True)),
            "slow": FakeTool(outcome=lambda call: CallOutcome("gave up", is_error=True, cut=True)),
            "strict": FakeTool(side_effect=True, refuses="x: expected a number"),
            "refund": FakeTool(needs_approval=True),
            "ship": FakeTool(side_effect=True, needs_approval=True),
        }
    )


def identity(limits: TurnLimits, time_s: float = 300.0, note: str = "") -> TurnIdentity:
    return TurnIdentity(TURN, 1, "session", "", "agent", MODEL, "You help.", limits, time_s, note)


def mail(position: int, text: str) -> Mail:
    return Mail(
        position=position,
        job_id=f"job-{position}",
        mode="steer",
        key="key",
        text=text,
        at=datetime(2030, 1, 1, tzinfo=UTC),
        verdict=Verdict.STEERED,
        turn_id=TURN,
        cuts=None,
        debounce_ms=0,
        debounce_max_ms=0,
        agent="agent",
        channel=None,
        recipient="someone",
        origin="customer",
    )


class Turn:
    """One turn on an in-memory log. `run` takes it to its end; afterwards everything it did can be read."""

    def __init__(
        self,
        script: Script | ModelProvider,
        *,
        limits: TurnLimits | None = None,
        tools: FakeToolbox | None = None,
        history: Sequence[Message] = (),
        opening: Sequence[str] = ("hello",),
        clock: Clock | None = None,
        time_s: float = 300.0,
        note: str = "",
    ) -> None:
        self.model = StrictModel(script) if isinstance(script, Script) else script
        self.limits = limits or TurnLimits()
        self.tools = tools or some_tools()
        self.clock = clock or ManualClock()
        self.time_s = time_s
        self.note = note
        self.emit = RecordingEmit()
        self.times: Callable[[Clock, Emit], TurnTimes] = lambda clock, emit: TurnTimes(clock)
        self.attempts: Attempts = OneAttempt()
        self.slept: list[float] = []
        self.outgoing: OutgoingGuard = UNGUARDED
        self.log = InMemoryTurnLog(TURN, MODEL, opening, said_before(history))
        self._arrived = len(opening)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def events(self) -> list[str]:
        return [type for type, _ in self.emit.events]

    def event(self, type: str) -> Mapping[str, Any]:
        (data,) = [data for kind, data in self.emit.events if kind == type]
        return data

    @property
    def said(self) -> list[str]:
        """What was said to the model since the turn was opened, by people and the engine."""
        return [entry.message.content for entry in self.log.entries if entry.step > 0 and entry.message.role == "user"]

    @property
    def results(self) -> list[str]:
        return self.log.said_by(Role.TOOL)

    def writes(self, *texts: str) -> None:
        """Somebody writes to join the turn."""
        for text in texts:
            self._arrived += 1
            self.log.mail.append(mail(self._arrived, text))

    def ports(self, crash: Crash = no_crash) -> TurnPorts:
        times = self.times(self.clock, self.emit)
        return TurnPorts(
            self.model,
            self.tools,
            self.log,
            self.emit,
            self.clock,
            crash,
            times,
            self.attempts,
            self.sleep,
            self.outgoing,
        )

    async def run(self, *, fresh: bool = True, crash: Crash = no_crash) -> Turn:
        turn = identity(self.limits, self.time_s, self.note)
        await TurnLoop(turn, self.log.state(fresh=fresh), self.ports(crash)).run()
        check_anthropic(self.log.messages)
        check_openai(self.log.messages)
        return self


def at(point: CrashPoint, do: Callable[[], Any], time: int = 1) -> Crash:
    """Do something at the nth time a point is reached."""
    seen = 0

    def hook(reached: CrashPoint, /) -> None:
        nonlocal seen
        if reached is point:
            seen += 1
            if seen == time:
                do()

    return hook


async def forever(*_: Any) -> None:
    await asyncio.Event().wait()
