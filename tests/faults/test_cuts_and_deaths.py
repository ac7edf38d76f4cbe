"""Turns that are cancelled or interrupted by processes that die on the way: what was acknowledged is a fact, what was
not may still come about, and a turn that was cut delivers nothing."""

from __future__ import annotations

import pytest

from actors.receiver import Receiver
from insika.storage.rows import Verdict
from tests.faults.lives import OUTLIVES_EVERYTHING_S, Death, clock_of_now, live
from tests.faults.scenes import OF_TURNS
from tests.faults.shop import SECRET, TWO_AT_ONCE, configured, job, raw
from tests.faults.verdict import Evidence, delivering, judge, settled, uncertain

RUNNING = job("ana", "ana-1", "A1: charge look_up@door | letter", TWO_AT_ONCE)
QUEUED = job("ana", "ana-2", "A2: charge", TWO_AT_ONCE, queue_mode="followup")
LAST = job("ana", "ana-3", "A3: letter | charge", TWO_AT_ONCE, queue_mode="followup")
NEWER = {**LAST, "queue_mode": "interrupt"}


class Operator:
    """Somebody who sends jobs and cuts turns, and who notes what was acknowledged."""

    def __init__(self, *, interrupts: bool) -> None:
        self.interrupts = interrupts
        self.jobs = [RUNNING, QUEUED, NEWER if interrupts else LAST]
        self.turns: dict[str, str] = {}
        self.cut: set[str] = set()

    async def act(self, insika, gates):
        """Also again, after a death of which he knows nothing."""
        with insika.events.subscribe() as events:
            first = await self._send(insika, RUNNING)
            await self._send(insika, QUEUED)
            if first.verdict is Verdict.ACCEPTED:
                async for event in events:
                    if event.type == "tool_called" and event.data["tool"] == "look_up":
                        break
        if not self.interrupts:
            for name in ("ana-1", "ana-2"):
                if await insika.store.cancel(self.turns[name], request_id=f"cancel-{name}") is not None:
                    self.cut.add(name)
        if (await self._send(insika, self.jobs[-1])).verdict is Verdict.INTERRUPTING:
            self.cut.add("ana-1")
        gates.open("door")
        insika.bus.session(1)
        await settled(insika.store.database.path)

    async def _send(self, insika, job):
        taken = await insika.ingress.take(raw(job))
        self.turns[job["id"]] = taken.turn_id
        return taken


@pytest.fixture
async def shop(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield configured(tmp_path, receiver.url), received


@pytest.mark.parametrize("interrupts", [False, True], ids=["cancels", "interrupts"])
@pytest.mark.parametrize("point", [None, *OF_TURNS])
async def test_what_was_cut_stays_cut_and_the_rest_is_done(tmp_path, shop, point, interrupts):
    environment, received = shop
    operator, clock, death = Operator(interrupts=interrupts), clock_of_now(), Death(point)
    await live(tmp_path, environment, operator.act, clock=clock, death=death, gates_held=True)
    assert death.came.is_set() is (point is not None)
    maybe_posted = delivering(tmp_path / "insika.db")
    clock.advance(OUTLIVES_EVERYTHING_S)
    await live(tmp_path, environment, operator.act, clock=clock)
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, operator.jobs, gone=1, failures=())
    assert uncertain(evidence) == maybe_posted
    states = {each["id"]: evidence.of_turn(each["id"])["state"] for each in operator.jobs}
    assert {name for name, state in states.items() if state == "cancelled"} >= operator.cut
    assert states["ana-3"] == "completed"
    if point is None:
        assert operator.cut == ({"ana-1"} if interrupts else {"ana-1", "ana-2"})


async def test_a_message_that_was_withdrawn_is_not_said(tmp_path, shop):
    environment, received = shop
    operator = Operator(interrupts=False)
    await live(tmp_path, environment, operator.act, clock=clock_of_now(), gates_held=True)
    evidence = Evidence.gathered(tmp_path, received)
    assert [message.content for message in evidence.conversation(1) if message.role == "user"] == [
        RUNNING["text"],
        LAST["text"],
    ]
