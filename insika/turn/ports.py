"""What one turn reaches the world through: made by its owner, used by the loop and nobody else."""

from __future__ import annotations

from dataclasses import dataclass

from insika.clock import Clock
from insika.crash_points import Crash
from insika.ports import Emit, ModelProvider, Toolbox
from insika.turn.log import TurnLog


@dataclass(frozen=True, slots=True)
class TurnPorts:
    provider: ModelProvider
    toolbox: Toolbox
    log: TurnLog
    emit: Emit
    clock: Clock
    crash: Crash
