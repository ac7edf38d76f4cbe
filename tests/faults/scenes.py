"""Stories with everything in them, for processes to die in; each told once by whoever dies, and told again after.

In the first there are two sessions, batches that change the world, one that is steered, turns that fail, answers that
are delivered. In the second an operator decides about calls, takes messages back, and holds a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from actors.control import Control
from actors.embedded import Embedded
from insika.clock import SystemClock
from insika.crash_points import CrashPoint
from insika.events import EventType
from insika.storage.rows import ApprovalDecision
from tests.faults.shop import CAREFUL, ONE_AT_A_TIME, TWO_AT_ONCE, Gates, job, raw
from tests.faults.verdict import BREATH_S, settled

OF_CONTROL = (
    CrashPoint.APPROVAL_ASKED,
    CrashPoint.TURN_SUSPENDED,
    CrashPoint.WAITING_RESUMED,
    CrashPoint.TURN_HELD,
    CrashPoint.MAIL_SETTLED,
)
OF_ROUTING = (CrashPoint.ROUTE_FOUND, CrashPoint.TURN_ROUTED, CrashPoint.TURN_REDIRECTED)
"""Of agents with routes, who have a story of their own."""
OF_TURNS = tuple(point for point in CrashPoint if point not in (*OF_CONTROL, *OF_ROUTING))
"""The points that the first story meets; the second meets them all."""

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
    """The first time: the third message comes while the first one's turn waits at the door, and steers it. With the
    careful agent it is the other story."""
    if agent == CAREFUL:
        await Operator(insika).rule(gates)
        return
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


RULED: Sequence[Mapping[str, Any]] = [
    job("ana", "ana-1", "A1: charge look_up charge | look_up@door | letter look_up@window | letter", CAREFUL),
    job("ana", "ana-2", "A2: letter", CAREFUL),
    job("ana", "ana-3", "A3: letter", CAREFUL),
    job("ana", "ana-4", "A4: look_up charge", CAREFUL),
]
"""The jobs of the second story. The second and the third are taken back."""
TAKEN_BACK = ("ana-2", "ana-3")
HOLDS = 2
COUNTED = 100
"""Far more often than this operator decides, holds and lets go on, also after deaths."""


class Operator:
    """Approves whatever waits for him; says everything again, after a death of which he knows nothing."""

    def __init__(self, insika: Embedded) -> None:
        self._insika = insika
        self._control = Control(insika.store, insika.bus, insika.bus, insika.events, SystemClock())

    async def rule(self, gates: Gates) -> None:
        """The first time: the session is held while a tool waits at a gate, and let go on once its turn was held."""
        with self._insika.events.subscribe() as events:
            await self._hand_in()
            async for event in events:
                match event.type:
                    case EventType.TURN_SUSPENDED:
                        await self._approve(at_most=1)
                    case EventType.TOOL_CALLED if event.data["tool"] == "look_up" and event.data["step"] in (2, 3):
                        await self._control.pause("ana")
                        gates.open("door" if event.data["step"] == 2 else "window")
                    case EventType.TURN_HELD:
                        await self._control.resume("ana")
                    case EventType.TURN_COMPLETED if event.data["steps"] == 2:
                        break
        await settled(self._insika.store.database.path)

    async def rule_again(self) -> None:
        await self._hand_in()
        await self._control.resume("ana")
        settling = asyncio.create_task(settled(self._insika.store.database.path))
        while not settling.done():
            await self._approve()
            await asyncio.wait({settling}, timeout=BREATH_S)
        await settling

    async def _hand_in(self) -> None:
        for each in RULED:
            await self._insika.ingress.take(raw(each))
        for id in TAKEN_BACK:
            await self._control.withdraw("ana", id, request_id=f"take back {id}")

    async def _approve(self, at_most: int = 100) -> None:
        for each in (await self._insika.store.approvals(open_only=True))[:at_most]:
            await self._control.decide(each.approval.id, ApprovalDecision.APPROVED, by="the operator")
