"""What every actor of one process shares: made once by the composition root, and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.stage import Stage
from actors.wakes import Wakes
from insika.clock import Clock
from insika.crash_points import Crash
from insika.events import EventSink
from insika.storage.port import OwnerStore
from insika.turn.input_guard import InputGuard, NoInputGuard


@dataclass(frozen=True, slots=True)
class World:
    store: OwnerStore
    stage: Stage
    events: EventSink
    clock: Clock
    wakes: Wakes
    crash: Crash
    guard: InputGuard = field(default_factory=NoInputGuard)
