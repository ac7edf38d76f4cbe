"""How turns ran, and what they left in the conversations."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from insika.messages import Message, Role, ToolCall
from scripts.storm.evidence import Evidence, Row, by
from scripts.storm.jobs import Agent
from tests.strict import Refused, check_anthropic, check_openai


def turns_end_well(evidence: Evidence) -> Iterator[str]:
    """No turn failed, least of all as lost or poison; only interrupts cancelled any"""
    interrupts = {row["cuts"] for row in evidence.mailbox if row["verdict"] == "interrupting"}
    for row in evidence.turns:
        if row["state"] == "completed" and row["outcome"] == "completed":
            continue
        if (
            row["state"] == "cancelled"
            and row["id"] in interrupts
            and (row["error"] or {}).get("type") == "interrupted"
        ):
            continue
        yield f"turn {row['id']} ended as {row['state']}, {row['outcome']}: {row['error']}"


def interrupts_interrupt(evidence: Evidence) -> Iterator[str]:
    """Every turn that was told to be interrupted was"""
    for row in evidence.mailbox:
        turn = evidence.turns_by_id.get(row["cuts"])
        if row["verdict"] == "interrupting" and (turn is None or turn["state"] != "cancelled"):
            state = "gone" if turn is None else turn["state"]
            yield f"turn {row['cuts']} is {state}, and {row['job_id']} had interrupted it"
        if row["verdict"] == "interrupting" and row["agent"] != Agent.INTERRUPTED and row["mode"] != "interrupt":
            yield f"{row['job_id']} interrupted a turn and was not to"


def turns_never_overlap(evidence: Evidence) -> Iterator[str]:
    """No two turns of a session ran at the same time"""
    started = [row for row in evidence.turns if row["started_at"] is not None]
    for session_id, rows in by(started, "session_id").items():
        ordered = sorted(rows, key=lambda row: float(row["started_at"]))
        for first, second in itertools.pairwise(ordered):
            if first["ended_at"] is None or first["ended_at"] > second["started_at"]:
                yield f"session {session_id}: turn {first['id']} was not over when {second['id']} began"


def owners_follow_one_another(evidence: Evidence) -> Iterator[str]:
    """No owner wrote into a conversation after the next one had"""
    for session_id, rows in by(evidence.messages, "session_id").items():
        epochs = [row["epoch"] for row in sorted(rows, key=lambda row: int(row["seq"]))]
        if epochs != sorted(epochs):
            yield f"session {session_id} has messages of the owners {epochs}"


def conversations_are_valid(evidence: Evidence) -> Iterator[str]:
    """Every conversation is one that Anthropic and OpenAI take, and none was left within a batch"""
    for session_id, rows in by(evidence.messages, "session_id").items():
        ordered = sorted(rows, key=lambda row: int(row["seq"]))
        if [row["seq"] for row in ordered] != list(range(1, len(ordered) + 1)):
            yield f"session {session_id} has the places {[row['seq'] for row in ordered]}"
        conversation = [_message(row) for row in ordered]
        try:
            check_anthropic(conversation)
            check_openai(conversation)
        except Refused as refused:
            yield f"session {session_id}: {refused}"
        if conversation[-1].tool_calls:
            yield f"session {session_id} ends within a batch"


def requests_have_their_rows(evidence: Evidence) -> Iterator[str]:
    """Every request to a model has its row, settled, and each answer was measured once"""
    asked: dict[str, int] = {}
    for entry in evidence.taken_down("journal", "asked"):
        session = entry["labels"][0].partition("#")[0] if entry["labels"] else ""
        asked[session] = asked.get(session, 0) + 1
    rows = by(evidence.model_calls, "session_id")
    for session_id, (tenant, name) in evidence.names.items():
        label = f"{tenant}:{name}" if tenant else name
        if asked.get(label, 0) > len(rows.get(session_id, ())):
            yield f"session {label} asked {asked[label]} times and has {len(rows.get(session_id, ()))} rows"
    answered = sorted((row["turn_id"], row["step"]) for row in evidence.messages if row["role"] == "assistant")
    measured = sorted((row["turn_id"], row["step"]) for row in evidence.model_calls if row["state"] == "measured")
    if answered != measured:
        yield f"{len(answered)} answers are in the conversations, and {len(measured)} requests were measured"
    for row in evidence.model_calls:
        if row["state"] == "open":
            yield f"turn {row['turn_id']} has an open request at step {row['step']}, attempt {row['attempt']}"


CHECKS = (
    turns_end_well,
    interrupts_interrupt,
    turns_never_overlap,
    owners_follow_one_another,
    conversations_are_valid,
    requests_have_their_rows,
)


def _message(row: Row) -> Message:
    given = json.loads(row["tool_calls"]) if isinstance(row["tool_calls"], str) else row["tool_calls"] or ()
    calls = tuple(
        ToolCall(call["id"], call["name"], call.get("arguments", {}), call.get("malformed")) for call in given
    )
    return Message(Role(row["role"]), row["content"], calls, row["tool_call_id"], bool(row["is_error"]))
