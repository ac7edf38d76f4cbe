"""What differs between those who compose a process: models, tools, and what tests put in time's and death's place."""

from __future__ import annotations

from dataclasses import dataclass, field

from insika.clock import Clock, SystemClock
from insika.crash_points import Crash, no_crash
from insika.providers.catalog import ModelCatalog
from insika.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Parts:
    models: ModelCatalog
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    clock: Clock = field(default_factory=SystemClock)
    crash: Crash = no_crash
