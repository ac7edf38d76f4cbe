"""The instants of a turn at which a process may die, with its models at vendors: by an exception, and by SIGKILL; also
while a stream is under way.

What must hold afterwards is in `verdict`, and, by the vendors' eyes, in `hosted`.
"""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager

import pytest

from actors.embedded import Embedded
from actors.receiver import Journal, Receiver
from insika.crash_points import CrashPoint
from tests.faults.child import Child
from tests.faults.hosted import HOSTED, OPENAI, asked_at, judge_requests, reasoning_of_its_turn, vendor_named
from tests.faults.lives import OUTLIVES_EVERYTHING_S, AheadClock, Death
from tests.faults.scenes import MUST_FAIL, OF_TURNS, send, story
from tests.faults.shop import SECRET, TWO_AT_ONCE, Gates, configured, shop_parts
from tests.faults.town import Town
from tests.faults.verdict import Evidence, delivering, every_conversation_is_valid, judge, uncertain
from tests.vendors import serving
from tests.vendors.troubles import Stalls

IN_A_BATCH = (
    CrashPoint.STEP_APPENDED,
    CrashPoint.CALL_STARTED,
    CrashPoint.CALL_RAN,
    CrashPoint.CALL_RECORDED,
    CrashPoint.BATCH_RAN,
    CrashPoint.BOUNDARY_CROSSED,
)
"""What was thought before these calls must be said by another process."""
AT_A_MODEL = (
    CrashPoint.TURN_STARTED,
    CrashPoint.MODEL_ANSWERED,
    *IN_A_BATCH,
    CrashPoint.ANSWER_READY,
    CrashPoint.COMMITTED,
    CrashPoint.TURN_ENDED,
)
"""Where it matters who speaks."""
NOT_WRITTEN = (CrashPoint.MODEL_ANSWERED, CrashPoint.CALL_RAN, CrashPoint.BATCH_RAN, CrashPoint.ANSWER_READY)


@pytest.fixture(params=HOSTED)
def name(request):
    return request.param


@pytest.fixture
async def vendor(name):
    async with serving(vendor_named(name)) as vendor:
        yield vendor


@pytest.fixture
async def town(tmp_path, name, vendor):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield Town(tmp_path, receiver.url, received, TWO_AT_ONCE, asked_at(name, vendor))


@pytest.mark.parametrize("name", [*HOSTED, OPENAI], indirect=True)
async def test_the_story_meets_every_point_and_is_told_in_as_many_requests_as_steps(town, vendor):
    death = Death()
    await town.first_life(death)
    assert set(death.met) == set(OF_TURNS)
    evidence = town.judge()
    judge_requests(vendor, evidence)
    assert len(vendor.requests) == len(evidence.requests) == len(evidence.model_calls)
    assert evidence.of_turn("ana-2") == evidence.of_turn("ana-1"), "it was not steered"


@pytest.mark.parametrize(
    ("point", "nth"),
    [*[(point, 1) for point in AT_A_MODEL], *[(point, 2) for point in NOT_WRITTEN]],
)
async def test_a_death_spoils_nothing(town, vendor, point, nth):
    death = Death(point, nth)
    await town.first_life(death)
    assert death.came.is_set()
    asked = len(vendor.requests)
    await town.next_life()
    judge_requests(vendor, town.judge())
    thought = [words for seen in vendor.requests[asked:] for words in reasoning_of_its_turn(seen)]
    assert thought or point not in IN_A_BATCH, "nobody went on with what had been thought"


@pytest.mark.parametrize("second", [CrashPoint.MODEL_ANSWERED, CrashPoint.CALL_RAN, CrashPoint.ANSWER_READY])
async def test_a_death_in_the_midst_of_recovery_spoils_nothing(town, vendor, second):
    await town.first_life(Death(CrashPoint.CALL_RAN))
    await town.next_life(Death(second))
    await town.next_life()
    judge_requests(vendor, town.judge())


@asynccontextmanager
async def shop_at(folder, name, vendor):
    """Its environment, and what its receiver has taken."""
    received = []
    journal = Journal(folder / "received.jsonl")
    async with Receiver([SECRET], journal=journal, on_received=received.append) as receiver:
        yield configured(folder, receiver.url, asked=asked_at(name, vendor)), received


async def inherited(folder, environment):
    """Another process goes on, once the dead one's lease is over."""
    every_conversation_is_valid(Evidence.gathered(folder, []), finished=False)
    cut = delivering(folder / "insika.db")
    parts = shop_parts(folder, AheadClock(OUTLIVES_EVERYTHING_S), Gates(held=False))
    async with await Embedded.open(environment, parts) as insika:
        await send(insika, story(TWO_AT_ONCE))
    return cut


def judged(folder, received, vendor, cut):
    evidence = Evidence.gathered(folder, received)
    judge(evidence, story(TWO_AT_ONCE), gone=1, failures=MUST_FAIL)
    judge_requests(vendor, evidence)
    assert uncertain(evidence) == cut
    return evidence


@pytest.mark.parametrize(
    "point",
    [
        CrashPoint.MODEL_ANSWERED,
        CrashPoint.STEP_APPENDED,
        CrashPoint.CALL_RAN,
        CrashPoint.BOUNDARY_CROSSED,
        CrashPoint.ANSWER_READY,
        CrashPoint.COMMITTED,
    ],
)
async def test_a_killed_process_spoils_nothing(tmp_path, name, vendor, point):
    async with shop_at(tmp_path, name, vendor) as (environment, received):
        async with Child(tmp_path, environment, story=TWO_AT_ONCE, point=point) as child:
            assert await child.ends() == -signal.SIGKILL, child.log
        cut = await inherited(tmp_path, environment)
    judged(tmp_path, received, vendor, cut)


STALLED = {"before the first event": 0, "after the first event": 1, "in the midst": 12}


@pytest.mark.parametrize("after", STALLED.values(), ids=STALLED)
async def test_a_process_that_is_killed_while_a_stream_is_under_way_spoils_nothing(tmp_path, name, vendor, after):
    """The stream that hangs is that of a step behind a batch: what was thought before it goes along again."""

    hung = []

    def stalls_once(seen):
        if hung or not any(reasoning_of_its_turn(seen)):
            return None
        hung.append(seen)
        return Stalls(after)

    vendor.choose = stalls_once
    async with shop_at(tmp_path, name, vendor) as (environment, received):
        async with Child(tmp_path, environment, story=TWO_AT_ONCE) as child:
            await vendor.until(lambda: hung and hung[0].status == 200 and hung[0].events == after)
            child.signal(signal.SIGKILL)
            assert await child.ends() == -signal.SIGKILL
        await vendor.until(lambda: hung[0].gone)
        cut = await inherited(tmp_path, environment)
    evidence = judged(tmp_path, received, vendor, cut)
    again = [seen for seen in vendor.requests if seen.raw == hung[0].raw]
    assert len(again) == 2, "it was not asked anew, from the same log"
    lost = [row for row in evidence.model_calls if row["state"] == "estimated" and row["input"]]
    assert lost, "the request that was lost is booked at nothing"
