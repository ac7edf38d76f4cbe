"""Faults 31 and 36: the same job again, and the same call again, also when processes die in between."""

from __future__ import annotations

import json

import pytest

from actors.receiver import Receiver
from insika.crash_points import CrashPoint
from insika.messages import Role
from insika.storage.rows import TurnState, Verdict
from insika.turn import sentences
from tests.faults.lives import OUTLIVES_EVERYTHING_S, Death, clock_of_now, live
from tests.faults.scenes import send
from tests.faults.shop import ONE_AT_A_TIME, SECRET, SYNTHESIZES, configured, diary_entries, job, raw
from tests.faults.verdict import Evidence, judge, texts_of

CIRCLES = {
    "the same call": ("C: " + " | ".join(["look_up=1"] * 12), 3),
    "the same call, with empty results": ("C: " + " | ".join(["look_up=nothing"] * 12), 3),
    "two calls in turn": ("C: " + " | ".join(["look_up=1", "weigh=2"] * 6), 6),
    "the same call many times in one batch": ("C: " + " ".join(["look_up=1"] * 12), 3),
    "the same change of the world": ("C: " + " | ".join(["charge=1"] * 12), 3),
}


@pytest.fixture
async def shop(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        yield configured(tmp_path, receiver.url), received


@pytest.mark.parametrize("agent", [ONE_AT_A_TIME, SYNTHESIZES])
@pytest.mark.parametrize("point", [None, CrashPoint.CALL_RECORDED, CrashPoint.BATCH_RAN, CrashPoint.BOUNDARY_CROSSED])
@pytest.mark.parametrize("circle", CIRCLES)
async def test_a_model_that_goes_in_circles_is_stopped(tmp_path, shop, circle, point, agent):
    environment, received = shop
    text, runs = CIRCLES[circle]
    jobs = [job("ana", "ana-1", text, agent)]
    clock, death = clock_of_now(), Death(point, 2)
    await live(tmp_path, environment, lambda insika, _: send(insika, jobs), clock=clock, death=death)
    clock.advance(OUTLIVES_EVERYTHING_S)
    await live(tmp_path, environment, lambda insika, _: send(insika, jobs), clock=clock)
    evidence = Evidence.gathered(tmp_path, received)
    gone = int(death.came.is_set())
    judge(evidence, jobs, gone=gone, failures=() if agent == SYNTHESIZES else {"ana-1"})
    ran = {(entry["turn_id"], entry["call_id"]) for entry in diary_entries(tmp_path, "tool")}
    assert len(ran) == runs
    turn = evidence.of_turn("ana-1")
    if agent == SYNTHESIZES:
        assert (turn["state"], turn["synthesized"]) == ("completed", 1)
    else:
        assert json.loads(turn["error"])["type"] == "tool_repetition"
        assert received == []


async def test_a_circle_earns_one_notice_and_the_calls_that_were_not_run_say_so(tmp_path, shop):
    environment, received = shop
    jobs = [job("ana", "ana-1", CIRCLES["the same call"][0])]
    await live(tmp_path, environment, lambda insika, _: send(insika, jobs), clock=clock_of_now())
    said = Evidence.gathered(tmp_path, received).conversation(1)
    assert texts_of(said, Role.USER) == [jobs[0]["text"], sentences.repetition("look_up", 3)]
    assert texts_of(said, Role.TOOL) == ["found 1"] * 3 + [sentences.not_run("tool_repetition")]


async def test_the_repeat_of_a_job_names_the_first_turn_and_its_state_whoever_is_asked(tmp_path, shop):
    environment, received = shop
    jobs = [job("ana", "ana-1", "A1: charge | fail"), job("ana", "ana-2", "A1: charge")]
    clock, death, answered = clock_of_now(), Death(CrashPoint.TURN_ENDED), []

    async def ask(insika, gates):
        answered.append(await insika.ingress.take(raw(jobs[0])))
        await send(insika, [])

    async def ask_with_a_new_id(insika, gates):
        await ask(insika, gates)
        await send(insika, jobs[1:])

    await live(tmp_path, environment, ask, clock=clock, death=death)
    assert death.came.is_set()
    clock.advance(OUTLIVES_EVERYTHING_S)
    await live(tmp_path, environment, ask_with_a_new_id, clock=clock)
    await live(tmp_path, environment, ask, clock=clock)
    first, *repeats = answered
    assert first.verdict is Verdict.ACCEPTED
    for repeat in repeats:
        assert (repeat.verdict, repeat.turn_id) == (Verdict.DUPLICATE, first.turn_id)
        assert repeat.turn_state is TurnState.FAILED
    judge(Evidence.gathered(tmp_path, received), jobs, gone=1, failures={"ana-1"})
