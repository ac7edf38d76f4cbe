"""The jobs of a storm, all made beforehand from the seed: who says what to whom, when, by which door, and how often.

Each session has a line: what is published in it, one after the other, each when the one before is confirmed. Some are
published again under their id, and some are no jobs at all; those must end among the rejected ones, and nowhere else.
"""

from __future__ import annotations

import enum
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.storm.options import Options
from scripts.storm.texts import TOOLS, Wish

TOO_LARGE = 300 * 1024
_TENANTS = ("", "", "", "acme")
_ALONE = 0.55
"""Share of messages that come by themselves; the others follow one another closely, while the agent works."""
_BURST_MAX = 4
_AGAIN = 0.04
_BAD = 0.015


class Agent(enum.StrEnum):
    """By what becomes of a message that finds its session busy."""

    FOLLOWS = "follows"
    STEERED = "steered"
    COLLECTS = "collects"
    INTERRUPTED = "interrupted"


class Door(enum.StrEnum):
    """By which way a job comes to the queue. `BARE`: its id stands in the AMQP properties alone."""

    PRODUCER = "producer"
    TOPIC = "topic"
    BARE = "bare"
    ENVELOPE = "envelope"


_AGENTS = (Agent.FOLLOWS, Agent.FOLLOWS, Agent.STEERED, Agent.STEERED, Agent.COLLECTS, Agent.INTERRUPTED)
_CHANNELS = ("web", "web", "web", "web", "sure", None)
_DOORS = (Door.PRODUCER,) * 7 + (Door.TOPIC, Door.BARE, Door.ENVELOPE)


@dataclass(frozen=True, slots=True)
class Job:
    """`number` counts the jobs of a session, from 1. `queue_mode` None: as the agent has it."""

    tenant: str
    session: str
    number: int
    agent: str
    text: str
    channel: str | None
    queue_mode: str | None
    door: Door

    @property
    def id(self) -> str:
        return f"{Wish.read(self.text).label}-id"

    @property
    def fields(self) -> dict[str, Any]:
        """The job as the contract has it, without its id."""
        given = {
            "session": self.session,
            "agent": self.agent,
            "text": self.text,
            "tenant": self.tenant or None,
            "channel": self.channel,
            "queue_mode": self.queue_mode,
        }
        return {name: value for name, value in given.items() if value is not None}

    def body(self) -> bytes:
        """For a door that takes bytes."""
        if self.door is Door.BARE:
            return json.dumps(self.fields).encode()
        job = {"id": self.id, **self.fields}
        return json.dumps(_envelope(job) if self.door is Door.ENVELOPE else job).encode()


@dataclass(frozen=True, slots=True)
class Rubbish:
    """What must be kept aside, as it came. `message_id` is its name in the books; `field` is what the error names."""

    message_id: str
    why: str
    field: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Publish:
    """`at_s` from the beginning of the storm, or as soon after that as the one before it is confirmed."""

    at_s: float
    what: Job | Rubbish


@dataclass(frozen=True, slots=True)
class Line:
    tenant: str
    session: str
    publishes: Sequence[Publish]

    @property
    def jobs(self) -> list[Job]:
        """Each once, in order."""
        return list(dict.fromkeys(publish.what for publish in self.publishes if isinstance(publish.what, Job)))

    @property
    def rubbish(self) -> list[Rubbish]:
        return [publish.what for publish in self.publishes if isinstance(publish.what, Rubbish)]


def make_lines(options: Options) -> list[Line]:
    """The same for the same options."""
    dice = random.Random(f"jobs {options.seed}")
    share, more = divmod(options.jobs, options.sessions)
    return [_line(dice, options, place, share + (place < more)) for place in range(options.sessions)]


def _line(dice: random.Random, options: Options, place: int, jobs: int) -> Line:
    # A tenant's sessions have the names of the platform's: only both together say which is meant.
    tenant = _TENANTS[place % len(_TENANTS)]
    session = f"s{place - (1 if tenant else 0):03d}"
    agent, channel = dice.choice(_AGENTS), dice.choice(_CHANNELS)
    times = list(_times(dice, jobs, options.seconds))
    publishes: list[Publish] = []
    for number, at_s in enumerate(times, 1):
        job = _job(dice, tenant, session, number, agent, channel)
        publishes.append(Publish(at_s, job))
        if dice.random() < _AGAIN:
            earlier = dice.choice([publish.what for publish in publishes if isinstance(publish.what, Job)])
            publishes.append(Publish(at_s, earlier))
        if dice.random() < _BAD:
            publishes.append(Publish(at_s, _rubbish(dice, job)))
    return Line(tenant, session, publishes)


def _times(dice: random.Random, jobs: int, seconds: float) -> Iterator[float]:
    sizes: list[int] = []
    while (left := jobs - sum(sizes)) > 0:
        sizes.append(1 if dice.random() < _ALONE else min(left, dice.randint(2, _BURST_MAX)))
    for begin, size in zip(sorted(dice.uniform(0, 0.97 * seconds) for _ in sizes), sizes, strict=True):
        at_s = begin
        for _ in range(size):
            yield at_s
            at_s += dice.expovariate(1 / 0.15)


def _job(dice: random.Random, tenant: str, session: str, number: int, agent: Agent, channel: str | None) -> Job:
    batches = tuple(
        tuple(dice.choice(TOOLS) for _ in range(dice.choice((1, 1, 1, 2, 2, 3))))
        for _ in range(dice.choice((0, 1, 1, 2, 3)))
    )
    label = f"{tenant}:{session}#{number}" if tenant else f"{session}#{number}"
    return Job(
        tenant,
        session,
        number,
        agent,
        str(Wish(label, batches)),
        channel,
        dice.choice((None,) * 6 + ("followup", "steer")),
        dice.choice(_DOORS),
    )


def _rubbish(dice: random.Random, after: Job) -> Rubbish:
    """`after` is the job that it follows in its line."""
    name = f"bad-{Wish.read(after.text).label}"
    good: dict[str, Any] = {"id": name, **after.fields, "text": f"{name}: "}
    kinds: Mapping[str, tuple[str, bytes]] = {
        "it is not JSON": ("body", f'{{"session": "{name}", '.encode()),
        "it is too large": ("body", json.dumps({**good, "text": "x" * TOO_LARGE}).encode()),
        "it names no agent that there is": ("agent", json.dumps({**good, "agent": "nobody"}).encode()),
        "it has a field that no job has": ("queue", json.dumps({**good, "queue": "insika.turns"}).encode()),
        "its text is empty": ("text", json.dumps({**good, "text": ""}).encode()),
        "its id was given to another text": ("id", json.dumps({**good, "id": after.id}).encode()),
    }
    why = dice.choice(list(kinds))
    return Rubbish(name, why, *kinds[why])


def _envelope(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """As a Python program with dramatiq would send it. Nothing in it but the job is to be obeyed."""
    return {
        "queue_name": "nowhere",
        "actor_name": "accept_turn",
        "args": [job],
        "kwargs": {},
        "options": {"eta": 1, "delay": 86_400_000, "max_retries": 1000},
        "message_id": "00000000-0000-0000-0000-000000000000",
        "message_timestamp": 0,
    }
