"""The verdict on what a store, its tools and its receiver have been through: every rule that must hold, whatever died.

It looks at the file with eyes of its own and trusts nothing that the product says about itself.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from actors.receiver import Received
from insika.messages import Message, Role, ToolCall
from tests.faults.shop import ONCE_ONLY, diary_entries
from tests.strict import check_anthropic, check_openai

Row = Mapping[str, Any]

NEVER_US = 2**62
ENDED = ("completed", "failed", "cancelled", "refused")
PATIENCE_S = 20.0
BREATH_S = 0.01

_TABLES = ("sessions", "mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox")
_UNSETTLED = """
SELECT 'session' AS what, name AS which, json_object('waiting', waiting, 'turn', turn_id, 'lease', lease_id) AS how
FROM sessions WHERE waiting > 0 OR turn_id IS NOT NULL OR lease_id IS NOT NULL
UNION ALL
SELECT 'delivery', id, state FROM outbox WHERE state = 'pending' OR (state = 'delivering' AND ?)
"""


def rows(database: Path, sql: str, *values: Any) -> list[Row]:
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql, values)]


async def until(holds: Callable[[], Any], what: str = "", *, unless: Callable[[], Any] = lambda: "") -> None:
    """Look again and again until `holds()`. `unless()` tells what is in its way, for whoever waited in vain."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s in vain {what} {unless()}"
        await asyncio.sleep(BREATH_S)


