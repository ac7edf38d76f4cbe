"""What operators are told of: each level of a budget once, however many workers see it crossed; each delivery that
failed once; and never that an alert did."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import asynccontextmanager

import standardwebhooks

from insika.providers.script import Say, Script
from tests.faults.cluster.barrier import BARRIER
from tests.faults.cluster.limited import alerts, at_the_barrier, claude, configure, said, spent
from tests.faults.cluster.member import until
from tests.faults.shop import SECRET
from tests.receivers import LyingReceiver, answers, never_answers
from tests.vendors.troubles import Waits

ALERT_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
ANSWER = Script(afterwards=Say("x" * 400))
WORKERS = 10


@asynccontextmanager
async def operators(cluster, *behaviours):
    """Where alerts go. Its answers are 200 unless said otherwise."""
    cluster.variables |= {"INSIKA_WEBHOOK_SECRET": ALERT_SECRET}
    async with LyingReceiver(list(behaviours) or [answers(200)]) as receiver:
        yield receiver


def told(receiver):
    """What it was told, each verified with the deployment's secret."""
    found = []
    for seen in receiver.seen:
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        headers = {name: seen.header(name) or "" for name in names}
        found.append(standardwebhooks.Webhook(ALERT_SECRET).verify(seen.body, headers))
    return found


async def test_ten_workers_that_cross_a_level_together_tell_of_it_once(cluster):
    """The budget is soft, so that all of them run. Both windows have both levels."""
    async with operators(cluster) as receiver, claude(cluster, ANSWER) as vendor:
        budget = {"daily": 700, "monthly": 700, "alert_at": 0.8, "soft": True}
        agent = {"budget": budget, "alerts": {"webhook": receiver.url}}
        configure(cluster, {"spender": agent})
        workers = [cluster.start("worker", barred=True, INSIKA_SLOTS=1) for _ in range(WORKERS)]
        await cluster.run("ingress", "outbox")
        for worker in workers:
            await worker.ready()
        cluster.gates.open(BARRIER)
        await cluster.publish(said("first", "first", "hello", "spender"))
        await cluster.settles(1)
        assert 0.8 * 700 <= await spent(cluster, "spender") < 700
        assert alerts(cluster) == []
        for number, level in enumerate(("alert", "cap"), start=1):
            vendor.choose = lambda seen: Waits()
            vendor.gate.clear()
            asked = len(vendor.requests) + WORKERS
            wave = [said(f"{level}-{n}", f"{level}-{n}", "hello", "spender") for n in range(WORKERS)]
            await at_the_barrier(cluster, wave)
            await until(lambda: len(vendor.requests) == asked, "all to have crossed it")  # noqa: B023
            vendor.gate.set()
            assert len({entry["pid"] for entry in cluster.diary(BARRIER)[-WORKERS:]}) == WORKERS
            await cluster.settles(1 + number * WORKERS)
            levels = [(window, each) for window in ("daily", "monthly") for each in ("alert", "cap")[:number]]
            rows = [json.loads(alert["payload"]) for alert in alerts(cluster, "budget_warning")]
            assert Counter((row["data"]["window"], row["data"]["level"]) for row in rows) == Counter(levels)
            events = [event.data for event in await cluster.events("budget_warning")]
            assert Counter((data["window"], data["level"]) for data in events) == Counter(levels)
            posted = [body["data"] for body in told(receiver)]
            assert Counter((data["window"], data["level"]) for data in posted) == Counter(levels)
        assert len(vendor.requests) == 1 + 2 * WORKERS
        assert {alert["state"] for alert in alerts(cluster)} == {"delivered"}


async def test_an_answer_that_did_not_arrive_is_told_of_once_and_an_alert_that_did_not_is_not(cluster):
    """One receiver answers 404, one never answers; then the operators' own answers 404."""
    async with (
        operators(cluster, answers(200), answers(200), answers(404)) as receiver,
        LyingReceiver([answers(404)]) as refusing,
        LyingReceiver([never_answers]) as silent,
        claude(cluster, ANSWER),
    ):
        channels = [
            {"id": "refusing", "url": refusing.url, "secret": SECRET},
            {"id": "silent", "url": silent.url, "secret": SECRET, "timeout_s": 0.5},
        ]
        configure(cluster, {"shop": {"alerts": {"webhook": receiver.url}}}, channels=channels)
        await cluster.run("ingress", "outbox", "clock", "worker")
        for number, channel in enumerate(("refusing", "silent", "refusing"), start=1):
            await cluster.publish(said(f"s{number}", f"s{number}", "hello", "shop", channel=channel))
            await until(lambda: len(receiver.seen) == number, "the operators to be told")  # noqa: B023
        await cluster.settles(3)
        await until(lambda: len(alerts(cluster)) == 3 and not cluster._not_at_rest(), "all to be settled")
        rows = cluster.tables.of("SELECT state, kind, channel, turn_id FROM outbox ORDER BY created_at, id")
        assert Counter((row["kind"], row["channel"], row["state"]) for row in rows) == {
            ("answer", "refusing", "failed"): 2,
            ("answer", "silent", "uncertain"): 1,
            ("alert", "alert", "delivered"): 2,
            ("alert", "alert", "failed"): 1,
        }
        bodies = told(receiver)
        assert [body["type"] for body in bodies] == ["delivery_failed"] * 3
        turns = [turn["id"] for name in ("s1", "s2", "s3") for turn in cluster.turns(name)]
        assert [body["meta"]["turn_id"] for body in bodies] == turns
        assert len(refusing.seen) == 2
        assert len(silent.seen) == 1
