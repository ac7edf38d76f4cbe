"""A cancel and an interrupt reach whoever runs the turn: by a signal while the model talks, without Redis by the next
renewal, and at the boundary while a tool runs."""

from __future__ import annotations

import asyncio
import dataclasses
import json

from scripts.private_services.ports import free_ports
from tests.faults.cluster.member import until
from tests.faults.shop import job

LONG_S = 900
RENEWED_AFTER_US = LONG_S * 1_000_000 // 3
"""No renewal can tell an owner anything before it has had the session for so long."""
SHORT_S = 6
CANCELLED = job("ana", "ana-1", "A: charge ~ model")
CUT = job("ben", "ben-1", "B: charge ~ model")
CUTS = job("ben", "ben-2", "C: letter", queue_mode="interrupt")
IN_A_TOOL = job("cleo", "cleo-1", "T: letter@tool letter | letter")


async def asked_to_end(cluster, session):
    (turn,) = cluster.turns(session)
    said = await asyncio.to_thread(cluster.insika, "turns", "cancel", turn["id"], "--json")
    assert said.returncode == 0, said.stderr
    return cluster.tables.value("SELECT at FROM mailbox WHERE cuts = %s", turn["id"])


async def models_talk(cluster, *jobs):
    """Each after its first step."""
    for each in jobs:
        asked = {"text": each["text"]}
        await until(lambda asked=asked: len(cluster.diary("request", **asked)) == 2, f"{asked} to be asked")


async def cut(cluster, session):
    """When its first turn was."""
    await until(lambda: cluster.turns(session)[0]["state"] == "cancelled", f"the turn of {session} to be cut")
    return cluster.turns(session)[0]["ended_at"]


async def test_a_signal_tells_the_owner_at_once_while_the_model_talks(cluster):
    cluster.variables["INSIKA_LEASE_S"] = str(LONG_S)
    workers = [cluster.start("worker", composed={}) for _ in range(2)]
    await cluster.run("ingress", "outbox")
    for worker in workers:
        await worker.ready()
    began_at = cluster.tables.now()
    await cluster.publish(CANCELLED, CUT)
    await models_talk(cluster, CANCELLED, CUT)
    asked_at = await asked_to_end(cluster, "ana")
    await cluster.publish(CUTS)
    cut_at = {session: await cut(cluster, session) for session in ("ana", "ben")}
    said_at = {"ana": asked_at, "ben": cluster.turns("ben")[1]["created_at"]}
    for session, at in cut_at.items():
        print(f"{session}: cut {(at - said_at[session]) / 1e6:.2f} s after it was said")
        assert at < began_at + RENEWED_AFTER_US
    await cluster.settles(4)  # one of them is the cancel
    assert not cluster.gates.is_open("model"), "nothing but a cut can have ended these requests"
    cluster.judge([CANCELLED, CUT, CUTS])
    assert [received.payload["content"] for received in cluster.received] == ["Done: B, C"]
    assert errors(cluster) == {"ana": ["cancelled"], "ben": ["interrupted", None]}
    assert {call["state"] for call in last_requests(cluster)} == {"estimated"}


async def test_without_redis_a_renewal_tells_it_while_the_model_talks_and_a_tool_runs_to_its_end(cluster):
    closed = f"redis://127.0.0.1:{free_ports(1)[0]}/0"
    cluster.services = dataclasses.replace(cluster.services, redis=closed)
    cluster.variables["INSIKA_LEASE_S"] = str(SHORT_S)
    worker = cluster.start("worker", composed={})
    await cluster.run("ingress", "outbox")
    await worker.ready()
    await cluster.publish(CANCELLED, IN_A_TOOL)
    await models_talk(cluster, CANCELLED)
    await cluster.begun("letter")
    asked_at = await asked_to_end(cluster, "ana")
    await asked_to_end(cluster, "cleo")
    print(f"cut {(await cut(cluster, 'ana') - asked_at) / 1e6:.2f} s after it was said; a lease is {SHORT_S} s")
    # By now the owner knows of the other cancel as well; and again, at the next renewal.
    lease_until = cluster.session("cleo")["lease_until"]
    await until(lambda: cluster.session("cleo")["lease_until"] > lease_until, "another renewal")
    assert calls(cluster) == [("letter", "started"), ("letter", "announced")]
    assert [turn["state"] for turn in cluster.turns("cleo")] == ["running"]
    cluster.gates.open("tool")
    await cut(cluster, "cleo")
    await cluster.settles(4)  # two of them are the cancels
    cluster.judge([CANCELLED, IN_A_TOOL])
    assert calls(cluster) == [("letter", "done"), ("letter", "not_run")]
    assert errors(cluster) == {"ana": ["cancelled"], "cleo": ["cancelled"]}
    assert len(cluster.diary("request", text=IN_A_TOOL["text"])) == 1
    assert not cluster.received


async def test_a_held_turn_obeys_a_cancel_and_what_waits_behind_it_waits_on(cluster):
    _, _, worker = await cluster.run("ingress", "outbox", "worker")
    behind = job("cleo", "cleo-2", "U: letter", queue_mode="followup")
    await cluster.publish(IN_A_TOOL)
    await cluster.begun("letter")
    await cluster.publish(behind)
    await until(lambda: len(cluster.turns("cleo")) == 2, "the other message to be accepted")
    assert (await asyncio.to_thread(cluster.insika, "sessions", "pause", "cleo")).returncode == 0
    cluster.gates.open("tool")
    await until(lambda: cluster.session("cleo")["lease_id"] is None, "the turn to be held")
    assert [turn["state"] for turn in cluster.turns("cleo")] == ["running", "queued"]
    assert calls(cluster) == [("letter", "done"), ("letter", "done")]
    said = await asyncio.to_thread(cluster.insika, "turns", "cancel", cluster.turns("cleo")[0]["id"])
    assert said.returncode == 0, said.stderr
    await cut(cluster, "cleo")
    await until(lambda: cluster.session("cleo")["lease_id"] is None, "its owner to let go")
    assert [turn["state"] for turn in cluster.turns("cleo")] == ["cancelled", "queued"]
    assert (await asyncio.to_thread(cluster.insika, "sessions", "resume", "cleo")).returncode == 0
    await cluster.settles(3)  # one of them is the cancel
    cluster.judge([IN_A_TOOL, behind], gone=1, counted=2)  # its owner left it at a boundary
    assert [turn["state"] for turn in cluster.turns("cleo")] == ["cancelled", "completed"]
    assert [received.payload["content"] for received in cluster.received] == ["Done: T, U"]
    assert [event.type for event in await cluster.events("turn_held")] == ["turn_held"]
    assert worker.runs


def errors(cluster):
    """By session: the error of each turn."""
    statement = "SELECT s.name, t.error FROM turns AS t JOIN sessions AS s ON s.id = t.session_id ORDER BY t.number"
    rows = cluster.tables.of(statement)
    found = {}
    for row in rows:
        found.setdefault(row["name"], []).append(json.loads(row["error"])["type"] if row["error"] else None)
    return found


def last_requests(cluster):
    """Those that were cut."""
    cancelled = "SELECT id FROM turns WHERE state = 'cancelled'"
    return cluster.tables.of(f"SELECT state FROM model_calls WHERE step = 2 AND turn_id IN ({cancelled})")


def calls(cluster):
    rows = cluster.tables.of("SELECT name, state FROM tool_calls WHERE name = 'letter' ORDER BY step, idx")
    return [(row["name"], row["state"]) for row in rows]
