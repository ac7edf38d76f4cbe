"""Every instant at which a process may die while an operator decides, takes back and holds; by an exception and by
SIGKILL. A call that was approved runs at most once, a message that was taken back is not said, and nothing waits.

What must hold afterwards is in `verdict`.
"""

from __future__ import annotations

import signal

import pytest

from actors.embedded import Embedded
from actors.receiver import Receiver
from insika.crash_points import CrashPoint
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S, AheadClock, Death, clock_of_now, live
from tests.faults.scenes import COUNTED, HOLDS, OF_CONTROL, OF_ROUTING, RULED, TAKEN_BACK, Operator, tell
from tests.faults.shop import CAREFUL, SECRET, Gates, configured, shop_parts
from tests.faults.verdict import Evidence, delivering, every_conversation_is_valid, judge, rows, uncertain


@pytest.fixture
async def town(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield tmp_path, configured(tmp_path, receiver.url), received


def judged(folder, received, cut, deaths) -> Evidence:
    """The verdict; and everything that was asked and taken back has ended in the way that it had to."""
    evidence = Evidence.gathered(folder, received)
    judge(evidence, RULED, gone=deaths + HOLDS, failures=(), counted=COUNTED)
    assert uncertain(evidence) == cut
    mail = {row["job_id"]: row["ended"] for row in evidence.mailbox if row["verdict"] != "control"}
    assert {id for id, ended in mail.items() if ended == "withdrawn"} == set(TAKEN_BACK)
    charged = [row for row in evidence.tool_calls if row["name"] == "charge"]
    approvals = rows(folder / "insika.db", "SELECT * FROM approvals")
    assert {row["call_id"] for row in approvals} == {row["call_id"] for row in charged}
    assert {row["decision"] for row in approvals} == {"approved"}
    assert {row["controls"] for row in evidence.sessions} == {0}
    assert {row["paused"] for row in evidence.sessions} == {0}
    assert {row["deaths"] for row in evidence.sessions} == {0}
    return evidence


async def test_the_story_meets_every_point_and_every_one_of_control_twice(town):
    folder, environment, received = town
    death = Death()
    await _first_life(folder, environment, clock_of_now(), death)
    assert {point for point in OF_CONTROL if death.met[point] < 2} == set()
    assert set(death.met) == set(CrashPoint) - {CrashPoint.TURN_ENDED, *OF_ROUTING}
    evidence = judged(folder, received, set(), 0)
    assert [row["state"] for row in evidence.tool_calls] == ["done"] * len(evidence.tool_calls)


async def _first_life(folder, environment, clock, death):
    await live(
        folder,
        environment,
        lambda insika, gates: tell(insika, gates, CAREFUL),
        clock=clock,
        death=death,
        gates_held=True,
    )


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", OF_CONTROL)
async def test_a_death_spoils_nothing(town, point, nth):
    folder, environment, received = town
    clock, death = clock_of_now(), Death(point, nth)
    await _first_life(folder, environment, clock, death)
    assert death.came.is_set()
    cut = delivering(folder / "insika.db")
    clock.advance(OUTLIVES_EVERYTHING_S)
    await live(folder, environment, lambda insika, _: Operator(insika).rule_again(), clock=clock)
    judged(folder, received, cut, 1)


@pytest.mark.parametrize("second", OF_CONTROL)
@pytest.mark.parametrize("first", [CrashPoint.APPROVAL_ASKED, CrashPoint.WAITING_RESUMED, CrashPoint.CALL_RAN])
async def test_a_death_in_the_midst_of_recovery_spoils_nothing(town, first, second):
    folder, environment, received = town
    clock, death = clock_of_now(), Death(first)
    await _first_life(folder, environment, clock, death)
    deaths, cut = 1, delivering(folder / "insika.db")
    for next_death in (Death(second), Death()):
        clock.advance(OUTLIVES_EVERYTHING_S)
        await live(folder, environment, lambda insika, _: Operator(insika).rule_again(), clock=clock, death=next_death)
        deaths += next_death.came.is_set()
        cut |= delivering(folder / "insika.db")
    judged(folder, received, cut, deaths)


@pytest.mark.parametrize("point", OF_CONTROL)
async def test_a_killed_process_spoils_nothing(town, point):
    folder, environment, received = town
    async with Child(folder, environment, story=CAREFUL, point=point) as child:
        assert await child.ends() == -signal.SIGKILL, child.log
    every_conversation_is_valid(Evidence.gathered(folder, []), finished=False)
    cut = delivering(folder / "insika.db")
    parts = shop_parts(folder, AheadClock(OUTLIVES_EVERYTHING_S), Gates(held=False))
    async with await Embedded.open(environment, parts) as insika:
        await Operator(insika).rule_again()
    judged(folder, received, cut, 1)
