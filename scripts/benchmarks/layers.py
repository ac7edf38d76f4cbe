"""A turn in memory with every layer of limits and policy on, beside the same turn with none of them.

On are the guard of what is said and of what is answered, the edge limits, a budget by the day and the month, retries
with a fallback, and a circuit. Counts and circuits are those of one process: what Redis adds, `limits` measures. Not on
are what asks a model of its own: the classifier of routes, and a moderator.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any, cast

from actors.admission import Admitted, Applicant, KeptLimits
from actors.configuration import Configuration, edge_rules
from actors.guarding import outgoing_by
from actors.reliable_turns import ReliableTurns
from benchmarks.measure import Figure, Work, against
from benchmarks.memory import USAGE, StubTools, nothing
from insika.agents.limits import TurnLimits
from insika.agents.profile import Profile, load_profile
from insika.clock import SystemClock
from insika.coordination.local_circuits import LocalCircuits
from insika.coordination.local_windows import LocalWindows
from insika.crash_points import no_crash
from insika.limits.edge import EdgeRules
from insika.limits.windows import SettledTokens
from insika.messages import Role, ToolCall, assistant, user
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.policy.guardrails.verdict import ALLOW
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta
from insika.providers.offline import split_text
from insika.settings import Settings, load_settings
from insika.storage.port import AlertStore
from insika.storage.rows import LogEntry, Spend
from insika.turn.in_memory import InMemoryTurnLog, said_before
from insika.turn.ports import TurnPorts
from insika.turn.run import TurnLoop
from insika.turn.state import TurnIdentity
from insika.turn.times import TurnTimes

SAID = "Hi, where is my order 10234? It was supposed to arrive yesterday, and nobody answers the telephone."
ANSWER = "It left our warehouse on Monday and is on its way to you; it should arrive tomorrow before noon."
TIME_S = 300.0
PROFILE: dict[str, Any] = {
    "id": "a",
    "model": "stub/m",
    "instructions": "You keep a shop.",
    "tools_allow": ["add"],
    "limits": {"chat_rate_limit": 10**6, "agent_token_ceiling": 10**9},
    "budget": {"daily": 10**12, "monthly": 10**13},
    "reliability": {"fallback": ["stub/other"], "circuit_breaker": {}},
    "alerts": {"webhook": "https://ops.example.com/insika"},
}


class Answers:
    """Calls a tool, then answers in words."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if request.messages[-1].role is not Role.TOOL:
            yield Finished(assistant("", ToolCall("c0", "add", {"a": 1, "b": 2})), USAGE)
            return
        for word in split_text(ANSWER):
            yield TextDelta(word)
        yield Finished(assistant(ANSWER), USAGE)


class Knows:
    """What limits ask the store and the configuration for, from memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def settings(self) -> Settings:
        return self._settings

    def edge_rules(self, profile: Profile) -> EdgeRules:
        return edge_rules(profile, self._settings)

    async def spend(self, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> Spend:
        return Spend(10**6, 10**7)

    async def roll_up_spend(self, until: datetime, *, limit: int = 1_000) -> int:
        return 0


class Turns:
    """The same turn, bare and limited. `limited` does what `TurnOpening` and `TurnRunner` do, but for a store."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._profile = load_profile(PROFILE, "the benchmark")
        self._guards = Guards(read_library())
        self._windows = LocalWindows(self._clock)
        knows = Knows(load_settings({}, "the benchmark"))
        configuration = cast(Configuration, knows)
        self._limits = KeptLimits(configuration, self._windows, knows)
        circuits = LocalCircuits(self._clock)
        self._reliable = ReliableTurns(configuration, circuits, cast(AlertStore, knows), self._clock, lambda model: "")
        self._outgoing = outgoing_by(self._guards)
        self._numbers = itertools.count()

    async def bare(self) -> None:
        await self._run(self._ports(InMemoryTurnLog("t", "stub/m", ["add"], self._history())))

    async def limited(self) -> None:
        profile, turn_id = self._profile, f"turn-{next(self._numbers)}"
        if self._guards.verdict(SAID, profile.guards) != ALLOW:
            raise AssertionError("it was to be allowed")
        applicant = Applicant("", "session", turn_id, self._clock.now())
        if await self._limits.ask(profile, applicant) != Admitted():
            raise AssertionError("nothing was to be breached")
        attempts = self._reliable.attempts(profile, "", turn_id, "session", nothing)
        log = InMemoryTurnLog("t", "stub/m", ["add"], self._history())
        await self._run(self._ports(log, attempts=attempts, outgoing=self._outgoing(profile.guards)))
        for step in (0, 1):
            settled = SettledTokens("", profile.id, 86_400, turn_id, step, 1, "answer", USAGE.total)
            self._windows.spend(settled)

    def _history(self) -> tuple[LogEntry, ...]:
        return tuple(said_before([user(SAID)]))

    def _ports(self, log: InMemoryTurnLog, **layers: Any) -> tuple[InMemoryTurnLog, TurnPorts]:
        clock = self._clock
        return log, TurnPorts(Answers(), StubTools(), log, nothing, clock, no_crash, TurnTimes(clock), **layers)

    async def _run(self, turn: tuple[InMemoryTurnLog, TurnPorts]) -> None:
        log, ports = turn
        limits = TurnLimits(max_tool_calls=None, max_tool_repeat=3)
        identity = TurnIdentity("t", 1, "s", "", "a", "stub/m", "", limits, TIME_S)
        await TurnLoop(identity, log.state(fresh=True), ports).run()
        if log.ended is None:
            raise AssertionError("the turn did not end")


async def figures() -> list[Figure]:
    turns = Turns()
    works: dict[str, Work] = {"memory.turn_every_layer": turns.limited}
    note = "floor: the turn with none"
    return [await against(name, work, turns.bare, rounds=200, each=10, note=note) for name, work in works.items()]
