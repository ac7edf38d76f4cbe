"""Messages that are taken back by another process than their owner's, at whatever moment: each is said or withdrawn,
never both, and the answer tells which. Nothing that runs is cut or delayed by it."""

from __future__ import annotations

import asyncio
from collections import Counter

from insika.storage.rows import ApprovalDecision
from tests.faults.cluster.member import until
from tests.faults.cluster.operators import operator
from tests.faults.shop import job, raw

ASKS, STEERS, FOLLOWS, COLLECTS = "asks", "steers", "follows", "collects"
AGENTS = {
    ASKS: {"queue_mode": "followup"},
    STEERS: {"queue_mode": "steer"},
    FOLLOWS: {"queue_mode": "followup"},
    COLLECTS: {"queue_mode": "collect", "debounce_ms": 600_000, "debounce_max_ms": 600_000},
}
HELD = "letter@held | letter"
OPENING = {
    "behind": (FOLLOWS, f"A: {HELD}"),
    "joining": (STEERS, f"A: {HELD}"),
    "one_of_two": (STEERS, f"A: {HELD}"),
    "model": (FOLLOWS, "A: letter ~ held"),
    "asks": (ASKS, "A: charge letter"),
    "paused": (COLLECTS, "A"),
}
"""What the person says first, by session; B and C follow while that stands where it stands."""
BOTH = ("one_of_two", "behind")
"""Here there is a C as well."""
TURNS = {"behind": ["A", "C"], "joining": ["A"], "one_of_two": ["AC"], "model": ["A"], "asks": ["A"], "paused": []}
"""Which texts are in which turns once B was taken back, and the held turn cancelled."""
PEOPLE = 60
OPEN_CONTROLS = "SELECT 1 FROM mailbox WHERE verdict = 'control' AND ended IS NULL"


async def ended(cluster, session):
    """What became of B, once somebody has looked at it."""
    return await until(lambda: mail(cluster, session)["B"]["ended"], f"B of {session} to end")


def mail(cluster, session):
    statement = "SELECT m.* FROM mailbox AS m JOIN sessions AS s ON s.id = m.session_id WHERE s.name = %s"
    return {row["job_id"]: row for row in cluster.tables.of(statement, session)}


def begun(cluster, session):
    if session == "paused":
        return True  # its person has not been quiet for long enough
    if session == "asks":
        return [turn["state"] for turn in cluster.turns(session)] == ["waiting"]
    runs = {run["turn_id"] for run in cluster.diary(tool="letter")}
    return any(turn["id"] in runs for turn in cluster.turns(session))


async def brought_to_their_moments(cluster, control):
    """What was said until then."""
    opening = [job(session, "A", text, agent) for session, (agent, text) in OPENING.items()]
    await cluster.publish(*opening)
    await until(lambda: all(begun(cluster, session) for session in OPENING), "all to be under way")
    await until(lambda: mail(cluster, "paused"), "the first message to be accepted")
    assert await control.pause("paused")
    more = [job(each["session"], "B", "B", each["agent"]) for each in opening]
    more += [job(session, "C", "C", OPENING[session][0]) for session in BOTH]
    await cluster.publish(*more)
    await until(lambda: sum(len(mail(cluster, each)) for each in OPENING) == len(opening + more), "all of it")
    return [*opening, *more]


