"""What the receiver got, beside what the outbox says of it."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from scripts.storm.evidence import Evidence, Row, by
from scripts.storm.folder import ANSWERED_WITHIN_S
from scripts.storm.plan import Kind
from scripts.storm.receiver import LEAVES_OPEN, REFUSED

AT_MOST_ONCE = "at_most_once"
_CUTS = {Kind.KILL: "killed", Kind.PAUSE: "paused", Kind.TERM: "told to end"}


def answers_have_their_deliveries(evidence: Evidence) -> Iterator[str]:
    """Every answer for a channel has one delivery, which says what the conversation says; nothing else has any"""
    rows = by(evidence.outbox, "turn_id")
    said = sorted((row for row in evidence.messages if row["role"] == "assistant"), key=lambda row: int(row["seq"]))
    answers = {row["turn_id"]: row["content"] for row in said}
    for turn in evidence.turns:
        wanted = int(turn["state"] == "completed" and turn["channel"] is not None)
        found = rows.get(turn["id"], ())
        if len(found) != wanted:
            yield f"turn {turn['id']}, {turn['state']}, has {len(found)} deliveries"
        for row in found:
            if row["payload"].get("content") != answers.get(turn["id"]):
                yield f"delivery {row['id']} says something else than turn {turn['id']}"
    for post in itertools.chain.from_iterable(evidence.posts.values()):
        body = json.loads(post["body"])
        sent = rows.get(body.get("turn_id"), ())
        if [row["payload"] for row in sent] != [body] or sent[0]["id"] != post["id"]:
            yield f"what arrived as {post['id']} is not what stands in the outbox"


def no_delivery_is_accepted_twice(evidence: Evidence) -> Iterator[str]:
    """The receiver accepted no delivery twice, but where the channel wants it sent again and then with the mark"""
    for row in evidence.outbox:
        taken = [post for post in evidence.posts.get(row["id"], ()) if post["taken"]]
        if len(taken) > 1 and row["guarantee"] == AT_MOST_ONCE:
            yield f"{row['id']} was accepted {len(taken)} times"
        for post in taken[1:]:
            if not post["marked"]:
                yield f"{row['id']} was accepted again at attempt {post['attempt']}, without the mark"


def only_refusals_are_tried_again(evidence: Evidence) -> Iterator[str]:
    """After a POST that was not refused for certain came no other, and no attempt was made twice"""
    for row in evidence.outbox:
        posts = evidence.posts.get(row["id"], ())
        for post, times in Counter(post["attempt"] for post in posts).items():
            if times > 1:
                yield f"{row['id']} arrived {times} times as attempt {post}"
        for post in posts[:-1]:
            if post["manner"] not in REFUSED and row["guarantee"] == AT_MOST_ONCE:
                yield f"{row['id']} was tried again after attempt {post['attempt']}, which {post['manner']}"
        if [post["attempt"] for post in posts] != sorted(post["attempt"] for post in posts):
            yield f"{row['id']} arrived with the attempts {[post['attempt'] for post in posts]}"


def states_say_what_happened(evidence: Evidence) -> Iterator[str]:
    """What was delivered had been accepted, and what the receiver left open is uncertain; none is failed"""
    for row in evidence.outbox:
        posts, state = evidence.posts.get(row["id"], ()), row["state"]
        last = posts[-1] if posts else None
        if state not in ("delivered", "uncertain"):
            yield f"{row['id']} is {state}: {row['last_error']}"
        elif state == "delivered" and (last is None or not last["taken"] or last["manner"] in LEAVES_OPEN):
            yield f"{row['id']} is delivered, and the receiver {last['manner'] if last else 'never saw it'}"
        elif state == "uncertain" and row["guarantee"] != AT_MOST_ONCE:
            yield f"{row['id']} is uncertain, and its channel wants it sent again"
        elif (
            row["guarantee"] == AT_MOST_ONCE and state != "uncertain" and any(p["manner"] in LEAVES_OPEN for p in posts)
        ):
            yield f"{row['id']} is {state}, and the receiver left open whether it took it"


def uncertainty_has_its_cause(evidence: Evidence) -> Iterator[str]:
    """Every uncertain delivery was cut: by its receiver, or by what was done to an outbox process or the database"""
    for row in evidence.outbox:
        if row["state"] == "uncertain" and not cause(evidence, row):
            manners = [post["manner"] for post in evidence.posts.get(row["id"], ())]
            yield f"{row['id']} is uncertain ({row['last_error']}), and only this was done to it: {manners}"


def answers_leave_in_order(evidence: Evidence) -> Iterator[str]:
    """The answers of a session arrived in their order, but where one had held up the others for long enough"""
    rows = {row["id"]: row for row in evidence.outbox}
    arrived = [rows[entry["id"]] for entry in _first_taken(evidence) if entry["id"] in rows]
    for lane, in_lane in by(arrived, "lane").items():
        for first, second in itertools.combinations(in_lane, 2):
            # It holds up the others for so long at most, and no longer once its sender must be taken for gone.
            held_until = min(second["hold_until"] or math.inf, second["claim_until"] or math.inf)
            if first["lane_pos"] > second["lane_pos"] and first["claimed_at"] <= held_until:
                yield f"lane {lane}: {first['id']} arrived before {second['id']}"


def signatures_hold(evidence: Evidence) -> Iterator[str]:
    """Every POST was signed, and in time"""
    for entry in evidence.taken_down("received", "forged"):
        yield f"{entry['id']}, attempt {entry['attempt']}: {entry['why']}"


CHECKS = (
    answers_have_their_deliveries,
    no_delivery_is_accepted_twice,
    only_refusals_are_tried_again,
    states_say_what_happened,
    uncertainty_has_its_cause,
    answers_leave_in_order,
    signatures_hold,
)


def cause(evidence: Evidence, row: Row) -> str:
    """What cut the last POST of an uncertain delivery; "" when nothing did."""
    last = [post for post in evidence.posts.get(row["id"], ()) if post["attempt"] == row["attempts"]]
    if last and last[0]["manner"] in LEAVES_OPEN:
        return f"the receiver {last[0]['manner']}"
    begins, ends = row["claimed_at"], row["claimed_at"] + ANSWERED_WITHIN_S
    outages = [deed for deed in evidence.taken_down("deeds", "fault") if deed["target"] == "postgres"]
    away = _during(outages, begins, ends)
    if away:
        ends = row["settled_at"]  # what came of it could not be written down until then
    for kind, name in _CUTS.items():
        if _during(evidence.faults(kind, "outbox"), begins, ends):
            return f"its sender was {name}"
    return "the database was away" if away else ""


def _during(faults: Sequence[Row], begins: float, ends: float) -> bool:
    return any(fault["began"] <= ends and fault["ended"] >= begins for fault in faults)


def _first_taken(evidence: Evidence) -> Iterator[Row]:
    """Each delivery when it was first accepted, in the order of time."""
    seen: set[str] = set()
    for entry in evidence.taken_down("received", "post"):
        if entry["taken"] and entry["id"] not in seen:
            seen.add(entry["id"])
            yield entry
