"""Fault 18: a process that is stopped by SIGSTOP past its lease while another takes over, and then goes on.

Its write, its next tool and its answer come to nothing; only the one thing that it had written as begun, under the
lease, may still happen, once.
"""

from __future__ import annotations

import signal

import pytest

from actors.embedded import Embedded
from actors.receiver import Receiver
from insika.clock import SystemClock
from insika.crash_points import CrashPoint
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S, AheadClock
from tests.faults.shop import SECRET, Gates, configured, diary_entries, job, shop_parts
from tests.faults.verdict import Evidence, judge, rows, settled, uncertain, until

JOBS = [job("ana", "ana-1", "A1: charge letter | charge letter"), job("ben", "ben-1", "B1: charge")]
MID_TURN = (
    CrashPoint.TURN_STARTED,
    CrashPoint.MODEL_ANSWERED,
    CrashPoint.STEP_APPENDED,
    CrashPoint.CALL_STARTED,
    CrashPoint.CALL_RAN,
    CrashPoint.CALL_RECORDED,
    CrashPoint.BATCH_RAN,
    CrashPoint.BOUNDARY_CROSSED,
    CrashPoint.ANSWER_READY,
)
SOME = (CrashPoint.TURN_STARTED, CrashPoint.CALL_STARTED, CrashPoint.CALL_RECORDED, CrashPoint.ANSWER_READY)
LEASE_S = 1.0


@pytest.fixture
def received():
    return []


@pytest.fixture
async def receiver(received):
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield receiver


async def taken_over(folder, environment, clock):
    """By this process, which ends what was begun. Answers how much was in the diary when it had."""
    async with await Embedded.open(environment, shop_parts(folder, clock, Gates(held=False))):
        await settled(folder / "insika.db")
    return {kind: len(list(diary_entries(folder, kind))) for kind in ("tool", "request")}


async def paused_and_overtaken(folder, environment, received, point, clock, late_requests):
    async with Child(folder, environment, point=point, signal="SIGSTOP") as child:
        child.command(take=JOBS[0])
        await child.stopped()
        before = await taken_over(folder, environment, clock)
        child.signal(signal.SIGCONT)
        await child.idle()
        late = {kind: list(diary_entries(folder, kind))[count:] for kind, count in before.items()}
        assert len(late["tool"]) == (1 if point is CrashPoint.CALL_STARTED else 0)
        assert len(late["request"]) <= late_requests
        assert not [told for told in child.told if told["event"] in ("turn_completed", "turn_failed")]
        assert "session lost" in child.log
        await child.send(JOBS[1])
        await child.hears("delivery_delivered", session="ben")
        child.signal(signal.SIGTERM)
        assert await child.ends() == 0
    evidence = Evidence.gathered(folder, received)
    judge(evidence, JOBS, gone=1, failures=())
    assert uncertain(evidence) == set()
    assert len(received) == 2


@pytest.mark.parametrize("point", SOME)
async def test_an_owner_that_slept_past_its_lease_does_nothing_more(tmp_path, receiver, received, point):
    environment = configured(tmp_path, receiver.url, lease_s=LEASE_S)
    await paused_and_overtaken(tmp_path, environment, received, point, SystemClock(), late_requests=0)


@pytest.mark.parametrize("point", MID_TURN)
async def test_an_owner_that_cannot_know_of_its_loss_writes_nothing_more(tmp_path, receiver, received, point):
    """The other's clock is ahead, so that the lease looks good still to the one who has lost it."""
    environment = configured(tmp_path, receiver.url)
    clock = AheadClock(OUTLIVES_EVERYTHING_S)
    begun = point in (CrashPoint.TURN_STARTED, CrashPoint.BOUNDARY_CROSSED)
    await paused_and_overtaken(tmp_path, environment, received, point, clock, late_requests=1 if begun else 0)


@pytest.mark.parametrize("point", [CrashPoint.DELIVERY_CLAIMED, CrashPoint.DELIVERY_SENT])
async def test_a_deliverer_that_slept_past_its_claim_sends_once_and_says_so_late(tmp_path, receiver, received, point):
    environment = configured(tmp_path, receiver.url)
    state = "SELECT state FROM outbox"
    async with Child(tmp_path, environment, point=point, signal="SIGSTOP") as child:
        child.command(take=JOBS[0])
        await child.stopped()
        await taken_over(tmp_path, environment, AheadClock(OUTLIVES_EVERYTHING_S))
        assert rows(tmp_path / "insika.db", state) == [{"state": "uncertain"}]
        child.signal(signal.SIGCONT)
        await until(lambda: rows(tmp_path / "insika.db", state) == [{"state": "delivered"}], "for the late news")
        child.signal(signal.SIGTERM)
        assert await child.ends() == 0
    judge(Evidence.gathered(tmp_path, received), JOBS[:1], gone=0, failures=())
    assert len(received) == 1
