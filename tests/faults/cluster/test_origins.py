"""Fault 5: what the engine or a timer writes races against what a person writes, a thousand times.

It gets a turn of its own, whatever it asks for: it never joins a person's turn and never cuts one.
"""

from __future__ import annotations

import random

from tests.faults.shop import job

SESSIONS = 40
ROUNDS = 25
AGENT = "patient"
ASKS_FOR = ("steer", "interrupt", "collect", None)


def one_round(dice, session, number):
    """A person's message and another's, in either order."""
    origin = dice.choice(("engine", "scheduled"))
    person = job(session, f"{session}-p{number}", f"P{number}: look_up", AGENT, channel=None)
    other = job(session, f"{session}-o{number}", f"O{number}", AGENT, channel=None, origin=origin)
    other["queue_mode"] = dice.choice(ASKS_FOR)
    return dice.sample([person, other], 2)


async def test_a_thousand_times_it_has_a_turn_of_its_own(cluster):
    dice = random.Random(5)
    cluster.configure({AGENT: {"queue_mode": "steer", "mailbox_max": None}})
    await cluster.run("ingress", "worker", "worker")
    jobs = [
        each for number in range(ROUNDS) for place in range(SESSIONS) for each in one_round(dice, f"s{place}", number)
    ]
    await cluster.publish(*jobs)
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs)
    assert {turn["state"] for turn in evidence.turns} == {"completed"}
    others = [mail for mail in evidence.mailbox if mail["origin"] != "customer"]
    assert len(others) == SESSIONS * ROUNDS
    assert {(mail["mode"], mail["verdict"], mail["cuts"]) for mail in others} == {("followup", "accepted", None)}
    said_in = {}
    for mail in evidence.mailbox:
        said_in.setdefault(mail["consumed_by"], []).append(mail["origin"])
    assert all(origins == origins[:1] or set(origins) == {"customer"} for origins in said_in.values())
    assert all(turn["origin"] == said_in[turn["id"]][0] for turn in evidence.turns)
    # It was a race: they came while a person's turn ran, and people's messages did join those.
    assert raced(evidence.turns, others) > 100
    assert {"steered", "accepted"} <= {mail["verdict"] for mail in evidence.mailbox if mail["origin"] == "customer"}


def raced(turns, others):
    """How many came while a person's turn was running in their session."""
    running = {}
    for turn in turns:
        if turn["origin"] == "customer":
            running.setdefault(turn["session_id"], []).append((turn["started_at"], turn["ended_at"]))
    return sum(any(begun <= mail["at"] <= ended for begun, ended in running[mail["session_id"]]) for mail in others)
