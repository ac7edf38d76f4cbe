"""Fault 34: turns that arrive together pass no cap, ceiling or rate but by what was under way when it was crossed."""

from __future__ import annotations

from insika.providers.script import Say, Script
from tests.faults.cluster.barrier import BARRIER
from tests.faults.cluster.limited import at_the_barrier, calls, claude, configure, outcomes, said, spent
from tests.faults.cluster.member import until
from tests.vendors.troubles import Waits

ANSWER = Script(afterwards=Say("x" * 400))
AGENTS = {f"{since}-{callers}": callers for callers in (8, 50) for since in ("new", "known")}
CAP = 700
"""More than one turn costs, and less than two."""
WORKERS, SLOTS, FEW_SLOTS = 4, 30, 2
LONGEST = 366 * 86_400


def turns(agent, wave, count, tenant="acme"):
    name = f"{agent}-{wave}"
    return [said(f"{name}-{n}", f"{name}-{n}", "hello", agent, tenant=tenant) for n in range(count)]


def wave(name):
    return [turn for agent, callers in AGENTS.items() for turn in turns(agent, name, callers)]


async def test_of_those_that_arrive_together_each_costs_one_call_and_of_the_next_none(cluster):
    """The documented overshoot at its worst: all are let in before any of them has spent a token."""
    configure(cluster, {agent: {"budget": {"daily": CAP, "alert_at": None}} for agent in AGENTS})
    cluster.variables |= {"INSIKA_SLOTS": str(SLOTS)}
    async with claude(cluster, ANSWER) as vendor:
        workers = [cluster.start("worker", barred=True) for _ in range(WORKERS)]
        await cluster.run("ingress")
        for worker in workers:
            await worker.ready()
        cluster.gates.open(BARRIER)
        known = [turn for agent in AGENTS if "known" in agent for turn in turns(agent, "before", 1)]
        await cluster.publish(*known)
        await cluster.settles(len(known))
        before = {agent: await spent(cluster, agent, "acme") for agent in AGENTS}
        assert [0 < each < CAP for each in before.values()] == ["known" in agent for agent in AGENTS]

        vendor.choose = lambda seen: Waits()
        at_once = sum(AGENTS.values())
        await at_the_barrier(cluster, wave("together"))
        await until(lambda: len(vendor.requests) == len(known) + at_once, "all to be asked for")
        vendor.gate.set()
        await cluster.settles(len(known) + at_once)
        cost = vendor.requests[0].usage.total
        assert {seen.usage.total for seen in vendor.requests} == {cost}

        await at_the_barrier(cluster, wave("after"))
        await cluster.settles(len(known) + 2 * at_once)
        for agent, callers in AGENTS.items():
            answered = callers + ("known" in agent)
            assert outcomes(cluster, agent) == {"completed": answered, "budget_exceeded": callers}
            assert await spent(cluster, agent, "acme") == answered * cost == before[agent] + callers * cost
        assert len(vendor.requests) == len(known) + at_once, "somebody was let in past the cap"

        strangers = [turn for agent in AGENTS for turn in turns(agent, "elsewhere", 1, tenant="other")]
        await cluster.publish(*strangers)
        await cluster.settles(len(known) + 2 * at_once + len(strangers))
        for stranger in strangers:
            assert [turn["state"] for turn in cluster.turns(stranger["session"])] == ["completed"]


async def test_no_more_is_spent_than_was_under_way_and_no_more_turns_run_than_the_rate_allows(cluster):
    """Fifty for each limit, as fast as four workers with two slots each can take them."""
    cap, rate = 5_000, 10
    profiles = {
        "budget": {"budget": {"daily": cap, "alert_at": None}},
        "ceiling": {"limits": {"agent_token_ceiling": cap}},
        "quick": {"limits": {"chat_rate_limit": rate}},
    }
    configure(cluster, profiles, edge={"agent_token_window": LONGEST, "chat_rate_window": LONGEST})
    cluster.variables |= {"INSIKA_SLOTS": str(FEW_SLOTS)}
    async with claude(cluster, ANSWER) as vendor:
        await cluster.run("ingress", *["worker"] * WORKERS)
        serial = [said("ana", f"ana-{n}", f"hello {n}", "quick", queue_mode="followup") for n in range(50)]
        await cluster.publish(*turns("budget", "all", 50), *turns("ceiling", "all", 50), *serial)
        await cluster.settles(150)

        needed = -(-cap // vendor.requests[0].usage.total)
        for agent, refusal in (("budget", "budget_exceeded"), ("ceiling", "limited")):
            told = outcomes(cluster, agent)
            assert needed <= told["completed"] == len(calls(cluster, agent)) <= needed + FEW_SLOTS * WORKERS
            assert told == {"completed": told["completed"], refusal: 50 - told["completed"]}
        waits = cluster.tables.of("SELECT error ->> 'retry_after' AS wait FROM turns WHERE state = 'failed'")
        assert all(0 < float(turn["wait"]) <= 86_400 for turn in waits)

        assert [turn["outcome"] for turn in cluster.turns("ana")] == ["completed"] * rate + ["limited"] * (50 - rate)
        assert len(calls(cluster, "quick")) == rate
        breaches = [event for event in await cluster.events("limit_breached") if event.agent == "quick"]
        assert {event.data["limit"] for event in breaches} == {rate}
        assert len(breaches) == 50 - rate
        assert len(vendor.requests) == cluster.tables.value("SELECT count(*) FROM model_calls")
