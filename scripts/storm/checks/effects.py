"""What tools did in the world, beside what the store says of their calls."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from scripts.storm.evidence import Evidence, Row, by
from scripts.storm.folder import CALLS_AT_ONCE
from scripts.storm.plan import Kind
from scripts.storm.texts import ONCE_ONLY, SIDE_EFFECTS

AWAKE_S = 2.0
"""Seconds after its SIGCONT within which a process has come to what it was about to do, on a busy machine."""
_WRITTEN_S = 0.1
"""A row's time is a little before the moment at which others can see it."""


def no_side_effect_starts_twice(evidence: Evidence) -> Iterator[str]:
    """No side effect was started twice for one call"""
    starts = [entry for entry in evidence.taken_down("journal", "start") if entry["tool"] in ONCE_ONLY]
    for column in ("key", "order"):
        for entry in _twice(starts, column):
            yield f"{entry['tool']} was started again for {entry['order']}, call {entry['call_id']}"


def runs_and_calls_agree(evidence: Evidence) -> Iterator[str]:
    """What the store says of each call is what its tool did"""
    runs = by(evidence.taken_down("journal", "start"), "turn_id", "call_id")
    done = by(evidence.taken_down("journal", "end"), "turn_id", "call_id")
    calls = {(row["turn_id"], row["call_id"]): row for row in evidence.tool_calls}
    for key in runs.keys() - calls.keys():
        yield f"{runs[key][0]['tool']} ran for call {key[1]}, which is in no log"
    for key, call in calls.items():
        yield from _disagreement(call, len(runs.get(key, ())), len(done.get(key, ())))
        if call["state"] == "unknown" and not _may_be_unknown(evidence, call):
            yield f"call {call['call_id']} of {call['name']} is unknown, and might have been run again"
    for key, of_call in runs.items():
        if len({entry["key"] for entry in of_call}) > 1:
            yield f"call {key[1]} was run with more than one key"


def nothing_starts_after_its_end(evidence: Evidence) -> Iterator[str]:
    """No tool started after its call or turn had ended, but for the starts that a pause held up"""
    calls = {(row["turn_id"], row["call_id"]): row for row in evidence.tool_calls}
    late: Counter[tuple[object, ...]] = Counter()
    for entry in evidence.taken_down("journal", "start"):
        ended = [
            row["ended_at"]
            for row in (evidence.turns_by_id.get(entry["turn_id"]), calls.get((entry["turn_id"], entry["call_id"])))
            if row is not None and row["ended_at"] is not None
        ]
        if not ended or entry["at"] <= min(ended) + _WRITTEN_S:
            continue
        pause = _pause_before(evidence, entry)
        what = f"{entry['tool']} started {entry['at'] - min(ended):.2f} s after its end, for {entry['order']}"
        if pause is None:
            yield f"{what}, in a process that nobody had paused"
        else:
            held_up = (pause["began"], pause["process"], entry["tenant"], entry["session"])
            late[held_up] += 1
            if late[held_up] > CALLS_AT_ONCE:
                yield f"{what}: one more of its session than could be at their start when it was paused"


CHECKS = (no_side_effect_starts_twice, runs_and_calls_agree, nothing_starts_after_its_end)


def late_starts(evidence: Evidence) -> int:
    calls = {(row["turn_id"], row["call_id"]): row for row in evidence.tool_calls}
    starts = [
        (entry, calls.get((entry["turn_id"], entry["call_id"]))) for entry in evidence.taken_down("journal", "start")
    ]
    return sum(1 for entry, call in starts if call and call["ended_at"] and entry["at"] > call["ended_at"] + _WRITTEN_S)


def _disagreement(call: Row, runs: int, ends: int) -> Iterator[str]:
    name, state = call["name"], call["state"]
    if bool(call["side_effect"]) != (name in SIDE_EFFECTS):
        yield f"{name} is in the store with side_effect {call['side_effect']}"
    if state not in ("done", "unknown", "not_run"):
        yield f"call {call['call_id']} of {name} is still {state}"
    if state == "done" and not call["is_error"] and ends == 0:
        yield f"call {call['call_id']} of {name} is done, and its tool never came to an end"
    if state == "done" and call["is_error"]:
        yield f"call {call['call_id']} of {name} failed: {call['result']}"
    if state == "not_run" and name in SIDE_EFFECTS and runs > 0:
        yield f"call {call['call_id']} of {name} was not run, says the store, and ran {runs} times"


def _may_be_unknown(evidence: Evidence, call: Row) -> bool:
    """One that bears a second run gets it, unless its turn was cut or its worker left it behind in a drain."""
    if call["name"] in ONCE_ONLY or evidence.turns_by_id[call["turn_id"]]["state"] != "completed":
        return True
    drains = evidence.faults(Kind.TERM, "worker")
    return any(drain["began"] <= call["ended_at"] <= drain["ended"] for drain in drains)


def _twice(starts: list[Row], column: str) -> Iterator[Row]:
    for same in by(starts, column).values():
        yield from itertools.islice(same, 1, None)


def _pause_before(evidence: Evidence, entry: Row) -> Row | None:
    """The pause that this process had just come out of, or was in."""
    for pause in evidence.faults(Kind.PAUSE, "worker"):
        if pause["process"] == entry["pid"] and pause["began"] <= entry["at"] <= pause["ended"] + AWAKE_S:
            return pause
    return None