def can_be_written(database: Path) -> bool:
    """Whether nobody is within a write to the file, or will be out of it in a moment."""
    with closing(sqlite3.connect(database, timeout=0.3, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


async def settled(database: Path, *, claims_too: bool = True) -> None:
    """Until nothing waits, runs or is owned, and no delivery is pending, nor, with `claims_too`, claimed."""

    def unsettled() -> list[Row]:
        return rows(database, _UNSETTLED, claims_too)

    await until(lambda: not unsettled(), "for everything to be settled:", unless=unsettled)


@dataclass
class Evidence:
    """Everything there is to know afterwards. `received`: what the receiver has accepted, in order."""

    sessions: Sequence[Row]
    mailbox: Sequence[Row]
    turns: Sequence[Row]
    messages: Sequence[Row]
    tool_calls: Sequence[Row]
    model_calls: Sequence[Row]
    outbox: Sequence[Row]
    runs: Sequence[Row]
    requests: Sequence[Row]
    refused: Sequence[Row]
    received: Sequence[Received] = field(default_factory=list)

    @classmethod
    def gathered(cls, folder: Path, received: Sequence[Received]) -> Evidence:
        database = folder / "insika.db"
        tables = {table: rows(database, f"SELECT rowid AS _, * FROM {table}") for table in ("sessions", "outbox")}
        for table in _TABLES:
            tables.setdefault(table, rows(database, f"SELECT * FROM {table}"))
        kinds = [list(diary_entries(folder, kind)) for kind in ("tool", "request", "refused")]
        return cls(*(tables[table] for table in _TABLES), *kinds, received)

    def of_turn(self, job_id: str) -> Row:
        """The turn that a job ended in."""
        (mail,) = [row for row in self.mailbox if row["job_id"] == job_id]
        return self.turn_of(mail)

    def turn_of(self, mail: Row) -> Row:
        return self._turns_by_id[mail["consumed_by"] or mail["turn_id"]]

    def of_session(self, table: str, session_id: int) -> Sequence[Row]:
        """The rows of a table that belong to a session."""
        return self._by_session[table].get(session_id, ())

    def conversation(self, session_id: int) -> list[Message]:
        said = self.of_session("messages", session_id)
        return [_message(row) for row in sorted(said, key=lambda row: int(row["seq"]))]

    @cached_property
    def _turns_by_id(self) -> Mapping[str, Row]:
        return {row["id"]: row for row in self.turns}

    @cached_property
    def _by_session(self) -> Mapping[str, Mapping[int, Sequence[Row]]]:
        found: dict[str, dict[int, list[Row]]] = {}
        for table in ("mailbox", "messages", "outbox"):
            rows = found[table] = defaultdict(list)
            for row in getattr(self, table):
                rows[row["session_id"]].append(row)
        return found


def judge(
    evidence: Evidence,
    jobs: Collection[Mapping[str, Any]],
    *,
    gone: int,
    failures: Collection[str],
    counted: int = 0,
) -> None:
    """Raise AssertionError for the first rule that does not hold. `jobs`: what the producer sent. `gone`: how many
    processes died or left on the way. `failures`: the ids of the jobs whose turns had to fail. `counted`: how often
    operators decided, held or let go on, at most, each of which counts a session's mail up without a message."""
    assert list(evidence.refused) == []
    every_session_is_at_rest(evidence, counted)
    every_job_is_in_one_turn(evidence, jobs, failures)
    every_conversation_is_valid(evidence)
    no_call_was_repeated(evidence)
    every_request_has_its_row(evidence, gone)
    every_answer_left_at_most_once(evidence)


def every_session_is_at_rest(evidence: Evidence, counted: int = 0) -> None:
    assert sum(session["mail_seq"] for session in evidence.sessions) <= len(evidence.mailbox) + counted
    for session in evidence.sessions:
        at_rest: dict[str, object] = {"waiting": 0, "controls": 0, "open_calls": 0}
        at_rest |= {"turn_id": None, "turn_key": None, "lease_id": None, "parked_at": None}
        assert {name: session[name] for name in at_rest} == at_rest
        assert session["due_at"] == NEVER_US
        mine = {table: evidence.of_session(table, session["id"]) for table in ("mailbox", "messages", "outbox")}
        positions = {row["position"] for row in mine["mailbox"]}
        assert len(positions) == len(mine["mailbox"])
        assert positions <= set(range(1, session["mail_seq"] + 1))
        assert sorted(row["seq"] for row in mine["messages"]) == list(range(1, session["log_seq"] + 1))
        assert len(mine["outbox"]) == session["lane_seq"]


def every_job_is_in_one_turn(
    evidence: Evidence, jobs: Collection[Mapping[str, Any]], failures: Collection[str]
) -> None:
    names = {row["id"]: row["name"] for row in evidence.sessions}
    mail = [row for row in evidence.mailbox if row["verdict"] != "control"]
    assert Counter((names[row["session_id"]], row["job_id"]) for row in mail) == Counter(
        (job["session"], job["id"]) for job in jobs
    )
    texts = {(job["session"], job["id"]): job["text"] for job in jobs}
    said = {(row["session_id"], row["position"]): row for row in evidence.messages if row["position"] is not None}
    assert len(said) == len([row for row in evidence.messages if row["position"] is not None])
    for row in mail:
        message = said.pop((row["session_id"], row["position"]), None)
        if row["ended"] == "withdrawn":
            assert message is None
            continue
        assert row["ended"] == "turn"
        assert message is not None
        assert message["turn_id"] == row["consumed_by"]
        assert message["content"] == row["text"] == texts[names[row["session_id"]], row["job_id"]]
    assert not said, "a message is in the log that nobody sent"
    assert all(row["ended"] == "control" for row in evidence.mailbox if row["verdict"] == "control")
    assert {row["id"] for row in evidence.turns} == {row["consumed_by"] or row["turn_id"] for row in mail}
    assert all(row["state"] in ENDED for row in evidence.turns)
    failed = {row["job_id"] for row in mail if evidence.turn_of(row)["state"] == "failed"}
    assert failed == set(failures)
    for session in evidence.sessions:
        spoken = [row for row in evidence.of_session("messages", session["id"]) if row["position"]]
        spoken.sort(key=lambda row: int(row["seq"]))
        # A message that joins a running turn may pass one that waits for a turn of its own.
        for joined in (False, True):
            positions = [row["position"] for row in spoken if (row["step"] > 0) is joined]
            assert positions == sorted(positions), f"{session['name']}: not in order of arrival"


def every_conversation_is_valid(evidence: Evidence, *, finished: bool = True) -> None:
    """Not `finished`: the last batch may still be open, then with none of its results."""
    for session in evidence.sessions:
        conversation = evidence.conversation(session["id"])
        if conversation:
            check_anthropic(conversation)
            check_openai(conversation)
            assert not (finished and conversation[-1].tool_calls), "a batch was left open"


def no_call_was_repeated(evidence: Evidence) -> None:
    runs = Counter((row["turn_id"], row["call_id"]) for row in evidence.runs)
    calls = {(row["turn_id"], row["call_id"]): row for row in evidence.tool_calls}
    assert runs.keys() <= calls.keys(), "a tool ran for a call that is in no log"
    for key, call in calls.items():
        assert call["state"] in ("done", "unknown", "not_run"), f"{call['name']} is still {call['state']}"
        assert bool(call["side_effect"]) == (call["name"] in ONCE_ONLY | {"reserve"})
        if call["name"] in ONCE_ONLY:
            assert runs[key] <= 1, f"{call['name']} ran {runs[key]} times for one call"
            assert call["state"] != "done" or runs[key] == 1
        else:
            assert call["state"] != "unknown"
            assert call["state"] != "done" or runs[key] >= 1
        # Of a call without effects nobody writes down that it began.
        assert call["state"] != "not_run" or runs[key] == 0 or not call["side_effect"]
    keys = defaultdict(set)
    for run in evidence.runs:
        keys[run["turn_id"], run["call_id"]].add(run["key"])
    assert all(len(of_call) == 1 for of_call in keys.values())


def every_request_has_its_row(evidence: Evidence, gone: int) -> None:
    assert [row for row in evidence.model_calls if row["state"] == "open"] == []
    # A row is written before its request, so a death in between leaves a row without one; never the other way round.
    unasked = len(evidence.model_calls) - len(evidence.requests)
    assert 0 <= unasked <= gone * _AT_ONCE
    # What a vendor refused outright costs nothing, and fails its turn.
    refused = {turn["id"] for turn in evidence.turns if "provider_" in (turn["error"] or "")}
    asked_for = [row for row in evidence.model_calls if row["turn_id"] not in refused]
    at_nothing = [row["state"] for row in asked_for if not any(row[part] for part in _INPUT)]
    assert at_nothing.count("estimated") == len(at_nothing) <= unasked, "a request was booked at nothing"
    by_step = defaultdict(list)
    of_steps = [row for row in evidence.model_calls if row["purpose"] in _OF_STEPS]
    for row in sorted(of_steps, key=lambda row: int(row["attempt"])):
        by_step[row["turn_id"], row["step"]].append(row)
    for attempts in by_step.values():
        assert [row["attempt"] for row in attempts] == list(range(1, len(attempts) + 1))
        assert all(row["state"] == "estimated" for row in attempts[:-1])
    answered = [(row["turn_id"], row["step"]) for row in evidence.messages if row["role"] == "assistant"]
    measured = [(row["turn_id"], row["step"]) for row in of_steps if row["state"] == "measured"]
    assert sorted(answered) == sorted(measured)


_OF_STEPS = ("answer", "synthesis")
"""Other requests are made beside the conversation, and give no message of it."""
_INPUT = ("input", "cache_read", "cache_write")
_AT_ONCE = 8
"""Sessions that can be between a row and its request when their process dies; more than any test here has."""


def every_answer_left_at_most_once(evidence: Evidence) -> None:
    completed = {row["id"] for row in evidence.turns if row["state"] == "completed" and row["channel"]}
    assert Counter(row["turn_id"] for row in evidence.outbox) == Counter(completed)
    arrived = Counter(received.id for received in evidence.received)
    assert arrived.keys() <= {row["id"] for row in evidence.outbox}
    for row in evidence.outbox:
        assert row["state"] in ("delivered", "uncertain")
        assert arrived[row["id"]] <= 1, f"answer {row['id']} arrived {arrived[row['id']]} times"
        assert row["state"] == "uncertain" or arrived[row["id"]] == 1
    by_id = {row["id"]: row for row in evidence.outbox}
    lanes = defaultdict(list)
    for each in evidence.received:
        lanes[by_id[each.id]["lane"]].append(by_id[each.id])
    for lane in lanes.values():
        for first, second in itertools.combinations(lane, 2):
            overtook = first["lane_pos"] > second["lane_pos"]
            assert not overtook or first["claimed_at"] > second["hold_until"], f"{first['id']} overtook {second['id']}"


def delivering(database: Path) -> set[str]:
    """The deliveries that somebody has claimed and not settled."""
    return {row["id"] for row in rows(database, "SELECT id FROM outbox WHERE state = 'delivering'")}


def uncertain(evidence: Evidence) -> set[str]:
    return {row["id"] for row in evidence.outbox if row["state"] == "uncertain"}


def texts_of(conversation: Iterable[Message], role: Role) -> list[str]:
    return [message.content for message in conversation if message.role is role]


def _message(row: Row) -> Message:
    calls = json.loads(row["tool_calls"]) if row["tool_calls"] else ()
    announced = tuple(
        ToolCall(call["id"], call["name"], call.get("arguments", {}), call.get("malformed")) for call in calls
    )
    return Message(Role(row["role"]), row["content"], announced, row["tool_call_id"], bool(row["is_error"]))
