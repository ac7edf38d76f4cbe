"""Every instant at which a process may die, by SIGKILL, in a process of its own; then another finishes.

What must hold afterwards is in `verdict`.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

import pytest

from actors.embedded import Embedded
from actors.receiver import Journal, Receiver
from insika.crash_points import CrashPoint
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S, AheadClock
from tests.faults.scenes import MUST_FAIL, OF_TURNS, send, story
from tests.faults.shop import ONE_AT_A_TIME, SECRET, TWO_AT_ONCE, Gates, configured, shop_parts
from tests.faults.verdict import Evidence, delivering, every_conversation_is_valid, judge, settled, uncertain

AROUND_THE_POST = (CrashPoint.DELIVERY_CLAIMED, CrashPoint.DELIVERY_SENT)
WRITTEN = (
    CrashPoint.ACCEPTED,
    CrashPoint.TURN_STARTED,
    CrashPoint.STEP_APPENDED,
    CrashPoint.CALL_STARTED,
    CrashPoint.CALL_RECORDED,
    CrashPoint.BOUNDARY_CROSSED,
    CrashPoint.COMMITTED,
)
"""Right after something of a turn has become durable."""
NOT_WRITTEN = (
    CrashPoint.MODEL_ANSWERED,
    CrashPoint.CALL_RAN,
    CrashPoint.BATCH_RAN,
    CrashPoint.ANSWER_READY,
    CrashPoint.DELIVERY_SENT,
)
"""Right after something has happened that nothing tells of yet."""


@pytest.fixture
def received():
    return []


@pytest.fixture
async def environment(tmp_path, received):
    journal = Journal(tmp_path / "received.jsonl")
    async with Receiver([SECRET], journal=journal, on_received=received.append) as receiver:
        yield configured(tmp_path, receiver.url)


async def killed(folder, environment, agent, point, nth):
    """What it had claimed of the outbox when it died."""
    async with Child(folder, environment, story=agent, point=point, nth=nth) as child:
        assert await child.ends() == -signal.SIGKILL, child.log
    every_conversation_is_valid(Evidence.gathered(folder, []), finished=False)
    return delivering(folder / "insika.db")


@pytest.mark.parametrize(
    ("point", "nth", "agent"),
    [
        *[(point, 1, TWO_AT_ONCE) for point in OF_TURNS],
        *[(point, 2, ONE_AT_A_TIME) for point in NOT_WRITTEN],
    ],
)
async def test_a_killed_process_spoils_nothing(tmp_path, environment, received, point, nth, agent):
    cut = await killed(tmp_path, environment, agent, point, nth)
    parts = shop_parts(tmp_path, AheadClock(OUTLIVES_EVERYTHING_S), Gates(held=False))
    async with await Embedded.open(environment, parts) as insika:
        await send(insika, story(agent))
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, story(agent), gone=1, failures=MUST_FAIL)
    assert uncertain(evidence) == cut
    assert cut or point not in AROUND_THE_POST


@pytest.mark.parametrize("point", WRITTEN)
async def test_two_processes_that_find_the_wreck_at_once_finish_it_together(tmp_path, environment, received, point):
    async with AsyncExitStack() as children:
        heirs = [
            await children.enter_async_context(
                Child(tmp_path, environment, f"heir-{number}", wait=True, ahead_s=OUTLIVES_EVERYTHING_S)
            )
            for number in range(2)
        ]
        cut = await killed(tmp_path, environment, TWO_AT_ONCE, point, 1)
        for heir in heirs:
            await heir.hears("waiting")
        for heir in heirs:
            heir.command(go=True)
        await asyncio.gather(*(heir.hears("ready") for heir in heirs))
        for place, job in enumerate(story(TWO_AT_ONCE)):
            await heirs[place % 2].send(job)
        await settled(tmp_path / "insika.db")
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, story(TWO_AT_ONCE), gone=1, failures=MUST_FAIL)
    assert uncertain(evidence) == cut
