"""What is left when everything has come to rest, and what the processes did on the way."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator

from scripts.storm.evidence import Evidence, by
from scripts.storm.strikes import KILLED

_END_CODES = {True: (0,), False: (0, -signal.SIGTERM)}
"""Of a process that is told to end, by whether it had come to work: before, it may still have the system's own way."""
_AT_REST = {"waiting": 0, "open_calls": 0, "turn_id": None, "turn_key": None, "lease_id": None, "due_at": math.inf}


def everything_came_to_rest_in_time(evidence: Evidence) -> Iterator[str]:
    """Everything was done within a bounded time after the last fault"""
    if evidence.at_rest_s is None:
        yield f"it was not within {evidence.within_s:g} s"
    elif evidence.at_rest_s > evidence.within_s:
        yield f"it was after {evidence.at_rest_s:.1f} s; allowed are {evidence.within_s:g} s"


def nothing_is_left_open(evidence: Evidence) -> Iterator[str]:
    """No session waits, runs, is owned or due; no delivery is pending; no queue holds anything"""
    for row in evidence.sessions:
        differs = {name: row[name] for name, value in _AT_REST.items() if row[name] != value}
        if differs:
            yield f"session {row['tenant']}:{row['name']} is left with {differs}"
    for row in evidence.outbox:
        if row["state"] in ("pending", "delivering"):
            yield f"delivery {row['id']} is left {row['state']}"
    for row in evidence.turns:
        if row["ended_at"] is None:
            yield f"turn {row['id']} is left {row['state']}"
    for queue, messages in evidence.queues.items():
        if messages:
            yield f"{queue} holds {messages} messages"


def sessions_count_right(evidence: Evidence) -> Iterator[str]:
    """The counters of each session agree with its rows"""
    mailboxes, conversations = by(evidence.mailbox, "session_id"), by(evidence.messages, "session_id")
    for row in evidence.sessions:
        mail = sorted(mail["position"] for mail in mailboxes.get(row["id"], ()))
        if mail != list(range(1, row["mail_seq"] + 1)):
            yield f"session {row['tenant']}:{row['name']} has accepted {row['mail_seq']} and has the positions {mail}"
        said = len(conversations.get(row["id"], ()))
        if said != row["log_seq"]:
            yield f"session {row['tenant']}:{row['name']} has counted {row['log_seq']} messages of {said}"


def processes_end_when_told(evidence: Evidence) -> Iterator[str]:
    """No process ended by itself, and none that was told to end had to be killed"""
    for entry in evidence.taken_down("deeds", "ended"):
        if not entry["why"]:
            yield f"{entry['name']} ended by itself, with {entry['code']}"
        elif entry["code"] not in _END_CODES[entry["worked"]] and entry["why"] != KILLED:
            yield f"{entry['name']}, {entry['why']}, ended with {entry['code']}"
    for entry in evidence.taken_down("deeds", "stubborn"):
        yield f"{entry['name']} had not ended {entry['waited_s']:g} s after SIGTERM"


def nothing_unforeseen_was_logged(evidence: Evidence) -> Iterator[str]:
    """No process logged an error that nobody foresaw"""
    for entry in evidence.log:
        yield f"{entry['process']}: {entry['line']}"


CHECKS = (
    everything_came_to_rest_in_time,
    nothing_is_left_open,
    sessions_count_right,
    processes_end_when_told,
    nothing_unforeseen_was_logged,
)
