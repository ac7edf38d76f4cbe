"""The faults of a storm, drawn beforehand from the seed: what happens to whom, and when.

Some faults end owners, or make their leases run out. Those come one after the other, with time between them: a turn
whose owners die three times is given up, and rightly so, and a storm is to show that no turn is given up that need not
be. The others come in between as they like. A kind comes again only when all others have come as well.
"""

from __future__ import annotations

import enum
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.storm.folder import CLAIM_S
from scripts.storm.options import Options


class Kind(enum.StrEnum):
    KILL = "SIGKILL"
    PAUSE = "SIGSTOP and SIGCONT"
    TERM = "SIGTERM"
    POSTGRES_FAST = "fast restart"
    POSTGRES_IMMEDIATE = "immediate restart"
    POSTGRES_KILL = "SIGKILL and start"
    POSTGRES_AWAY = "stopped, and started much later"
    POSTGRES_BACKENDS = "backends terminated"
    RABBITMQ_RESTART = "restart"
    RABBITMQ_KILL = "SIGKILL, start"
    RABBITMQ_CONNECTIONS = "connections closed"
    REDIS_FLUSH = "flush"
    REDIS_AWAY = "stop and start"


@dataclass(frozen=True, slots=True)
class Fault:
    """`at_s` from the beginning of the storm. `targets`: processes, by name, or one service. `lasts_s`: how long it is
    held still or kept away, where that is to be chosen."""

    at_s: float
    kind: Kind
    targets: tuple[str, ...]
    lasts_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Draw:
    """`often`: how many of this kind are in the bag. `roles`: one of these, or all of its processes at once."""

    kind: Kind
    roles: tuple[str, ...]
    lasts_s: tuple[float, float] = (0.0, 0.0)
    often: int = 1
    all_at_once: bool = False


@dataclass(frozen=True, slots=True)
class _Track:
    """Faults that follow one another, `apart_s` between the end of one and the beginning of the next. What takes long
    comes first at a `first_s` that a short storm does not reach."""

    first_s: float
    apart_s: tuple[float, float]
    draws: Sequence[_Draw]


def make_plan(options: Options) -> Sequence[Fault]:
    """In the order of time; the same for the same options."""
    dice = random.Random(f"plan {options.seed}")
    faults = [fault for track in _tracks(options.lease_s) for fault in _on(track, dice, options)]
    return sorted(faults, key=lambda fault: fault.at_s)


def write_plan(plan: Sequence[Fault], options: Options, path: Path) -> None:
    told = {"options": asdict(options), "faults": [asdict(fault) for fault in plan]}
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")


def _tracks(lease_s: float) -> Sequence[_Track]:
    beyond_the_lease = (1.2 * lease_s, 3 * lease_s)
    costs_owners = [
        _Draw(Kind.KILL, ("worker",), often=3),
        _Draw(Kind.KILL, ("worker",), all_at_once=True),
        _Draw(Kind.PAUSE, ("worker",), beyond_the_lease, often=2),
        _Draw(Kind.PAUSE, ("postgres",), (1.0, 2 * lease_s)),
        _Draw(Kind.POSTGRES_FAST, ("postgres",)),
        _Draw(Kind.POSTGRES_IMMEDIATE, ("postgres",)),
        _Draw(Kind.POSTGRES_KILL, ("postgres",)),
    ]
    costs_nobody = [
        _Draw(Kind.KILL, ("outbox", "ingress"), often=6),
        _Draw(Kind.KILL, ("clock",)),
        _Draw(Kind.PAUSE, ("outbox", "ingress"), beyond_the_lease, often=4),
        _Draw(Kind.TERM, ("worker", "outbox", "ingress", "clock"), often=5),
        _Draw(Kind.POSTGRES_BACKENDS, ("postgres",), often=2),
        _Draw(Kind.RABBITMQ_CONNECTIONS, ("rabbitmq",), often=2),
        _Draw(Kind.PAUSE, ("rabbitmq", "redis"), (1.0, 6.0), often=2),
        _Draw(Kind.REDIS_FLUSH, ("redis",)),
        _Draw(Kind.REDIS_AWAY, ("redis",), (0.0, 4.0), often=2),
    ]
    beyond_the_claim = [_Draw(Kind.PAUSE, ("outbox",), (CLAIM_S + 1.0, CLAIM_S + 6.0))]
    beyond_all_patience = [_Draw(Kind.POSTGRES_AWAY, ("postgres",), (14.0, 20.0))]
    takes_long = [_Draw(Kind.RABBITMQ_RESTART, ("rabbitmq",)), _Draw(Kind.RABBITMQ_KILL, ("rabbitmq",))]
    return (
        _Track(2.0, (lease_s + 3.5, lease_s + 5.5), costs_owners),
        _Track(1.0, (0.5, 2.5), costs_nobody),
        _Track(12.0, (25.0, 45.0), takes_long),
        _Track(6.0, (60.0, 90.0), beyond_the_claim),
        _Track(80.0, (100.0, 150.0), beyond_all_patience),
    )


def _on(track: _Track, dice: random.Random, options: Options) -> Iterator[Fault]:
    at_s, bag = track.first_s, list[_Draw]()
    while at_s < options.seconds:
        if not bag:
            bag = [draw for draw in track.draws for _ in range(draw.often)]
            dice.shuffle(bag)
        draw = bag.pop()
        lasts_s = round(dice.uniform(*draw.lasts_s), 2)
        yield Fault(round(at_s, 2), draw.kind, _targets(draw, dice, options), lasts_s)
        at_s += lasts_s + dice.uniform(*track.apart_s)


def _targets(draw: _Draw, dice: random.Random, options: Options) -> tuple[str, ...]:
    role = dice.choice(draw.roles)
    processes = options.processes.get(role)
    if processes is None:
        return (role,)
    names = [f"{role}-{number}" for number in range(1, processes + 1)]
    return tuple(names) if draw.all_at_once else (dice.choice(names),)