async def test_at_every_moment_the_owner_does_it_and_nothing_is_cut(cluster):
    cluster.configure(AGENTS, asks={ASKS: ["charge"]})
    workers = [cluster.start("worker", composed={}) for _ in range(2)]
    await cluster.run("ingress", "outbox")
    for worker in workers:
        await worker.ready()
    async with operator(cluster.services) as somebody:
        control = somebody.control
        jobs = await brought_to_their_moments(cluster, control)
        asked = [await control.withdraw(each, "B", request_id=f"take {each} back") for each in OPENING]
        assert {(each.control is not None, each.ended) for each in asked} == {(True, None)}
        # Nobody runs these two: whoever takes them up for it does nothing else.
        assert [await ended(cluster, session) for session in ("asks", "paused")] == ["withdrawn"] * 2
        stand = {session: cluster.turns(session)[0]["state"] for session in OPENING}
        assert stand == dict.fromkeys(OPENING, "running") | {"asks": "waiting", "paused": "queued"}
        cluster.gates.open("held")
        assert {await ended(cluster, session) for session in OPENING} == {"withdrawn"}
        await what_comes_later_is_answered(control)
        approval = cluster.tables.value("SELECT id FROM approvals")
        assert (await control.decide(approval, ApprovalDecision.APPROVED, by="ana")).won
        waits = cluster.turns("paused")[0]["id"]  # for its person's silence, and for its operator
        assert await control.cancel(waits, request_id="stop")
        await until(lambda: cluster.turns("paused")[0]["state"] == "cancelled", "the held turn to be cancelled")
    await cluster.settles(len(jobs) + len(asked) + 1)
    evidence = cluster.judge(jobs, counted=2)
    assert not cluster.tables.of(OPEN_CONTROLS)
    assert texts_of_turns(evidence) == TURNS
    asked_for = evidence.turn_of(mail(cluster, "asks")["A"])["id"]
    assert {turn["attempt"] for turn in evidence.turns if turn["id"] != asked_for} == {1}
    assert {call["state"] for call in evidence.tool_calls} == {"done"}
    assert {event.session for event in await cluster.events("message_withdrawn")} == set(OPENING)


async def what_comes_later_is_answered(control):
    """At once, and nobody is asked."""
    again = await control.withdraw("joining", "B", request_id="once more")
    late = await control.withdraw("joining", "A", request_id="too late")
    assert [(each.control, each.ended) for each in (again, late)] == [(None, "withdrawn"), (None, "turn")]
    assert await control.withdraw("joining", "Z", request_id="of nothing") is None


def wanted_back(session):
    return "ABC"[int(session[1:]) % 3]


async def test_in_a_race_with_its_owner_a_message_is_said_or_withdrawn(cluster):
    cluster.configure(AGENTS)
    await cluster.run("ingress", "outbox", "worker", "worker")
    agents = [FOLLOWS, STEERS]
    jobs = [
        job(f"p{person}", letter, f"{letter}: look_up | charge" if letter == "A" else letter, agents[person % 2])
        for letter in "ABC"
        for person in range(PEOPLE)
    ]
    async with operator(cluster.services) as somebody:

        async def sent(each):
            await somebody.door.take(raw(each))
            if each["id"] != wanted_back(each["session"]):
                return None
            return await somebody.control.withdraw(each["session"], each["id"], request_id="back")

        asked = [answer for answer in await asyncio.gather(*map(sent, jobs)) if answer is not None]
    await cluster.settles(len(jobs))
    evidence = cluster.judge(jobs)
    assert not cluster.tables.of(OPEN_CONTROLS)
    names = {row["id"]: row["name"] for row in evidence.sessions}
    mine = [row for row in evidence.mailbox if row["job_id"] == wanted_back(names[row["session_id"]])]
    became = {row["session_id"]: row["ended"] for row in mine}
    assert len(asked) == len(became) == PEOPLE
    assert all(answer.ended in (None, became[answer.session_id]) for answer in asked)
    print(Counter(became.values()))
    assert set(became.values()) == {"withdrawn", "turn"}, "it was no race"


def texts_of_turns(evidence):
    """By session: the texts of each turn that was begun, in the order of the conversation."""
    names = {row["id"]: row["name"] for row in evidence.sessions}
    found = {name: {} for name in names.values()}
    for row in sorted(evidence.messages, key=lambda row: row["seq"]):
        if row["position"] is not None:
            found[names[row["session_id"]]].setdefault(row["turn_id"], []).append(row["content"][0])
    return {name: ["".join(texts) for texts in turns.values()] for name, turns in found.items()}
