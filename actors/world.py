"""What every actor of one process shares: made once by the composition root, and never changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from actors.admission import Admissions, EveryoneAdmitted
from actors.environment import DEPTH_CAP
from actors.guarding import OutgoingBy, everything_leaves
from actors.moderators import Moderators, NoModerators
from actors.reliable_turns import OneAttemptEach, TurnPolicies
from actors.stage import Stage
from actors.token_counts import NoTokenCounts, TokenCounts
from actors.wakes import Wakes
from insika.clock import Clock
from insika.crash_points import Crash
from insika.events import EventSink
from insika.storage.port import TurnStore
from insika.turn.input_guard import InputGuard, NoInputGuard
from insika.turn.ports import Sleep


@dataclass(frozen=True, slots=True)
class World:
    """`turn_timing`: measure each turn step by step, and tell. `sleep` is how a turn waits between two attempts,
    `policies` say how many there may be, and at which models; `admissions`, whether a turn may begin;
    `tokens` count what its models cost; `outgoing` looks through what they say; `moderators` are asked beside `guard`.
    `depth_cap`: how often a turn may be handed from agent to agent."""

    store: TurnStore
    stage: Stage
    events: EventSink
    clock: Clock
    wakes: Wakes
    crash: Crash
    guard: InputGuard = field(default_factory=NoInputGuard)
    turn_timing: bool = False
    sleep: Sleep = asyncio.sleep
    policies: TurnPolicies = field(default_factory=OneAttemptEach)
    admissions: Admissions = field(default_factory=EveryoneAdmitted)
    tokens: TokenCounts = field(default_factory=NoTokenCounts)
    depth_cap: int = DEPTH_CAP
    outgoing: OutgoingBy = everything_leaves
    moderators: Moderators = field(default_factory=NoModerators)
