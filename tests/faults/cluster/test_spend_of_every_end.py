"""Fault 35: turns that are cancelled, die with their worker or run out of time, at every point of a request. What they
spent counts, or an estimate that is marked as one; nothing else does, and nothing of it outlives its day."""

from __future__ import annotations

import signal

import psycopg

from insika.providers.script import Script
from tests.faults.cluster.cluster import SHORT_LEASE
from tests.faults.cluster.limited import (
    asked_by,
    booked,
    calls,
    charged,
    claude,
    configure,
    outcomes,
    said,
    spent,
)
from tests.faults.cluster.member import until
from tests.faults.cluster.operators import operator
from tests.faults.shop import Plan, next_step
from tests.vendors.troubles import Cuts, Refuses, Stalls, Waits

POINTS = {
    "unanswered": Waits(),
    "headers": Waits(headers_first=True),
    "begun": Stalls(1),
    "half": Stalls(4),
    "pinging": Stalls(3, pings=True),
    "second": Stalls(2),
    "tool": None,
}
"""Where a turn stands when it is ended. At "second" its first step is paid for already; at "tool", too."""
ENDS = ("cancelled", "killed", "hasty", "brief")
"""By a person; with the worker; by the time of one attempt; by that of the turn."""
BROKEN = {"refused": Refuses(503), "cut": Cuts(5)}
"""And requests that the vendor itself ends."""


def text_of(name):
    point = name.partition("-")[2]
    return {"second": f"{name}: look_up", "tool": f"{name}: look_up@held"}.get(point, name)


def name_of(seen):
    """Whose request it is, once it is read: what a person said first."""
    said_first = seen.body["messages"][0]["content"][0]["text"] if seen.body else ""
    return Plan.read(said_first).label


class Trouble:
    """Made for a session's first request, or at "second" for its second; and for no later one."""

    def __init__(self, vendor):
        self.vendor = vendor

    def __call__(self, seen):
        name = name_of(seen)
        point = name.partition("-")[2]
        earlier = sum(name_of(other) == name for other in self.vendor.requests[: seen.number])
        return {**POINTS, **BROKEN}.get(point) if earlier == (point == "second") else None


NAMES = [f"{end}-{point}" for end in ENDS for point in POINTS if (end, point) != ("hasty", "tool")]


async def test_what_was_spent_counts_and_nothing_more_and_not_tomorrow(cluster):
    profiles = {
        "cancelled": {},
        "killed": {},
        "hasty": {"reliability": {"retries": 0, "timeout": 3}},
        "brief": {"limits": {"turn_timeout": 4}},
        "broken": {},
    }
    configure(cluster, profiles)
    cluster.variables |= SHORT_LEASE
    async with claude(cluster, Script(afterwards=next_step)) as vendor, operator(cluster.services) as person:
        vendor.choose = Trouble(vendor)
        _, doomed = await cluster.run("ingress", "worker")
        await cluster.publish(said("warm-up", "warm-up", "warm-up", "broken"))
        await cluster.settles(1)  # the worker has its vendor's library now
        names = [*NAMES, *(f"broken-{point}" for point in BROKEN)]
        await cluster.publish(*(said(name, name, text_of(name), name.partition("-")[0]) for name in names))
        expected = 1 + len(names) + len(ENDS)  # each "second" asks twice
        await until(lambda: len(vendor.requests) >= expected, "all to have asked", lambda: len(vendor.requests))
        await cluster.begun("look_up", 2 * len(ENDS) - 1)
        for name in names:
            if name.startswith("cancelled"):
                (turn,) = cluster.turns(name)
                await person.control.cancel(turn["id"], request_id=name)
        await until(
            lambda: outcomes(cluster, "hasty").get("provider_unavailable") == len(POINTS) - 1, "attempts to end"
        )
        await until(lambda: outcomes(cluster, "brief").get("timeout", 0) >= len(POINTS) - 1, "turns to end")
        await until(lambda: outcomes(cluster, "cancelled").get("cancelled", 0) >= len(POINTS) - 1, "cancelling")
        await doomed.dies()
        cluster.gates.open("held")
        heir = cluster.start("worker")
        await cluster.settles(1 + len(names))

        for name in names:
            the_books_are_true(cluster, vendor, name)
        for end in ENDS:
            sums = sum(sum(booked(row)) for row in calls(cluster, end))
            assert await spent(cluster, end) == sums > 0
        assert outcomes(cluster, "killed") == {"completed": len(POINTS)}
        assert outcomes(cluster, "broken") == {"completed": 1, "provider_unavailable": len(BROKEN)}
        await the_terminal_events_say_the_same(cluster)
        assert await heir.stops() == 0
        await a_budget_holds_what_was_spent_and_is_whole_tomorrow(cluster)


def the_books_are_true(cluster, vendor, name):
    rows, requests = asked_by(cluster, name), [seen for seen in vendor.requests if name_of(seen) == name]
    assert len(rows) == len(requests), name
    for row, seen in zip(rows, requests, strict=True):
        if seen.finished and seen.status == 200:
            assert (row["state"], booked(row)) == ("measured", charged(seen)), name
        else:
            assert row["state"] == "estimated", name
            # A vendor that refuses outright bills nothing.
            assert (sum(booked(row)) == 0) is (seen.status is not None and seen.status >= 400), name
            if seen.events and not name.startswith("killed"):  # whoever was told what the input cost has kept it
                assert [row[kind] for kind in ("input", "cache_read", "cache_write")] == [
                    seen.usage.input,
                    seen.usage.cache_read,
                    seen.usage.cache_write,
                ], name


async def the_terminal_events_say_the_same(cluster):
    """A cancelled turn has none that tells of usage."""
    ended = [event for event in await cluster.events() if "usage" in event.data and event.type.startswith("turn_")]
    told = {event.session: sum(event.data["usage"].values()) for event in ended}
    sums = {name: sum(sum(booked(row)) for row in asked_by(cluster, name)) for name in told}
    assert len(told) == 1 + len(NAMES) + len(BROKEN) - len(POINTS)
    assert told == sums


async def a_budget_holds_what_was_spent_and_is_whole_tomorrow(cluster):
    """The agent of the turns that were cancelled gets a budget of one token more than those have cost."""
    cap = await spent(cluster, "cancelled") + 1
    configure(cluster, {"cancelled": {"budget": {"daily": cap}}})
    worker = await cluster.start("worker").ready()
    for id, outcome in (("first", "completed"), ("second", "budget_exceeded"), ("tomorrow", "completed")):
        if id == "tomorrow":
            with psycopg.connect(cluster.services.database) as connection:
                connection.execute(A_DAY_LATER)
        await cluster.publish(said(f"budget-{id}", f"budget-{id}", f"budget-{id}", "cancelled"))
        (ended,) = await until(lambda: done(cluster, f"budget-{id}"), f"the end of {id}")  # noqa: B023
        assert (ended["error"] or ended["outcome"]) == outcome
    worker.signal(signal.SIGTERM)


A_DAY_LATER = """
CREATE OR REPLACE FUNCTION insika_now() RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() + interval '1 day' $$
"""
"""The store's own clock."""


def done(cluster, session):
    return cluster.tables.of(
        "SELECT t.outcome, t.error ->> 'type' AS error FROM turns AS t JOIN sessions AS s ON s.id = t.session_id "
        "WHERE s.name = %s AND t.state IN ('completed', 'failed')",
        session,
    )
