"""What one turn reaches the world through: made by its owner, used by the loop and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from insika.clock import Clock
from insika.crash_points import Crash
from insika.ports import Emit, ModelProvider, Toolbox
from insika.reliability.attempts import Attempts, OneAttempt
from insika.turn.log import TurnLog
from insika.turn.outgoing import UNGUARDED, OutgoingGuard
from insika.turn.times import TurnTimes

Sleep = Callable[[float], Awaitable[object]]
"""Wait that many seconds."""


@dataclass(frozen=True, slots=True)
class TurnPorts:
    """`provider` speaks for every model that `attempts` may name. `times` began when the turn was taken up.
    `outgoing` looks through what leaves."""

    provider: ModelProvider
    toolbox: Toolbox
    log: TurnLog
    emit: Emit
    clock: Clock
    crash: Crash
    times: TurnTimes
    attempts: Attempts = field(default_factory=OneAttempt)
    sleep: Sleep = asyncio.sleep
    outgoing: OutgoingGuard = UNGUARDED
