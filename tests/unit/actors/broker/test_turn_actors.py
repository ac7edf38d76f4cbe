"""The actors of ingress, called as dramatiq calls them: on a thread that is not the loop's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from actors.broker.handing_back import HandBack
from actors.broker.messages import Delivery
from actors.broker.turn_actors import TurnActors


class ScriptedIntake:
    """Notes what it is asked, in order. `hangs` never answers; `error` is raised by whatever is tried."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hangs = False
        self.going_back: frozenset[int] = frozenset()
        self.error: Exception | None = None
        self.outage = self
        self.reached = asyncio.Event()

    def began(self) -> None:
        self.asked.append("outage")

    async def take_all(self, deliveries: Sequence[Delivery]) -> frozenset[int]:
        await self._note("take" if len(deliveries) == 1 else f"take {len(deliveries)}")
        return frozenset(range(len(deliveries))) - self.going_back

    async def keep_suspect(self, delivery: Delivery) -> int:
        await self._note("keep suspect")
        return 7

    async def try_suspect(self, delivery: Delivery, number: int) -> None:
        await self._note(f"try suspect {number}")

    async def keep_dead(self, delivery: Delivery) -> None:
        await self._note("keep dead")

    async def _note(self, what: str) -> None:
        self.asked.append(what)
        self.reached.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error


@pytest.fixture
def intake() -> ScriptedIntake:
    return ScriptedIntake()


def actors_of(intake: ScriptedIntake, **options: Any) -> TurnActors:
    return TurnActors(intake, asyncio.get_running_loop(), **options)  # type: ignore[arg-type]


async def test_an_actor_returns_when_the_loop_has_decided(intake: ScriptedIntake) -> None:
    actors = actors_of(intake)
    await asyncio.to_thread(actors.accept_turn, [Delivery(b"{}")])
    await asyncio.to_thread(actors.keep_dead, Delivery(b"{}"))
    assert intake.asked == ["take", "keep dead"]


async def test_what_goes_back_goes_back(intake: ScriptedIntake) -> None:
    intake.error = HandBack("the store does not answer")
    with pytest.raises(HandBack, match="the store does not answer"):
        await asyncio.to_thread(actors_of(intake).accept_turn, [Delivery(b"{}")])


async def test_a_suspect_is_settled_between_being_kept_and_being_tried(intake: ScriptedIntake) -> None:
    def settle_now() -> bool:
        intake.asked.append("settled")
        return True

    await asyncio.to_thread(actors_of(intake).accept_turn, [Delivery(b"{}", deliveries=3, settle_now=settle_now)])
    assert intake.asked == ["keep suspect", "settled", "try suspect 7"]


async def test_a_suspect_that_the_broker_may_send_again_is_not_tried(intake: ScriptedIntake) -> None:
    suspect = Delivery(b"{}", deliveries=3, settle_now=lambda: False)
    with pytest.raises(HandBack):
        await asyncio.to_thread(actors_of(intake).accept_turn, [suspect])
    assert intake.asked == ["keep suspect"]


async def test_a_loop_that_does_not_answer_is_not_waited_for_for_ever(intake: ScriptedIntake) -> None:
    intake.hangs = True
    with pytest.raises(HandBack, match=r"nothing was decided within 0\.05 s"):
        await asyncio.to_thread(actors_of(intake, bound_s=0.05).accept_turn, [Delivery(b"{}")])
    await asyncio.sleep(0)
    assert intake.asked == ["take", "outage"]
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    await asyncio.gather(*left, return_exceptions=True)
    assert all(task.cancelled() for task in left)


def test_a_loop_that_has_ended_takes_nothing(intake: ScriptedIntake) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(HandBack, match="this process is ending"):
        TurnActors(intake, loop).accept_turn([Delivery(b"{}")])  # type: ignore[arg-type]
    assert intake.asked == []


async def test_work_that_is_cut_with_the_loop_goes_back(intake: ScriptedIntake) -> None:
    intake.hangs = True
    taking = asyncio.create_task(asyncio.to_thread(actors_of(intake).accept_turn, [Delivery(b"{}")]))
    await intake.reached.wait()
    for task in asyncio.all_tasks() - {asyncio.current_task(), taking}:
        task.cancel()
    with pytest.raises(HandBack, match="this process is ending"):
        await taking


async def test_what_came_together_is_taken_together_and_what_goes_back_is_named(intake: ScriptedIntake) -> None:
    batch = [Delivery(b"{}"), Delivery(b"{}"), Delivery(b"{}")]
    await asyncio.to_thread(actors_of(intake).accept_turn, batch)
    assert intake.asked == ["take 3"]
    intake.going_back = frozenset({1})
    with pytest.raises(HandBack) as handed_back:
        await asyncio.to_thread(actors_of(intake).accept_turn, batch)
    assert handed_back.value.dealt == {0, 2}
