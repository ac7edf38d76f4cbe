"""Faults 28 to 30 over the whole pipeline: from a job to what a receiver can count, with processes that die between."""

from __future__ import annotations

import json
import signal

import pytest

from actors.embedded import Embedded
from actors.receiver import Receiver
from insika.crash_points import CrashPoint
from outbox.store import Resent
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S, Death, clock_of_now, live
from tests.faults.scenes import send
from tests.faults.shop import SECRET, Gates, configured, job, raw, shop_parts
from tests.faults.verdict import Evidence, judge, rows, uncertain, until
from tests.receivers import LyingReceiver, answers, closes_before_reading, never_answers, resets_after_reading

JOBS = [job("ana", "ana-1", "A1: letter")]


def outbox(folder):
    return rows(folder / "insika.db", "SELECT id, state, attempts FROM outbox ORDER BY lane_pos")


async def test_what_was_received_before_a_kill_is_sent_again_only_at_an_operator_s_word(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        environment = configured(tmp_path, receiver.url)
        async with Child(tmp_path, environment, point=CrashPoint.DELIVERY_SENT) as child:
            child.command(take=JOBS[0])
            assert await child.ends() == -signal.SIGKILL
        clock = clock_of_now()
        clock.advance(OUTLIVES_EVERYTHING_S)
        async with await Embedded.open(environment, shop_parts(tmp_path, clock, Gates(held=False))) as insika:
            await send(insika, JOBS)
            evidence = Evidence.gathered(tmp_path, received)
            judge(evidence, JOBS, gone=1, failures=())
            (cut,) = uncertain(evidence)
            assert [each.id for each in received] == [cut]
            told = [event.data for event in await insika.events.since(0) if event.type == "delivery_failed"]
            assert [(data["delivery_id"], data["outcome"]) for data in told] == [(cut, "uncertain")]

            assert isinstance(await insika.outbox.resend(cut, force=True), Resent)
            clock.advance(2)
            insika.bus.delivery()
            await until(lambda: outbox(tmp_path)[0]["state"] == "delivered", "for it to be delivered again")
    first, second = received
    assert first.id == second.id
    assert first.payload == second.payload
    assert (first.possible_duplicate, second.possible_duplicate) == (False, True)


@pytest.mark.parametrize(
    "behaviour",
    [never_answers, resets_after_reading, closes_before_reading, answers(502), answers(504)],
    ids=["answers too late", "resets", "closes", "502", "504"],
)
async def test_an_answer_that_may_have_arrived_is_not_sent_again_and_holds_up_no_other(tmp_path, behaviour):
    clock = clock_of_now()
    jobs = [*JOBS, job("ana", "ana-2", "A2", queue_mode="followup")]
    async with LyingReceiver([behaviour, answers(200)]) as receiver:
        environment = configured(tmp_path, receiver.url, timeout_s=0.3)
        events = await live(tmp_path, environment, lambda insika, _: send(insika, jobs[:1]), clock=clock)
        clock.advance(OUTLIVES_EVERYTHING_S)
        await live(tmp_path, environment, lambda insika, _: send(insika, jobs), clock=clock)
    assert [row["state"] for row in outbox(tmp_path)] == ["uncertain", "delivered"]
    seen = [json.loads(each.body)["content"] for each in receiver.seen if each.body]
    assert seen[-1] == "Done: A2"
    assert len(receiver.seen) == 2
    assert [event.data["outcome"] for event in events if event.type == "delivery_failed"] == ["uncertain"]
    assert [row["state"] for row in rows(tmp_path / "insika.db", "SELECT state FROM turns")] == ["completed"] * 2


async def test_each_attempt_has_the_same_id_and_the_same_bytes_whoever_makes_it(tmp_path):
    """Refused twice; each attempt is made by another process."""
    clock = clock_of_now()
    async with LyingReceiver([answers(503), answers(503), answers(200)]) as receiver:
        environment = configured(tmp_path, receiver.url)
        for attempt in (1, 2, 3):

            async def until_tried(insika, gates, attempt=attempt):
                await insika.ingress.take(raw(JOBS[0]))
                await until(lambda: [row["attempts"] for row in outbox(tmp_path)] == [attempt])

            await live(tmp_path, environment, until_tried, clock=clock)
            clock.advance(OUTLIVES_EVERYTHING_S)
    assert [row["state"] for row in outbox(tmp_path)] == ["delivered"]
    assert [seen.header("insika-attempt") for seen in receiver.seen] == ["1", "2", "3"]
    assert {seen.header("webhook-id") for seen in receiver.seen} == {outbox(tmp_path)[0]["id"]}
    assert len({seen.body for seen in receiver.seen}) == 1
    assert {seen.header("insika-possible-duplicate") for seen in receiver.seen} == {None}


async def test_answers_of_a_session_leave_in_order_through_refusals_and_deaths(tmp_path):
    clock = clock_of_now()
    jobs = [job("ana", f"ana-{number}", f"A{number}", queue_mode="followup") for number in range(4)]
    async with LyingReceiver([answers(503), answers(200), answers(503), answers(200)]) as receiver:
        environment = configured(tmp_path, receiver.url, order_wait_s=10 * OUTLIVES_EVERYTHING_S)
        for count in (1, 3, 6):

            async def until_posted(insika, gates, count=count):
                for each in jobs:
                    await insika.ingress.take(raw(each))
                await until(lambda: sum(row["attempts"] for row in outbox(tmp_path)) >= count)

            await live(tmp_path, environment, until_posted, clock=clock)
            clock.advance(OUTLIVES_EVERYTHING_S)
    said = [json.loads(seen.body)["content"] for seen in receiver.seen]
    assert said == ["Done: A0", "Done: A0", "Done: A1", "Done: A1", "Done: A2", "Done: A3"]


@pytest.mark.parametrize("point", [CrashPoint.DELIVERY_CLAIMED, CrashPoint.DELIVERY_SENT])
async def test_a_channel_that_chose_at_least_once_gets_it_again_with_a_mark(tmp_path, point):
    clock, death, received = clock_of_now(), Death(point), []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        environment = configured(tmp_path, receiver.url, guarantee="at_least_once")
        await live(tmp_path, environment, lambda insika, _: send(insika, JOBS), clock=clock, death=death)
        clock.advance(OUTLIVES_EVERYTHING_S)
        await live(tmp_path, environment, lambda insika, _: send(insika, JOBS), clock=clock)
    (row,) = outbox(tmp_path)
    assert (row["state"], row["attempts"]) == ("delivered", 2)
    marks = [False, True] if point is CrashPoint.DELIVERY_SENT else [True]
    assert [(each.id, each.possible_duplicate) for each in received] == [(row["id"], mark) for mark in marks]


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", [CrashPoint.DELIVERY_CLAIMED, CrashPoint.DELIVERY_SENT, CrashPoint.DELIVERY_SETTLED])
async def test_the_pieces_of_an_answer_arrive_in_order_and_each_at_most_once(tmp_path, point, nth):
    clock, death, received = clock_of_now(), Death(point, nth), []
    jobs = [job("ana", "ana-1", "one\n\ntwo\n\nthree: letter")]
    async with Receiver([SECRET], on_received=received.append) as receiver:
        environment = configured(tmp_path, receiver.url, split="paragraphs")
        await live(tmp_path, environment, lambda insika, _: send(insika, jobs), clock=clock, death=death)
        clock.advance(OUTLIVES_EVERYTHING_S)
        await live(tmp_path, environment, lambda insika, _: send(insika, jobs), clock=clock)
    assert death.came.is_set()
    pieces = ["Done: one", "two", "three"]
    lost = [pieces[nth - 1]] if point is CrashPoint.DELIVERY_CLAIMED else []
    assert [each.payload["content"] for each in received] == [piece for piece in pieces if piece not in lost]
    assert all(each.payload["final"] is (each.payload["index"] == 2) for each in received)
    cut = nth if point is not CrashPoint.DELIVERY_SETTLED else None
    assert [row["state"] for row in outbox(tmp_path)] == [
        "uncertain" if place == cut else "delivered" for place in (1, 2, 3)
    ]
