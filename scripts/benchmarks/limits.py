"""What a turn waits for at its beginning, the edge limits' checks and its model's circuit, beside a bare round trip to
the same Redis."""

from __future__ import annotations

import itertools
from pathlib import Path

from private_services import PrivateServices

from benchmarks.measure import Figure, Work, against
from insika.clock import SystemClock
from insika.coordination.port import Coordination
from insika.coordination.redis.connection import connect
from insika.coordination.redis.coordination import RedisCoordination
from insika.limits.windows import TokenCeiling, TurnAttempt, WindowCheck
from insika.reliability.circuit import Circuit, Closed

ROUNDS, EACH = 200, 20
SESSIONS = 1_000


async def figures(services: PrivateServices, root: Path) -> list[Figure]:
    url = services.redis.url
    async with RedisCoordination(url, SystemClock(), namespace="bench") as coordination, connect(url) as bare:

        async def ping() -> None:
            await bare.ping()

        works = {
            "limits.edge_check": _beginning(coordination, agents=0),
            "limits.edge_checks_2": _beginning(coordination, agents=1),
            "limits.edge_checks_3": _beginning(coordination, agents=2),
            "limits.circuit_closed": _circuit(coordination),
        }
        measured = [
            await against(name, work, ping, rounds=ROUNDS, each=EACH, note="floor: a PING")
            for name, work in works.items()
        ]
        if coordination.health.degraded:
            raise RuntimeError(f"not all of it was Redis: {coordination.health.reason}")
    return measured


def _beginning(coordination: Coordination, agents: int) -> Work:
    """A turn begins: its session's rate, and the ceiling of so many agents."""
    numbers = itertools.count()
    ceilings = [TokenCeiling("", f"agent-{number}", 10**9, 86_400) for number in range(agents)]

    async def run() -> None:
        number = next(numbers)
        attempt = TurnAttempt("", f"session-{number % SESSIONS}", f"turn-{number}", 1_000_000, 60)
        checks: list[WindowCheck] = [attempt, *ceilings]
        if any(reading.breached for reading in await coordination.windows.admit(checks)):
            raise AssertionError("nothing was to be breached")

    return run


def _circuit(coordination: Coordination) -> Work:
    circuit = Circuit("", "offline/bench")

    async def run() -> None:
        if await coordination.circuits.before(circuit, 30.0) != Closed():
            raise AssertionError("it was to be closed")

    return run
