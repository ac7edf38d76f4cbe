"""Every instant at which a process may die, by an exception: once, twice, and again while another recovers.

The file is all that is left each time. What must hold afterwards is in `verdict`.
"""

from __future__ import annotations

import pytest

from actors.receiver import Receiver
from insika.crash_points import CrashPoint
from tests.faults.lives import OUTLIVES_EVERYTHING_S, Death
from tests.faults.scenes import BOTH_WAYS, OF_TURNS, send
from tests.faults.shop import ONE_AT_A_TIME, SECRET, TWO_AT_ONCE, job
from tests.faults.town import Town

AROUND_THE_POST = (CrashPoint.DELIVERY_CLAIMED, CrashPoint.DELIVERY_SENT)


@pytest.fixture(params=BOTH_WAYS)
async def town(request, tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield Town(tmp_path, receiver.url, received, request.param)


async def test_the_story_meets_every_point_twice_and_ends_well(town):
    death = Death()
    await town.first_life(death)
    assert {point: count for point, count in death.met.items() if count < 2} == {}
    assert set(death.met) == set(OF_TURNS)
    evidence = town.judge()
    assert len(town.received) == len(evidence.outbox) == 4
    assert evidence.of_turn("ana-2") == evidence.of_turn("ana-1"), "it was not steered"


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", OF_TURNS)
async def test_a_death_spoils_nothing(town, point, nth):
    death = Death(point, nth)
    await town.first_life(death)
    assert death.came.is_set()
    await town.next_life()
    town.judge()


@pytest.mark.parametrize("point", AROUND_THE_POST)
async def test_only_around_its_post_is_a_delivery_uncertain(town, point):
    jobs = [job("ana", "ana-1", "A1: letter", town.agent)]
    await town.life(Death(point), lambda insika, _: send(insika, jobs))
    (cut,) = town.maybe_posted
    town.clock.advance(OUTLIVES_EVERYTHING_S)
    events = await town.life(Death(), lambda insika, _: send(insika, jobs))
    town.judge(jobs, failures=())
    assert [received.id for received in town.received] == ([cut] if point is CrashPoint.DELIVERY_SENT else [])
    told = [event.data for event in events if event.type == "delivery_failed"]
    assert [(data["delivery_id"], data["outcome"]) for data in told] == [(cut, "uncertain")]


@pytest.mark.parametrize("second", OF_TURNS)
@pytest.mark.parametrize(
    ("town", "first"),
    [(TWO_AT_ONCE, CrashPoint.CALL_RAN), (ONE_AT_A_TIME, CrashPoint.ANSWER_READY)],
    indirect=["town"],
)
async def test_a_death_in_the_midst_of_recovery_spoils_nothing(town, first, second):
    await town.first_life(Death(first))
    await town.next_life(Death(second))
    await town.next_life()
    town.judge()


@pytest.mark.parametrize("town", [TWO_AT_ONCE], indirect=True)
@pytest.mark.parametrize("point", OF_TURNS)
async def test_two_deaths_at_one_point_spoil_nothing(town, point):
    await town.first_life(Death(point))
    await town.next_life(Death(point))
    await town.next_life()
    town.judge()


async def test_a_process_that_dies_at_every_commit_fails_nobody_s_turn(town):
    """A deployment that dies for reasons of its own: no turn is to blame while each of them gets on."""
    jobs = [job("ana", f"ana-{number}", f"A{number}: charge", town.agent, queue_mode="followup") for number in range(6)]
    for _ in jobs:
        await town.life(Death(CrashPoint.COMMITTED), lambda insika, _: send(insika, jobs))
        town.clock.advance(town.environment.lease_s + 1)
    town.clock.advance(OUTLIVES_EVERYTHING_S)
    await town.life(Death(), lambda insika, _: send(insika, jobs))
    assert town.deaths == len(jobs)
    town.judge(jobs, failures=())
