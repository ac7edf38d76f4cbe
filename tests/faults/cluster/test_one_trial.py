"""Fault 38: when a circuit may close again, one turn of fifty tries, over all workers. Operators hear of it once."""

from __future__ import annotations

import redis

from insika.providers.script import Say, Script
from tests.faults.cluster.limited import alerts, at_the_barrier, claude, configure, outcomes, said
from tests.faults.cluster.member import until
from tests.receivers import LyingReceiver, answers
from tests.vendors.troubles import Refuses, Waits

WORKERS, SLOTS = 4, 15
COOLDOWN_S = 1.0
MODEL = "anthropic/claude-sonnet-4-5"


def wave(name, count):
    return [said(f"{name}-{n}", f"{name}-{n}", "hello", "careful") for n in range(count)]


async def test_one_request_reaches_the_vendor_however_many_wait_for_it(cluster):
    breaker = {"after": 3, "within": 60, "cooldown": COOLDOWN_S}
    cluster.variables |= {"INSIKA_SLOTS": str(SLOTS), "INSIKA_WEBHOOK_SECRET": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
    async with LyingReceiver([answers(200)]) as receiver, claude(cluster, Script(afterwards=Say("Back."))) as vendor:
        reliability = {"retries": 0, "timeout": 60, "circuit_breaker": breaker}
        configure(cluster, {"careful": {"reliability": reliability, "alerts": {"webhook": receiver.url}}})
        workers = [cluster.start("worker", barred=True) for _ in range(WORKERS)]
        await cluster.run("ingress", "outbox")
        for worker in workers:
            await worker.ready()

        vendor.choose = lambda seen: Refuses(503)
        await at_the_barrier(cluster, wave("failing", 8))
        await cluster.settles(8)
        failed = outcomes(cluster, "careful")
        assert failed["provider_unavailable"] == len(vendor.requests) >= 3
        assert failed["provider_unavailable"] + failed["circuit_open"] == 8

        with redis.Redis.from_url(cluster.services.redis) as client:
            opened = cooled(client)
            await until(lambda: cooled(client) >= opened + COOLDOWN_S, "the cooldown to end")
        vendor.choose = lambda seen: Waits()
        asked = len(vendor.requests) + 1
        await at_the_barrier(cluster, wave("trying", 50))
        turned_away = failed["circuit_open"] + 49
        await until(lambda: outcomes(cluster, "careful")["circuit_open"] == turned_away, "all others to be turned away")
        assert len(vendor.requests) == asked
        waits = cluster.tables.of(
            "SELECT error ->> 'retry_after' AS wait FROM turns WHERE error ->> 'type' = 'circuit_open'"
        )
        assert all(float(turn["wait"]) > 0 for turn in waits)

        vendor.gate.set()
        await cluster.settles(58)
        assert outcomes(cluster, "careful")["completed"] == 1
        await at_the_barrier(cluster, wave("closed", 8))
        await cluster.settles(66)
        assert outcomes(cluster, "careful")["completed"] == 9
        assert len(vendor.requests) == asked + 8
        (alert,) = alerts(cluster, "breaker_open")
        assert alert["state"] == "delivered"
        assert len(receiver.seen) == 1
        (event,) = await cluster.events("breaker_open")
        assert event.data["model"] == MODEL


def cooled(client):
    """By the clock that circuits go by."""
    seconds, microseconds = client.time()
    return seconds + microseconds / 1_000_000
