"""Fault 31: the job of a failed turn is published again, under its id. It is a repeat, and whoever asks is told what
became of the first; to run it again takes an operator, or a new id."""

from __future__ import annotations

import asyncio
import json

from tests.faults.shop import job

FAILS = job("ana", "ana-1", "A: charge | fail@mended")


async def told(cluster, count):
    """The verdicts, once there are so many; they are told beside what happens, and nothing waits for them."""
    async with asyncio.timeout(60):
        while len(events := await cluster.events("turn_accepted")) < count:  # noqa: ASYNC110 - they are Redis's
            await asyncio.sleep(0.1)
    return [(event.data["verdict"], event.turn_id, event.data.get("turn_state")) for event in events]


async def test_a_repeat_is_told_of_the_first_and_its_state(cluster):
    await cluster.run("ingress", "worker", "outbox")
    await cluster.publish(FAILS)
    await cluster.settles(1)
    (failed,) = cluster.turns("ana")
    assert failed["state"] == "failed"
    await cluster.publish(FAILS)
    assert await told(cluster, 2) == [("accepted", failed["id"], None), ("duplicate", failed["id"], "failed")]
    shown = json.loads(cluster.insika("turns", "show", failed["id"], "--json").stdout)
    assert (shown["state"], shown["error"]["type"]) == ("failed", "provider_fatal")
    cluster.gates.open("mended")
    assert cluster.insika("sessions", "retry", "ana").returncode == 0
    await cluster.settles(2)
    (_, again) = cluster.turns("ana")
    assert (again["state"], (await told(cluster, 3))[-1]) == ("completed", ("accepted", again["id"], None))
    assert [received.payload["content"] for received in cluster.received] == ["Done: A"]
    await cluster.publish(FAILS)
    assert (await told(cluster, 4))[-1] == ("duplicate", failed["id"], "failed")
    assert len(cluster.turns("ana")) == 2
    # Both turns called it, each once: what it does is not known to be the same.
    assert len(cluster.diary(tool="charge")) == 2
