"""What can be chosen about a storm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """`seconds`: how long jobs come and faults strike; then everything is left alone until it is at rest. `lease_s`,
    `drain_s`: as the processes are told; short, so that much happens in a storm."""

    seconds: float
    seed: int
    jobs: int
    sessions: int = 200
    workers: int = 2
    ingresses: int = 2
    outboxes: int = 2
    queue_type: str = "quorum"
    lease_s: float = 3.0
    drain_s: float = 3.0
    slots: int = 50

    @property
    def patience_s(self) -> float:
        """How long it may take until everything is at rest: what was in flight must be found out to be lost, and what
        has piled up must be run, also on a slow machine."""
        return 120.0 + self.jobs / 20

    @property
    def processes(self) -> Mapping[str, int]:
        """How many there are of each, by the name that the Procfile has for them."""
        return {"ingress": self.ingresses, "worker": self.workers, "outbox": self.outboxes, "clock": 1}
