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
OWNED = ("mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")


@pytest.fixture
def received():
    return []


@pytest.fixture
async def receiver(received):
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield receiver


def diary(folder):
    return {kind: len(list(diary_entries(folder, kind))) for kind in ("tool", "request")}


def written(folder):
    """All that an owner can have written, but for the lease itself."""
    tables = {table: rows(folder / "insika.db", f"SELECT * FROM {table}") for table in OWNED}
    sessions = (
        "SELECT id, due_at, mail_seq, log_seq, lane_seq, waiting, open_calls, turn_id, turn_key, deaths FROM sessions"
    )
    return tables | {"sessions": rows(folder / "insika.db", sessions)}


async def nothing_more_than_was_begun(stale, folder, point, late_requests):
    """Of the process that has lost its session, once it runs again."""
    before, stands = diary(folder), written(folder)
    stale.goes_on()
    await stale.idle()
    after = diary(folder)
    assert written(folder) == stands
    assert after["tool"] - before["tool"] == (1 if point is CrashPoint.CALL_STARTED else 0)
    assert after["request"] - before["request"] <= late_requests
    assert not [told for told in stale.told if told["event"] in ("turn_completed", "turn_failed")]
    assert "session lost" in stale.log


async def all_well_in_the_end(folder, stale, received):
    """It works on; and nothing that it did shows."""
    await stale.send(JOBS[1])
    await stale.hears("turn_completed", session="ben")
    await settled(folder / "insika.db")
    stale.signal(signal.SIGTERM)
    assert await stale.ends() == 0
    evidence = Evidence.gathered(folder, received)
    judge(evidence, JOBS, gone=1, failures=())
    assert uncertain(evidence) == set()
    assert len(received) == 2


@pytest.mark.parametrize("point", SOME)
async def test_an_owner_that_slept_past_its_lease_does_nothing_more(tmp_path, receiver, received, point):
    environment = configured(tmp_path, receiver.url, lease_s=LEASE_S)
    async with Child(tmp_path, environment, point=point, by="SIGSTOP") as stale:
        stale.command(take=JOBS[0])
        await stale.stopped_at_its_point()
        async with await Embedded.open(environment, shop_parts(tmp_path, SystemClock(), Gates(held=False))):
            await settled(tmp_path / "insika.db")
        await nothing_more_than_was_begun(stale, tmp_path, point, late_requests=0)
        await all_well_in_the_end(tmp_path, stale, received)


@pytest.mark.parametrize("point", MID_TURN)
async def test_an_owner_that_cannot_know_of_its_loss_writes_nothing_more(tmp_path, receiver, received, point):
    """The heir's clock is ahead, so that the lease still looks good to the one who has lost it; and the heir has loaded
    the turn and is held there: nothing but the fence stands between the two."""
    environment = configured(tmp_path, receiver.url)
    heir = Child(tmp_path, environment, "heir", wait=True, ahead_s=OUTLIVES_EVERYTHING_S, point="loaded", by="hold")
    async with Child(tmp_path, environment, point=point, by="SIGSTOP") as stale, heir:
        stale.command(take=JOBS[0])
        await stale.stopped_at_its_point()
        await heir.hears("waiting")
        heir.command(go=True)
        await heir.hears("held")
        begun = point in (CrashPoint.TURN_STARTED, CrashPoint.BOUNDARY_CROSSED)
        await nothing_more_than_was_begun(stale, tmp_path, point, late_requests=int(begun))
        heir.goes_on()
        await heir.hears("turn_completed", session="ana")
        await all_well_in_the_end(tmp_path, stale, received)


@pytest.mark.parametrize("point", [CrashPoint.DELIVERY_CLAIMED, CrashPoint.DELIVERY_SENT])
async def test_a_deliverer_that_slept_past_its_claim_sends_once_and_says_so_late(tmp_path, receiver, received, point):
    environment = configured(tmp_path, receiver.url)
    state = "SELECT state FROM outbox"
    async with Child(tmp_path, environment, point=point, by="SIGSTOP") as stale:
        stale.command(take=JOBS[0])
        await stale.stopped_at_its_point()
        ahead = AheadClock(OUTLIVES_EVERYTHING_S)
        async with await Embedded.open(environment, shop_parts(tmp_path, ahead, Gates(held=False))):
            await settled(tmp_path / "insika.db")
        assert rows(tmp_path / "insika.db", state) == [{"state": "uncertain"}]
        stale.goes_on()
        await until(lambda: rows(tmp_path / "insika.db", state) == [{"state": "delivered"}], "for the late news")
        stale.signal(signal.SIGTERM)
        assert await stale.ends() == 0
    judge(Evidence.gathered(tmp_path, received), JOBS[:1], gone=0, failures=())
    assert len(received) == 1
