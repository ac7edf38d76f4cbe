from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from actors.lease import LOOP_STOPPED_AFTER_LEASES, MARGIN, Lease, LeaseKeeper, Outage
from insika.clock import ManualClock
from insika.errors import LeaseLost
from insika.storage.operations import Fence
from insika.storage.port import StoreBusy, StoreUnavailable
from insika.storage.rows import Claim

LEASE_S = 10.0
GOOD_FOR_S = LEASE_S * (1 - MARGIN)


class Renewals:
    """A store that extends what it still knows. `during` is called while it does: time may pass there."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.lost: set[str] = set()
        self.urgent = 0
        self.error: Exception | None = None
        self.during = lambda: None
        self.closed = False

    def renew(self, fences: Sequence[Fence], lease_s: float) -> Mapping[str, int]:
        assert lease_s == LEASE_S
        self.asked.append([fence.lease_id for fence in fences])
        self.during()
        if self.error is not None:
            raise self.error
        return {fence.lease_id: self.urgent for fence in fences if fence.lease_id not in self.lost}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def renewals() -> Renewals:
    return Renewals()


@pytest.fixture
def keeper(renewals: Renewals, clock: ManualClock) -> LeaseKeeper:
    return LeaseKeeper(renewals, LEASE_S, clock)


def hold(keeper: LeaseKeeper, clock: ManualClock, name: str = "a") -> Lease:
    return keeper.hold(Claim(1, name, epoch=3, deaths=1), clock.monotonic())


def good(lease: Lease) -> bool:
    try:
        lease.may_start()
    except LeaseLost:
        return False
    return True


def test_a_lease_says_whose_it_is(keeper, clock):
    lease = hold(keeper, clock)
    assert (lease.fence, lease.epoch, lease.deaths) == (Fence(1, "a"), 3, 1)


def test_a_lease_is_good_until_its_margin(keeper, clock):
    lease = hold(keeper, clock)
    clock.advance(GOOD_FOR_S - 0.001)
    assert good(lease)
    clock.advance(0.001)
    assert not good(lease)


def test_it_counts_from_when_the_claim_was_sent_not_from_when_it_came_back(keeper, clock):
    sent_at = clock.monotonic()
    clock.advance(4)
    lease = keeper.hold(Claim(1, "a", 1, 0), sent_at)
    clock.advance(GOOD_FOR_S - 4)
    assert not good(lease)


def test_a_renewal_counts_from_when_it_was_sent(keeper, clock, renewals):
    lease = hold(keeper, clock)
    clock.advance(3)
    renewals.during = lambda: clock.advance(4)
    keeper.renew_once()
    clock.advance(GOOD_FOR_S - 4 - 0.001)
    assert good(lease)
    clock.advance(0.001)
    assert not good(lease)


def test_a_renewal_that_came_back_too_late_does_not_revive_what_may_be_another_s(keeper, clock, renewals):
    """It was sent in time, so the store extended it in time: then it counts from there, and is over."""
    lease = hold(keeper, clock)
    renewals.during = lambda: clock.advance(LEASE_S + 1)
    keeper.renew_once()
    assert not good(lease)


def test_the_wall_clock_has_no_say(keeper, clock):
    lease = hold(keeper, clock)
    clock.jump(300)
    assert good(lease)
    clock.jump(-600)
    clock.advance(GOOD_FOR_S)
    assert not good(lease)


def test_one_lease_that_is_lost_does_not_concern_the_others(keeper, clock, renewals):
    lost, kept = hold(keeper, clock, "lost"), hold(keeper, clock, "kept")
    renewals.lost = {"lost"}
    clock.advance(5)
    keeper.renew_once()
    clock.advance(GOOD_FOR_S - 5)

    assert not good(lost)
    assert good(kept)
    assert renewals.asked == [["lost", "kept"]]


def test_a_lease_that_was_locked_once_is_renewed_the_next_time(keeper, clock, renewals):
    lease = hold(keeper, clock)
    renewals.lost = {"a"}
    keeper.renew_once()
    renewals.lost = set()
    clock.advance(5)
    keeper.renew_once()
    clock.advance(GOOD_FOR_S - 1)
    assert good(lease)


def test_what_was_let_go_is_not_renewed(keeper, clock, renewals):
    lease = hold(keeper, clock)
    keeper.drop(lease)
    keeper.drop(lease)
    keeper.renew_once()
    assert renewals.asked == []


def test_when_the_loop_has_stopped_renewal_stops_and_goes_on_with_it(keeper, clock, renewals):
    lease = hold(keeper, clock)
    for _ in range(4):
        clock.advance(LEASE_S * LOOP_STOPPED_AFTER_LEASES / 4)
        keeper.renew_once()
    assert len(renewals.asked) == 4
    assert good(lease)

    clock.advance(1)
    keeper.renew_once()
    assert len(renewals.asked) == 4

    keeper.loop_ticked()
    keeper.renew_once()
    assert len(renewals.asked) == 5


def test_a_store_that_is_away_is_told_of_and_remembered(keeper, clock, renewals):
    lease = hold(keeper, clock)
    renewals.error = StoreUnavailable("away")
    clock.advance(5)
    with pytest.raises(StoreUnavailable):
        keeper.renew_once()

    assert keeper.outage.just_over
    clock.advance(GOOD_FOR_S - 5)
    assert not good(lease)


def test_for_one_lease_after_an_outage_it_is_just_over(clock):
    outage = Outage(LEASE_S, clock)
    assert not outage.just_over
    outage.noticed(StoreUnavailable("away"))
    clock.advance(LEASE_S - 0.001)
    assert outage.just_over
    clock.advance(0.001)
    assert not outage.just_over


def test_a_process_that_asks_too_much_at_once_has_met_no_outage(clock):
    """Else what a dead worker held would wait for a quiet moment of those that could take it."""
    outage = Outage(LEASE_S, clock)
    outage.noticed(StoreBusy("all connections are in use"))
    assert not outage.just_over


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("unforeseen")])
def test_the_thread_survives_whatever_a_renewal_throws(clock, error):
    renewals = Renewals()
    keeper = LeaseKeeper(renewals, 0.003, clock)
    twice = threading.Event()

    def count() -> None:
        if len(renewals.asked) >= 2:
            twice.set()

    renewals.renew = lambda fences, lease_s: (renewals.asked.append([]), count(), _throw(error))
    keeper.hold(Claim(1, "a", 1, 0), clock.monotonic())
    with capture_logs():
        keeper.start()
        assert twice.wait(20)
        keeper.stop()
    assert renewals.closed


def _throw(error: Exception) -> None:
    raise error


def test_a_renewal_tells_once_of_urgent_mail(renewals, clock):
    told: list[int] = []
    keeper = LeaseKeeper(renewals, LEASE_S, clock, told.append)
    hold(keeper, clock)
    keeper.renew_once()
    assert told == []
    renewals.urgent = 4
    keeper.renew_once()
    keeper.renew_once()
    assert told == [1]
    renewals.urgent = 6
    keeper.renew_once()
    assert told == [1, 1]


def test_the_first_renewal_tells_of_what_came_before_it(renewals, clock):
    told: list[int] = []
    keeper = LeaseKeeper(renewals, LEASE_S, clock, told.append)
    hold(keeper, clock)
    renewals.urgent = 2
    keeper.renew_once()
    assert told == [1]
