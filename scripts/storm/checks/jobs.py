"""What became of each job that was published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from scripts.storm.evidence import Evidence, Row, by
from scripts.storm.jobs import Job, Rubbish
from scripts.storm.plan import Kind
from scripts.storm.texts import Wish

CONTROL = "control"
TRIED_WITHIN_S = 3.0
HANDED_OUT_OFTEN = "was delivered"
"""How the reason begins for a job that is kept before it is tried, because the broker had to hand it out that often. It
is a copy: the job itself must have been taken like any other."""


def everything_was_published(evidence: Evidence) -> Iterator[str]:
    """The broker confirmed every message"""
    confirmed = Counter(entry["id"] for entry in evidence.taken_down("published", "published"))
    wanted = Counter(_id(publish.what) for line in evidence.lines for publish in line.publishes)
    for id_, times in wanted.items():
        if confirmed[id_] != times:
            yield f"{id_} was confirmed {confirmed[id_]} times and was to be published {times} times"


def every_job_is_in_one_turn(evidence: Evidence) -> Iterator[str]:
    """Every job ended in exactly one turn, or lies aside because its reader was killed when the job looked deadly"""
    mail = _mail(evidence)
    kept, aside = _kept_aside(evidence), jobs_left_aside(evidence)
    came = Counter((*evidence.names[row["session_id"]], row["job_id"]) for row in mail)
    for key, job in evidence.jobs.items():
        if came[key] > 1:
            yield f"{job.id} was accepted {came[key]} times"
        elif came[key] == 0 and job.id not in aside:
            yield f"{job.id} is lost" if job.id not in kept else f"{job.id} was kept aside: {kept[job.id]}"
    for key in came.keys() - evidence.jobs.keys():
        yield f"{key[-1]} was accepted, and nobody published it"
    for row in mail:
        turn = evidence.turns_by_id.get(row["consumed_by"])
        if row["ended"] != "turn" or turn is None:
            yield f"{row['job_id']} ended as {row['ended']}, in turn {row['consumed_by']}"
        elif turn["session_id"] != row["session_id"]:
            yield f"{row['job_id']} ended in a turn of another session"
    known = {row["consumed_by"] for row in mail} | {row["turn_id"] for row in mail}
    for turn_id in evidence.turns_by_id.keys() - known:
        yield f"turn {turn_id} belongs to no job"


def every_text_is_said_once(evidence: Evidence) -> Iterator[str]:
    """Every text stands in its conversation once, in the turn that took it"""
    said = by([row for row in evidence.messages if row["position"] is not None], "session_id", "position")
    for row in _mail(evidence):
        messages = said.get((row["session_id"], row["position"]), ())
        job = evidence.jobs.get((*evidence.names[row["session_id"]], row["job_id"]))
        if len(messages) != 1:
            yield f"{row['job_id']} stands in the conversation {len(messages)} times"
        elif messages[0]["turn_id"] != row["consumed_by"]:
            yield f"{row['job_id']} stands in another turn than the one that took it"
        elif job is not None and not messages[0]["content"] == row["text"] == job.text:
            yield f"{row['job_id']} stands in the conversation with another text"
    places = {(row["session_id"], row["position"]) for row in _mail(evidence)}
    for session_id, position in said.keys() - places:
        yield f"session {session_id} has a text at position {position} that no job brought"


def jobs_keep_their_order(evidence: Evidence) -> Iterator[str]:
    """The jobs of each session were accepted in the order in which they were published"""
    for session_id, rows in by(_mail(evidence), "session_id").items():
        tenant, name = evidence.names[session_id]
        ordered = sorted(rows, key=lambda row: int(row["position"]))
        jobs = [evidence.jobs.get((tenant, name, row["job_id"])) for row in ordered]
        numbers = [job.number for job in jobs if job is not None]
        if numbers != sorted(numbers):
            yield f"session {tenant}:{name} has them in the order {numbers}"


def texts_keep_their_order(evidence: Evidence) -> Iterator[str]:
    """The texts of each conversation follow the order of acceptance"""
    spoken = [row for row in evidence.messages if row["position"] is not None]
    for session_id, rows in by(spoken, "session_id").items():
        ordered = sorted(rows, key=lambda row: int(row["seq"]))
        # What joins a running turn may pass what waits for a turn of its own; among themselves both keep their order.
        for joined in (False, True):
            positions = [row["position"] for row in ordered if (row["step"] > 0) is joined]
            if positions != sorted(positions):
                yield f"session {':'.join(evidence.names[session_id])} has the positions {positions}"


def rubbish_is_kept_aside(evidence: Evidence) -> Iterator[str]:
    """What was no job was kept aside as it came, with its reason, and nothing else stayed there"""
    kept = by(evidence.rejected_jobs, "raw")
    for rubbish in evidence.rubbish:
        errors = [row["error"] for row in kept.get(rubbish.body, ())]
        if rubbish.field not in [error.get("field") for error in errors if not _is_copy(error)]:
            yield f"{rubbish.message_id} ({rubbish.why}) was not kept for that; kept are {errors}"
    bad = {rubbish.body for rubbish in evidence.rubbish}
    for row in evidence.rejected_jobs:
        if row["raw"] not in bad and not _is_copy(row["error"]):
            yield f"rejected job {row['id']} was a good one: {row['error']}"


def jobs_left_aside(evidence: Evidence) -> set[str]:
    """A job that the broker has handed out often may be what kills its readers: it is kept, taken off its queue, and
    tried. Whoever is killed in that moment, by whomever, leaves it aside, where people see it."""
    kills = [kill["began"] for kill in evidence.faults(Kind.KILL, "ingress")]
    taken = {(*evidence.names[row["session_id"]], row["job_id"]) for row in _mail(evidence)}
    missing = {job.id for key, job in evidence.jobs.items() if key not in taken}
    copies = [row for row in evidence.rejected_jobs if _is_copy(row["error"])]
    killed = [row for row in copies if any(0 <= kill - row["at"] <= TRIED_WITHIN_S for kill in kills)]
    return {id_ for row in killed if (id_ := _good_job(evidence, row)) in missing}


CHECKS = (
    everything_was_published,
    every_job_is_in_one_turn,
    every_text_is_said_once,
    jobs_keep_their_order,
    texts_keep_their_order,
    rubbish_is_kept_aside,
)


def _mail(evidence: Evidence) -> list[Row]:
    return [row for row in evidence.mailbox if row["verdict"] != CONTROL]


def _is_copy(error: Row) -> bool:
    return HANDED_OUT_OFTEN in error["message"]


def _id(what: Job | Rubbish) -> str:
    return what.id if isinstance(what, Job) else what.message_id


def _kept_aside(evidence: Evidence) -> dict[str, object]:
    """Why, by the id of a good job."""
    return {id_: row["error"] for row in evidence.rejected_jobs if (id_ := _good_job(evidence, row))}


def _good_job(evidence: Evidence, row: Row) -> str:
    """The id of the job that lies aside in this row; "" for one that is none."""
    try:
        document = json.loads(row["raw"])
        document = document["args"][0] if "args" in document else document
        wish = Wish.read(document["text"])
    except (ValueError, LookupError, TypeError):
        return ""
    return next((job.id for job in evidence.jobs.values() if Wish.read(job.text) == wish), "")
