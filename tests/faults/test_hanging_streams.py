"""A model that says nothing, or no more: whoever interrupts or stops its turn need not wait for it, and its vendor sees
the connection close; whoever waits for it loses no session meanwhile."""

from __future__ import annotations

import signal

import pytest

from actors.embedded import Embedded
from actors.receiver import Receiver
from insika.clock import SystemClock
from tests.faults.child import Child
from tests.faults.hosted import HOSTED, asked_at, judge_requests, reasoning_of_its_turn, vendor_named
from tests.faults.shop import SECRET, TWO_AT_ONCE, Gates, configured, job, raw, shop_parts
from tests.faults.verdict import Evidence, judge, rows, settled, until
from tests.vendors import serving
from tests.vendors.troubles import Stalls, Waits

JOB = job("ana", "ana-1", "A1: charge | letter", TWO_AT_ONCE)
NEWER = job("ana", "ana-2", "A2: charge", TWO_AT_ONCE, queue_mode="interrupt")
HANGING = {
    "before it begins": Waits(),
    "behind its headers": Waits(headers_first=True),
    "in its midst": Stalls(9),
    "with pings": Stalls(9, pings=True),
}
LEASE_S = 3.0


class Hangs:
    """Of the vendor's requests the first that brings results."""

    def __init__(self, trouble):
        self._trouble = trouble
        self.request = None

    def __call__(self, seen):
        if self.request is None and any(reasoning_of_its_turn(seen)):
            self.request = seen
            return self._trouble
        return None

    @property
    def holds(self):
        """It has got as far as it goes."""
        events = self._trouble.after if isinstance(self._trouble, Stalls) else 0
        return self.request is not None and self.request.events == events

    @property
    def gone(self):
        return self.request is not None and self.request.gone


@pytest.fixture(params=HOSTED)
def name(request):
    return request.param


@pytest.fixture(params=HANGING.values(), ids=HANGING)
def hangs(request):
    return Hangs(request.param)


@pytest.fixture
async def vendor(name, hangs):
    async with serving(vendor_named(name)) as vendor:
        vendor.choose = hangs
        yield vendor


@pytest.fixture
def received():
    return []


@pytest.fixture
async def url(received):
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield receiver.url


def calls_of(evidence):
    return [(row["step"], row["attempt"], row["state"]) for row in evidence.model_calls]


async def test_an_interrupt_closes_the_connection_and_is_answered(tmp_path, url, received, name, vendor, hangs):
    environment = configured(tmp_path, url, asked=asked_at(name, vendor))
    parts = shop_parts(tmp_path, SystemClock(), Gates(held=False))
    async with await Embedded.open(environment, parts) as insika:
        await insika.ingress.take(raw(JOB))
        await vendor.until(lambda: hangs.holds)
        await insika.ingress.take(raw(NEWER))
        await vendor.until(lambda: hangs.gone)
        await settled(tmp_path / "insika.db")
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, [JOB, NEWER], gone=0, failures=())
    judge_requests(vendor, evidence)
    assert evidence.of_turn("ana-1")["state"] == "cancelled"
    assert [row["state"] for row in evidence.model_calls] == ["measured", "estimated", "measured", "measured"]
    assert len(received) == 1


@pytest.mark.parametrize("hangs", [Waits(), Stalls(9)], ids=["before it begins", "in its midst"], indirect=True)
async def test_a_worker_that_is_told_to_end_hands_its_turn_over(tmp_path, url, received, name, vendor, hangs):
    environment = configured(tmp_path, url, drain_s=0.5, asked=asked_at(name, vendor))
    async with Child(tmp_path, environment) as child:
        await child.send(JOB)
        await vendor.until(lambda: hangs.holds)
        child.signal(signal.SIGTERM)
        assert await child.ends() == 0, child.log
    await vendor.until(lambda: hangs.gone)
    (session,) = rows(tmp_path / "insika.db", "SELECT lease_id, deaths, turn_id FROM sessions")
    assert (session["lease_id"], session["deaths"]) == (None, 0)
    assert session["turn_id"], "the turn was not left for another"
    async with await Embedded.open(environment, shop_parts(tmp_path, SystemClock(), Gates(held=False))):
        await settled(tmp_path / "insika.db")
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, [JOB], gone=1, failures=())
    judge_requests(vendor, evidence)
    assert calls_of(evidence) == [(1, 1, "measured"), (2, 1, "estimated"), (2, 2, "measured"), (3, 1, "measured")]
    assert len(vendor.requests) == 4
    assert hangs.request.raw == vendor.requests[2].raw, "it was not asked anew, from the same log"


@pytest.mark.parametrize("hangs", [Waits()], ids=["before it begins"], indirect=True)
async def test_who_waits_longer_than_a_lease_keeps_the_session(tmp_path, url, received, name, vendor, hangs):
    """Beside a process that would take it, if it could."""
    environment = configured(tmp_path, url, lease_s=LEASE_S, asked=asked_at(name, vendor))

    def lease():
        (session,) = rows(tmp_path / "insika.db", "SELECT lease_id, lease_until, epoch FROM sessions")
        return session

    async with Child(tmp_path, environment) as child:
        await child.send(JOB)
        await vendor.until(lambda: hangs.holds)
        first = lease()
        async with await Embedded.open(environment, shop_parts(tmp_path, SystemClock(), Gates(held=False))):
            long = first["lease_until"] + LEASE_S * 1_000_000
            await until(lambda: (lease()["lease_until"] or 0) > long, "for the lease to be renewed")
            vendor.gate.set()
            await settled(tmp_path / "insika.db")
        assert child.alive
    assert lease()["epoch"] == first["epoch"], "another took it"
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, [JOB], gone=0, failures=())
    judge_requests(vendor, evidence)
    assert calls_of(evidence) == [(1, 1, "measured"), (2, 1, "measured"), (3, 1, "measured")]
    assert len(vendor.requests) == 3
