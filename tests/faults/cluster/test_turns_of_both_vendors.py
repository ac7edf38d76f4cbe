"""Faults 36 and 37: a model that makes the same call for ever is stopped, and what a turn has cost is right, whoever
spoke in it and whatever was cached. Both vendors' own wire formats, streamed, by workers. And what the limits of a turn
ask Redis for."""

from __future__ import annotations

import asyncio
import itertools

import redis

from insika.providers.script import Call, Script
from tests.faults.cluster.limited import CLAUDE, GPT, asked_by, booked, charged, claude, configure, gpt, outcomes, said
from tests.faults.cluster.member import until
from tests.faults.shop import next_step
from tests.vendors.troubles import Breaks

FOR_EVER = 1_535
KINDS = {"same": 4, "two in turn": 7, "empty": 4}
"""Ways to go in circles, and how often the model is asked until it is stopped."""


def circle(scene):
    """What a model that goes in circles says next."""
    order, step = ("nothing" if "empty" in scene.text else "one"), scene.step
    name = "weigh" if "two" in scene.text and step % 2 else "look_up"
    arguments = {"order": order, "gate": ""}
    return Call(name, dict(reversed(arguments.items())) if step % 2 else arguments)


def next_of_all(scene):
    return circle(scene) if scene.text in KINDS else next_step(scene)


async def test_a_circle_is_stopped_and_totals_are_what_both_vendors_charged(cluster):
    limits = {"limits": {"max_tool_calls": FOR_EVER, "max_tool_repeat": 3}}
    both = {"model": GPT, "reliability": {"retries": 0, "fallback": [CLAUDE]}}
    configure(cluster, {"claude": {"model": CLAUDE, **limits}, "gpt": {"model": GPT, **limits}, "both": both})
    script = Script(afterwards=next_of_all)
    async with gpt(cluster, script, cache_minimum=1) as first, claude(cluster, script, cache_minimum=1) as second:
        await cluster.run("ingress", "worker")
        await the_same_call_for_ever_is_stopped(cluster, {"gpt": first, "claude": second})
        await a_turn_of_both_is_booked_as_it_was_charged(cluster, first, second)


async def the_same_call_for_ever_is_stopped(cluster, vendors):
    """With its keys in another order, two calls in turn, and results that are empty."""
    jobs = [said(f"{agent}-{kind}", f"{agent}-{kind}", kind, agent) for agent in vendors for kind in KINDS]
    await cluster.publish(*jobs)
    await cluster.settles(len(jobs))
    for agent, vendor in vendors.items():
        assert outcomes(cluster, agent) == {"tool_repetition": len(KINDS)}
        assert not [seen for seen in vendor.requests if seen.refusals]
        for kind, most in KINDS.items():
            asked = asked_by(cluster, f"{agent}-{kind}")
            assert len(asked) == most
            assert {row["state"] for row in asked} == {"measured"}
    assert len(cluster.diary()) == len(vendors) * sum(most - 1 for most in KINDS.values())


async def a_turn_of_both_is_booked_as_it_was_charged(cluster, first, second):
    """The first fails in the middle of its third answer, the second goes on. Both read from their caches."""
    before = len(first.requests), len(second.requests)
    first.choose = lambda seen: Breaks(2) if seen.number == before[0] + 2 else None
    await cluster.publish(said("ana", "ana", "A: look_up | weigh | look_up | weigh", "both"))
    await until(lambda: cluster.turns("ana") and cluster.turns("ana")[0]["state"] == "completed", "its end")

    rows = asked_by(cluster, "ana")
    assert [row["model"] for row in rows] == [GPT] * 3 + [CLAUDE] * 3
    assert [row["state"] for row in rows] == ["measured", "measured", "estimated", *["measured"] * 3]
    asked = [*first.requests[before[0] :], *second.requests[before[1] :]]
    whole = [charged(seen) for seen in asked if seen.finished and seen.trouble is None]
    assert [booked(row) for row in rows if row["state"] == "measured"] == whole
    assert rows[1]["cache_read"] > 0 < rows[4]["cache_read"]
    assert sum(row["cache_write"] for row in rows[3:]) > 0
    ended = await told_of_its_end(cluster)
    names = ("input", "output", "cache_read", "cache_write")
    assert ended.data["usage"] == {name: sum(row[name] for row in rows) for name in names}
    assert (ended.data["model"], ended.data["model_source"]) == (CLAUDE, "fallback")


async def test_the_edge_limits_of_a_turn_are_one_round_trip(cluster):
    limits = {"chat_rate_limit": 10, "agent_token_ceiling": 100_000}
    reliability = {"circuit_breaker": {}}
    configure(cluster, {"limited": {"limits": limits, "reliability": reliability, "budget": {"daily": 100_000}}})
    async with claude(cluster, Script(afterwards=next_step)) as vendor:
        await cluster.run("ingress", "worker")
        await cluster.publish(said("ana", "before", "A", "limited"))
        await cluster.settles(1)  # Redis knows the scripts now
        with redis.Redis.from_url(cluster.services.redis) as client:
            here = client.connection_pool.connection_kwargs["db"]
            with client.monitor() as monitor:
                await cluster.publish(said("ana", "ana", "A: look_up | look_up", "limited"))
                await cluster.settles(2)
                client.echo("over")
                heard = list(itertools.takewhile(lambda each: each["command"] != "ECHO over", monitor.listen()))
        ours = [each["command"] for each in heard if (each["db"], each["client_type"]) == (here, "tcp")]
        asked = [command for command in ours if command.startswith("EVAL") and " attempt " in command]
        assert len(asked) == 1
        assert asked[0].startswith("EVALSHA")
        assert " ceiling " in asked[0], "both are asked in one"
        assert len(vendor.requests) == 1 + 3


async def told_of_its_end(cluster):
    """It goes out beside the turn's end, which does not wait for it."""
    for _ in range(400):
        told = [event for event in await cluster.events("turn_completed") if event.session == "ana"]
        if told:
            break
        await asyncio.sleep(0.05)
    (ended,) = told
    return ended
