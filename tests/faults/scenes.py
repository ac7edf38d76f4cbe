"""A story with everything in it, for processes to die in: two sessions, batches that change the world, one that is
steered, turns that fail, answers that are delivered; told once by whoever dies, and told again by the producer after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from actors.embedded import Embedded
from tests.faults.shop import ONE_AT_A_TIME, TWO_AT_ONCE, Gates, job, raw
from tests.faults.verdict import settled

MUST_FAIL = frozenset({"ana-3", "ana-5", "ben-2", "ben-4"})


def story(agent: str) -> Sequence[Mapping[str, Any]]:
    """The jobs, in the order in which their producers send them."""
    return [
        job("ana", "ana-1", "A1: charge look_up@door | charge", agent),
        job("ben", "ben-1", "B1: look_up letter | charge", agent),
        job("ana", "ana-2", "A2: reserve charge weigh | letter", agent),
        job("ana", "ana-3", "A3: charge reserve | fail", agent, queue_mode="followup"),
        job("ben", "ben-2", "B2: fail", agent, queue_mode="followup"),
        job("ana", "ana-4", "A4: letter", agent, queue_mode="followup"),
        job("ben", "ben-3", "B3", agent, queue_mode="followup"),
        job("ana", "ana-5", "A5: fail", agent, queue_mode="followup"),
        job("ben", "ben-4", "B4: fail", agent, queue_mode="followup"),
    ]


BOTH_WAYS = (ONE_AT_A_TIME, TWO_AT_ONCE)


async def tell(insika: Embedded, gates: Gates, agent: str) -> None:
    """The first time: the third message comes while the first one's turn waits at the door, and steers it."""
    first, second, steer, *rest = story(agent)
    with insika.events.subscribe() as events:
        await insika.ingress.take(raw(first))
        await insika.ingress.take(raw(second))
        async for event in events:
            if event.type == "tool_called" and event.session == "ana" and event.data["tool"] == "look_up":
                break
    await insika.ingress.take(raw(steer))
    gates.open("door")
    for following in rest:
        await insika.ingress.take(raw(following))
    await settled(insika.store.database.path)


async def send(insika: Embedded, jobs: Iterable[Mapping[str, Any]]) -> None:
    """All of them, in order; also again, by producers who have not heard what became of their jobs."""
    for each in jobs:
        await insika.ingress.take(raw(each))
    await settled(insika.store.database.path)
