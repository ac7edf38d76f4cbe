"""Fault 32: a deploy. SIGTERM with everything under way, and SIGKILL at the end of the drain for what hangs."""

from __future__ import annotations

import asyncio
import json
import signal

from actors.embedded import Embedded
from actors.receiver import Received, Receiver
from insika.clock import SystemClock
from tests.faults.child import Child
from tests.faults.lives import OUTLIVES_EVERYTHING_S, AheadClock
from tests.faults.shop import COLLECTS, SECRET, Gates, configured, diary_entries, job, shop_parts
from tests.faults.verdict import Evidence, delivering, judge, rows, settled, uncertain, until
from tests.receivers import LyingReceiver, answers

IN_A_THREAD = job("thread", "thread-1", "T: charge@held letter")
IN_A_TOOL = job("tool", "tool-1", "U: letter@held charge | charge")
IN_THE_MODEL = job("model", "model-1", "M: charge ~ held")
COLLECTING = job("collects", "collects-1", "C: charge", COLLECTS)
SENDING = job("sends", "sends-1", "S: letter")
WAITING = job("tool", "tool-2", "V: charge", queue_mode="followup")
JOBS = [SENDING, COLLECTING, IN_A_THREAD, IN_A_TOOL, IN_THE_MODEL, WAITING]


def accepted(seen):
    payload = json.loads(seen.body)
    return Received(seen.header("webhook-id"), int(seen.header("insika-attempt")), False, payload, 1, verified=False)


def lease_and_deaths(folder, *sessions):
    found = rows(folder / "insika.db", "SELECT name, lease_id IS NOT NULL AS owned, deaths FROM sessions")
    return {row["name"]: (row["owned"], row["deaths"]) for row in found if row["name"] in sessions}


def orders_run(folder):
    return {run["order"] for run in diary_entries(folder, "tool")}


async def under_way(child, receiver):
    child.command(take=SENDING)
    await until(lambda: receiver.seen and receiver.seen[0].body, "for its delivery to be under way")
    for each in JOBS[1:]:
        await child.send(each)
    for session in ("thread", "tool"):
        await child.hears("tool_called", session=session)
    await until(
        lambda: any(
            entry["text"] == "M: charge ~ held" and entry["messages"] == 3
            for entry in diary_entries(child.folder, "request")
        ),
        "for the model to be asked",
    )


async def test_what_hangs_at_the_end_of_a_drain_is_handed_over_or_left_and_lost_is_nothing(tmp_path):
    answer_now = asyncio.Event()

    async def answers_late(connection):
        await connection.read_request()
        await answer_now.wait()
        connection.reset()

    async with LyingReceiver([answers_late, answers(200)]) as receiver:
        environment = configured(tmp_path, receiver.url, drain_s=0.3)
        async with Child(tmp_path, environment, held=True) as child:
            await under_way(child, receiver)
            cut = delivering(tmp_path / "insika.db")
            child.signal(signal.SIGTERM)
            await child.hears("draining")
            handed_over = ("tool", "model", "collects")
            await until(lambda: set(lease_and_deaths(tmp_path, *handed_over).values()) == {(0, 0)}, "for the handover")
            child.signal(signal.SIGKILL)
            assert await child.ends() == -signal.SIGKILL
        # A call that is still in a thread might run beside whoever took its session: that one waits for its lease.
        assert lease_and_deaths(tmp_path, "thread") == {"thread": (1, 0)}
        async with await Embedded.open(environment, shop_parts(tmp_path, SystemClock(), Gates(held=False))):
            await until(
                lambda: (
                    lease_and_deaths(tmp_path, "tool", "model") == {"tool": (0, 0), "model": (0, 0)}
                    and not rows(
                        tmp_path / "insika.db", "SELECT 1 FROM sessions WHERE turn_id IS NOT NULL AND name <> 'thread'"
                    )
                )
            )
            assert lease_and_deaths(tmp_path, "thread") == {"thread": (1, 0)}
        ahead = AheadClock(OUTLIVES_EVERYTHING_S)
        async with await Embedded.open(environment, shop_parts(tmp_path, ahead, Gates(held=False))):
            await settled(tmp_path / "insika.db")
        answer_now.set()
    evidence = Evidence.gathered(tmp_path, [accepted(seen) for seen in receiver.seen if seen.body])
    judge(evidence, JOBS, gone=1, failures=())
    assert uncertain(evidence) == cut
    assert len(cut) == 1
    unknown = {row["arguments"] for row in evidence.tool_calls if row["state"] == "unknown"}
    assert {json.loads(arguments)["order"] for arguments in unknown} == {"T.0.0", "U.0.0"}


async def test_a_deploy_that_has_the_time_costs_no_call_and_no_request(tmp_path):
    received = []
    async with Receiver([SECRET], on_received=received.append) as receiver:
        environment = configured(tmp_path, receiver.url)
        jobs = [IN_A_THREAD, IN_A_TOOL, IN_THE_MODEL, COLLECTING, WAITING]
        async with Child(tmp_path, environment, held=True) as child:
            for each in jobs:
                await child.send(each)
            for session in ("thread", "tool"):
                await child.hears("tool_called", session=session)
            child.signal(signal.SIGTERM)
            await child.hears("draining")
            child.command(open="held")
            assert await child.ends() == 0
        # It went to the next boundary, and no further.
        assert {"U.0.0", "U.0.1"} <= orders_run(tmp_path)
        assert "U.1.0" not in orders_run(tmp_path)
        assert set(lease_and_deaths(tmp_path, *(each["session"] for each in jobs)).values()) == {(0, 0)}
        parts = shop_parts(tmp_path, AheadClock(OUTLIVES_EVERYTHING_S), Gates(held=False))
        async with await Embedded.open(environment, parts):
            await settled(tmp_path / "insika.db")
    evidence = Evidence.gathered(tmp_path, received)
    judge(evidence, jobs, gone=1, failures=())
    assert {row["state"] for row in evidence.tool_calls} == {"done"}
    assert {row["input"] for row in evidence.model_calls if row["state"] == "estimated"} <= {0}
    assert {row["state"] for row in evidence.outbox} == {"delivered"}
