"""The verdict of a storm can fail: for each rule, evidence that is sound but for one thing."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from scripts.storm import checks
from scripts.storm.checks.deliveries import cause
from scripts.storm.evidence import Evidence
from scripts.storm.jobs import Door, Job, Line, Publish, Rubbish
from scripts.storm.plan import Kind
from scripts.storm.receiver import Manner
from scripts.storm.strikes import KILLED
from scripts.storm.verdict import Verdict, judge, show

Break = Callable[[Evidence], None]

STEP_TWO = ("s000", 2, "s000#2: ")


def job(session: str, number: int, text: str, agent: str = "follows", mode: str | None = None) -> Job:
    return Job("", session, number, agent, text, "web", mode, Door.PRODUCER)


FIRST = job("s000", 1, "s000#1: charge look")
SECOND = job(*STEP_TWO)
BUSY = job("s001", 1, "s001#1: reserve", "interrupted")
INTERRUPT = job("s001", 2, "s001#2: ", "interrupted")
BAD = Rubbish("bad-s000#1", "it is not JSON", "body", b"{nothing")


def sound() -> Evidence:
    """Two sessions: one with a turn that calls tools and one that does not; one whose first turn is interrupted."""
    lines = [
        Line("", "s000", [Publish(0, FIRST), Publish(0, FIRST), Publish(0, BAD), Publish(1, SECOND)]),
        Line("", "s001", [Publish(0, BUSY), Publish(0.1, INTERRUPT)]),
    ]
    return Evidence(
        lines,
        sessions=[session(1, "s000", mail=2, log=7), session(2, "s001", mail=2, log=5)],
        mailbox=[
            mail(1, 1, FIRST, "t1"),
            mail(1, 2, SECOND, "t2"),
            mail(2, 1, BUSY, "t3"),
            {**mail(2, 2, INTERRUPT, "t4"), "verdict": "interrupting", "cuts": "t3", "mode": "interrupt"},
        ],
        turns=[
            turn("t1", 1, 10.0, 12.0),
            turn("t2", 1, 12.0, 13.0),
            {
                **turn("t3", 2, 10.0, 11.0),
                "state": "cancelled",
                "outcome": "cancelled",
                "error": {"type": "interrupted", "message": "..."},
            },
            turn("t4", 2, 11.0, 12.0),
        ],
        messages=[
            message(1, 1, "t1", "user", FIRST.text, position=1),
            message(1, 2, "t1", "assistant", "calling", step=1, calls=[("c1", "charge"), ("c2", "look")]),
            message(1, 3, "t1", "tool", "charged", step=1, answers="c1"),
            message(1, 4, "t1", "tool", "looked", step=1, answers="c2"),
            message(1, 5, "t1", "assistant", "Done: s000#1", step=2),
            message(1, 6, "t2", "user", SECOND.text, position=2),
            message(1, 7, "t2", "assistant", "Done: s000#2", step=1),
            message(2, 1, "t3", "user", BUSY.text, position=1),
            message(2, 2, "t3", "assistant", "calling", step=1, calls=[("c3", "reserve")]),
            message(2, 3, "t3", "tool", "not run", step=1, answers="c3"),
            message(2, 4, "t4", "user", INTERRUPT.text, position=2),
            message(2, 5, "t4", "assistant", "Done: s001#1, s001#2", step=1),
        ],
        tool_calls=[
            call("t1", "c1", "charge", side_effect=True, ended_at=11.0),
            call("t1", "c2", "look", side_effect=False, ended_at=11.5),
            {**call("t3", "c3", "reserve", side_effect=True, ended_at=11.0), "state": "not_run", "is_error": True},
        ],
        model_calls=[
            model_call("t1", 1, 1),
            model_call("t1", 1, 2),
            model_call("t2", 1, 1),
            model_call("t3", 2, 1),
            model_call("t4", 2, 1),
        ],
        outbox=[
            delivery("d1", "t1", 1, "Done: s000#1"),
            delivery("d2", "t2", 2, "Done: s000#2"),
            {**delivery("d4", "t4", 1, "Done: s001#1, s001#2", session=2), "state": "uncertain"},
        ],
        rejected_jobs=[
            {"id": 1, "raw": BAD.body, "at": 2.0, "error": {"message": "body: it is not JSON", "field": "body"}}
        ],
        journal=[
            asked("s000#1"),
            run("start", "charge", "s000#1.0.0", "t1", "c1", 10.5),
            run("end", "charge", "s000#1.0.0", "t1", "c1", 10.9),
            run("start", "look", "s000#1.0.1", "t1", "c2", 10.5),
            run("end", "look", "s000#1.0.1", "t1", "c2", 11.4),
            asked("s000#1"),
            asked("s000#2"),
            asked("s001#1"),
            asked("s001#1", "s001#2"),
        ],
        published=[confirmed(id_) for id_ in (FIRST.id, FIRST.id, BAD.message_id, SECOND.id, BUSY.id, INTERRUPT.id)],
        received=[
            post("d1", "t1", 1, Manner.BUSY, "Done: s000#1", 12.1),
            post("d1", "t1", 2, Manner.TAKES, "Done: s000#1", 13.2),
            post("d2", "t2", 1, Manner.TAKES, "Done: s000#2", 13.3),
            post("d4", "t4", 1, Manner.TOO_LATE, "Done: s001#1, s001#2", 12.1, session=2),
        ],
        deeds=[
            fault(Kind.KILL, "worker-1", 9.0, 9.0),
            {"kind": "ended", "name": "worker-1", "code": -9, "why": KILLED, "worked": True},
        ],
        queues={"insika.turns": 0},
        at_rest_s=3.0,
        within_s=60.0,
    )


def session(id_: int, name: str, mail: int, log: int) -> dict[str, Any]:
    at_rest: dict[str, Any] = {"waiting": 0, "open_calls": 0, "turn_id": None, "turn_key": None, "lease_id": None}
    counters = {"mail_seq": mail, "log_seq": log, "epoch": 2, "due_at": math.inf}
    return {"id": id_, "tenant": "", "name": name, **at_rest, **counters}


def mail(session_id: int, position: int, of: Job, turn_id: str) -> dict[str, Any]:
    ended = {"verdict": "accepted", "mode": "followup", "ended": "turn", "turn_id": turn_id, "consumed_by": turn_id}
    told = {"job_id": of.id, "text": of.text, "agent": of.agent, "cuts": None}
    return {"session_id": session_id, "position": position, **told, **ended}


def turn(id_: str, session_id: int, started_at: float, ended_at: float) -> dict[str, Any]:
    ended = {"state": "completed", "outcome": "completed", "error": None, "attempt": 1, "channel": "web"}
    return {"id": id_, "session_id": session_id, "started_at": started_at, "ended_at": ended_at, **ended}


def message(
    session_id: int,
    seq: int,
    turn_id: str,
    role: str,
    content: str,
    *,
    step: int = 0,
    position: int | None = None,
    calls: list[tuple[str, str]] | None = None,
    answers: str | None = None,
) -> dict[str, Any]:
    announced = [{"id": id_, "name": name, "arguments": {}} for id_, name in calls] if calls else None
    place = {"session_id": session_id, "seq": seq, "turn_id": turn_id, "step": step, "epoch": 1, "position": position}
    said = {"role": role, "content": content, "tool_calls": announced, "tool_call_id": answers, "is_error": False}
    return {**place, **said}


def call(turn_id: str, call_id: str, name: str, *, side_effect: bool, ended_at: float) -> dict[str, Any]:
    ended = {"state": "done", "is_error": False, "result": "done", "ended_at": ended_at}
    return {"turn_id": turn_id, "call_id": call_id, "name": name, "side_effect": side_effect, **ended}


def model_call(turn_id: str, session_id: int, step: int) -> dict[str, Any]:
    return {"turn_id": turn_id, "session_id": session_id, "step": step, "attempt": 1, "state": "measured"}


def delivery(id_: str, turn_id: str, lane_pos: int, content: str, session: int = 1) -> dict[str, Any]:
    sent = {"payload": {"turn_id": turn_id, "content": content}, "guarantee": "at_most_once", "last_error": None}
    times = {"claimed_at": 12.05, "hold_until": 72.0, "claim_until": 35.05, "settled_at": 13.4, "attempts": 1}
    place = {"lane": f"{session}:web", "lane_pos": lane_pos}
    return {"id": id_, "turn_id": turn_id, "state": "delivered", **place, **sent, **times}


def asked(*labels: str) -> dict[str, Any]:
    return {"kind": "asked", "at": 10.0, "pid": 7, "labels": list(labels)}


def run(kind: str, tool: str, order: str, turn_id: str, call_id: str, at: float) -> dict[str, Any]:
    where = {"tenant": "", "session": "s000", "turn_id": turn_id, "call_id": call_id, "key": f"key of {call_id}"}
    return {"kind": kind, "at": at, "pid": 7, "tool": tool, "order": order, **where}


def confirmed(id_: str) -> dict[str, Any]:
    return {"kind": "published", "at": 1.0, "pid": 3, "id": id_}


def post(
    id_: str, turn_id: str, attempt: int, manner: Manner, content: str, at: float, session: int = 1
) -> dict[str, Any]:
    taken = manner not in (Manner.BUSY, Manner.DEAF)
    body = json.dumps({"turn_id": turn_id, "content": content})
    what = {"id": id_, "attempt": attempt, "manner": manner, "taken": taken, "marked": False, "body": body}
    return {"kind": "post", "at": at, "pid": 5, **what}


def fault(kind: Kind, target: str, began: float, ended: float, process: int = 7) -> dict[str, Any]:
    return {"kind": "fault", "fault": kind, "target": target, "process": process, "began": began, "ended": ended}


def change(table: str, place: int, **values: Any) -> Break:
    def broken(evidence: Evidence) -> None:
        rows = getattr(evidence, table)
        rows[place] = {**rows[place], **values}

    return broken


def remove(table: str, place: int) -> Break:
    return lambda evidence: getattr(evidence, table).pop(place)


def repeat(table: str, place: int, **values: Any) -> Break:
    def broken(evidence: Evidence) -> None:
        rows = getattr(evidence, table)
        rows.append({**rows[place], **values})

    return broken


def swap(table: str, column: str, first: int, second: int) -> Break:
    def broken(evidence: Evidence) -> None:
        rows = getattr(evidence, table)
        one, other = rows[first][column], rows[second][column]
        rows[first], rows[second] = {**rows[first], column: other}, {**rows[second], column: one}

    return broken


def both(*breaks: Break) -> Break:
    def broken(evidence: Evidence) -> None:
        for each in breaks:
            each(evidence)

    return broken


BROKEN: dict[str, tuple[str, Break]] = {
    "a confirmation is missing": ("everything_was_published", remove("published", 0)),
    "a job is lost": ("every_job_is_in_one_turn", remove("mailbox", 1)),
    "a job was accepted twice": ("every_job_is_in_one_turn", repeat("mailbox", 0, position=3)),
    "a job waits": ("every_job_is_in_one_turn", change("mailbox", 1, ended=None, consumed_by=None)),
    "a job was withdrawn": ("every_job_is_in_one_turn", change("mailbox", 1, ended="withdrawn", consumed_by=None)),
    "a turn of another session took a job": ("every_job_is_in_one_turn", change("mailbox", 1, consumed_by="t4")),
    "a turn is nobody's": ("every_job_is_in_one_turn", repeat("turns", 0, id="t9")),
    "a text was never said": ("every_text_is_said_once", remove("messages", 5)),
    "a text was said twice": ("every_text_is_said_once", repeat("messages", 0, seq=8)),
    "a text was changed": ("every_text_is_said_once", change("messages", 0, content="s000#1: charge")),
    "a text stands in another turn": ("every_text_is_said_once", change("messages", 0, turn_id="t2")),
    "jobs were accepted out of order": ("jobs_keep_their_order", swap("mailbox", "position", 0, 1)),
    "texts are out of order": ("texts_keep_their_order", swap("messages", "position", 0, 5)),
    "rubbish was dropped": ("rubbish_is_kept_aside", remove("rejected_jobs", 0)),
    "rubbish was changed": ("rubbish_is_kept_aside", change("rejected_jobs", 0, raw=b"{")),
    "rubbish was kept for another reason": (
        "rubbish_is_kept_aside",
        change("rejected_jobs", 0, error={"message": "text: expected a string", "field": "text"}),
    ),
    "of rubbish only a copy was kept": (
        "rubbish_is_kept_aside",
        change("rejected_jobs", 0, error={"message": "body: was delivered 3 times", "field": "body"}),
    ),
    "a good job was kept aside": ("rubbish_is_kept_aside", repeat("rejected_jobs", 0, raw=FIRST.body())),
    "a turn failed": (
        "turns_end_well",
        change("turns", 0, state="failed", outcome="failed", error={"type": "worker_lost"}),
    ),
    "a turn was cut by nobody": ("turns_end_well", change("turns", 1, state="cancelled", outcome="cancelled")),
    "an interrupt was not honoured": (
        "interrupts_interrupt",
        change("turns", 2, state="completed", outcome="completed", error=None),
    ),
    "two turns overlapped": ("turns_never_overlap", change("turns", 1, started_at=11.9)),
    "an old owner wrote": ("owners_follow_one_another", change("messages", 3, epoch=0)),
    "a result is missing": ("conversations_are_valid", remove("messages", 3)),
    "results are not in order": ("conversations_are_valid", swap("messages", "tool_call_id", 2, 3)),
    "a batch is open": (
        "conversations_are_valid",
        both(remove("messages", 11), remove("messages", 10), remove("messages", 9)),
    ),
    "a request has no row": ("requests_have_their_rows", remove("model_calls", 2)),
    "a request is open": ("requests_have_their_rows", change("model_calls", 0, state="open")),
    "an answer was measured twice": ("requests_have_their_rows", repeat("model_calls", 0, attempt=2)),
    "a side effect ran twice for a call": ("no_side_effect_starts_twice", repeat("journal", 1)),
    "a side effect ran twice for an order": (
        "no_side_effect_starts_twice",
        repeat("journal", 1, call_id="c9", key="key of c9"),
    ),
    "a tool ran for no call": ("runs_and_calls_agree", remove("tool_calls", 0)),
    "a call that was not run ran": ("runs_and_calls_agree", change("tool_calls", 0, state="not_run")),
    "a call is done and its tool is not": ("runs_and_calls_agree", remove("journal", 2)),
    "a call is still open": ("runs_and_calls_agree", change("tool_calls", 0, state="started")),
    "a call that bears a second run did not get it": (
        "runs_and_calls_agree",
        both(change("tool_calls", 2, state="unknown"), change("turns", 2, state="completed")),
    ),
    "a tool failed": ("runs_and_calls_agree", change("tool_calls", 1, is_error=True)),
    "a call was run with two keys": ("runs_and_calls_agree", repeat("journal", 3, key="another")),
    "a tool started after its turn": ("nothing_starts_after_its_end", repeat("journal", 3, at=12.5)),
    "an answer was not to be delivered": ("answers_have_their_deliveries", remove("outbox", 0)),
    "an answer is delivered twice over": ("answers_have_their_deliveries", repeat("outbox", 0, id="d9")),
    "a cut turn is delivered": ("answers_have_their_deliveries", change("outbox", 0, turn_id="t3")),
    "another answer was delivered": (
        "answers_have_their_deliveries",
        change("outbox", 0, payload={"turn_id": "t1", "content": "Done"}),
    ),
    "something else arrived": ("answers_have_their_deliveries", change("received", 0, body='{"turn_id": "t2"}')),
    "a delivery was accepted twice": ("no_delivery_is_accepted_twice", change("received", 0, taken=True)),
    "an answer was sent again without the mark": (
        "no_delivery_is_accepted_twice",
        both(change("outbox", 0, guarantee="at_least_once"), change("received", 0, taken=True)),
    ),
    "an open attempt was followed by another": (
        "only_refusals_are_tried_again",
        change("received", 0, manner=Manner.DEAF),
    ),
    "an attempt arrived twice": ("only_refusals_are_tried_again", change("received", 0, attempt=2)),
    "a delivery was given up": ("states_say_what_happened", change("outbox", 0, state="failed")),
    "a delivery is delivered and never arrived": ("states_say_what_happened", remove("received", 2)),
    "what was left open is said to be delivered": ("states_say_what_happened", change("outbox", 2, state="delivered")),
    "a delivery is uncertain for no reason": ("uncertainty_has_its_cause", change("outbox", 0, state="uncertain")),
    "answers arrived out of order": ("answers_leave_in_order", swap("outbox", "lane_pos", 0, 1)),
    "a signature was wrong": ("signatures_hold", repeat("received", 0, kind="forged", why="no signature fits")),
    "it never came to rest": ("everything_came_to_rest_in_time", lambda it: setattr(it, "at_rest_s", None)),
    "it came to rest too late": ("everything_came_to_rest_in_time", lambda it: setattr(it, "at_rest_s", 61.0)),
    "a message waits": ("nothing_is_left_open", change("sessions", 0, waiting=1)),
    "a session has an owner": ("nothing_is_left_open", change("sessions", 0, lease_id="somebody")),
    "a session is due": ("nothing_is_left_open", change("sessions", 0, due_at=20.0)),
    "a delivery is pending": ("nothing_is_left_open", change("outbox", 1, state="pending")),
    "a turn runs": ("nothing_is_left_open", change("turns", 1, ended_at=None, state="running")),
    "a queue holds a message": ("nothing_is_left_open", lambda it: setattr(it, "queues", {"insika.turns": 1})),
    "a position is missing": ("sessions_count_right", change("sessions", 0, mail_seq=3)),
    "a message is not counted": ("sessions_count_right", change("sessions", 0, log_seq=6)),
    "a process ended by itself": ("processes_end_when_told", change("deeds", 1, code=1, why="")),
    "a process ended badly": ("processes_end_when_told", change("deeds", 1, code=1, why="told to end")),
    "a process would not end": ("processes_end_when_told", repeat("deeds", 1, kind="stubborn", waited_s=18.0)),
    "an error was logged": ("nothing_unforeseen_was_logged", lambda it: it.log.append({"process": "w", "line": "x"})),
}


def test_a_copy_of_a_good_job_that_was_handed_out_too_often_may_stay_if_the_job_was_taken():
    evidence = sound()
    often = {"field": "body", "message": "body: was delivered 3 times and never dealt with"}
    repeat("rejected_jobs", 0, raw=FIRST.body(), error=often)(evidence)
    assert judge(evidence).good
    remove("mailbox", 0)(evidence)
    assert "every_job_is_in_one_turn" in broken_rules(judge(evidence))


def broken_rules(verdict: Verdict) -> set[str]:
    return {ruling.name for ruling in verdict.rulings if ruling.broken}


def test_sound_evidence_breaks_nothing():
    verdict = judge(sound())
    assert [line for ruling in verdict.rulings for line in ruling.broken] == []
    assert verdict.good


@pytest.mark.parametrize("what", BROKEN)
def test_one_thing_amiss_breaks_its_rule(what):
    evidence = sound()
    name, break_it = BROKEN[what]
    break_it(evidence)
    verdict = judge(evidence)
    assert name in broken_rules(verdict)
    assert not verdict.good


def test_every_rule_can_be_broken():
    assert {check.__name__ for check in checks.ALL} == {name for name, _ in BROKEN.values()}


def test_a_job_that_was_kept_aside_is_told_apart_from_a_lost_one():
    evidence = sound()
    both(remove("mailbox", 0), repeat("rejected_jobs", 0, raw=FIRST.body(), error={"message": "delivered too often"}))(
        evidence
    )
    [ruling] = [it for it in judge(evidence).rulings if it.name == "every_job_is_in_one_turn"]
    assert any("was kept aside: {'message': 'delivered too often'}" in line for line in ruling.broken)


@pytest.mark.parametrize(("killed_at", "good"), [(8.1, True), (7.9, False), (12.0, False)])
def test_a_job_whose_reader_was_killed_when_it_looked_deadly_may_lie_aside(killed_at, good):
    evidence = sound()
    evidence.lines[0].publishes.append(Publish(2, lost := job("s000", 3, "s000#3: look")))
    evidence.published.append(confirmed(lost.id))
    often = {"field": "body", "message": "body: was delivered 3 times and never dealt with"}
    repeat("rejected_jobs", 0, raw=lost.body(), error=often, at=8.0)(evidence)
    evidence.deeds.append(fault(Kind.KILL, "ingress-1", killed_at, killed_at))
    assert judge(evidence).good is good
    assert judge(evidence).counts["jobs left aside because their reader was killed"] == int(good)


@pytest.mark.parametrize(
    ("kind", "target", "began", "ended", "why"),
    [
        (Kind.KILL, "outbox-1", 12.5, 12.5, "its sender was killed"),
        (Kind.PAUSE, "outbox-2", 11.0, 12.2, "its sender was paused"),
        (Kind.TERM, "outbox-1", 12.0, 15.0, "its sender was told to end"),
        (Kind.POSTGRES_KILL, "postgres", 12.1, 14.0, "the database was away"),
        (Kind.KILL, "outbox-1", 11.0, 11.0, ""),
        (Kind.KILL, "outbox-1", 60.0, 60.0, ""),
        (Kind.KILL, "worker-1", 12.5, 12.5, ""),
    ],
)
def test_what_cut_a_delivery_is_known_by_its_time(kind, target, began, ended, why):
    evidence = sound()
    evidence.deeds.append(fault(kind, target, began, ended))
    assert cause(evidence, evidence.outbox[0]) == why


def test_what_a_pause_held_up_may_start_late_but_once():
    evidence = sound()
    repeat("journal", 3, at=20.0)(evidence)
    evidence.deeds.append(fault(Kind.PAUSE, "worker-1", 10.4, 19.9))
    assert judge(evidence).good
    for _ in range(3):
        repeat("journal", 3, at=20.0)(evidence)
    assert broken_rules(judge(evidence)) == {"nothing_starts_after_its_end"}


def test_a_pause_of_another_process_excuses_no_late_start():
    evidence = sound()
    repeat("journal", 3, at=20.0)(evidence)
    evidence.deeds.append(fault(Kind.PAUSE, "worker-1", 10.4, 19.9, process=8))
    assert broken_rules(judge(evidence)) == {"nothing_starts_after_its_end"}


def test_what_a_worker_left_behind_in_a_drain_may_be_unknown():
    evidence = sound()
    BROKEN["a call that bears a second run did not get it"][1](evidence)
    evidence.deeds.append(fault(Kind.TERM, "worker-1", 10.5, 12.0))
    assert "runs_and_calls_agree" not in broken_rules(judge(evidence))


def test_an_answer_may_overtake_one_that_held_up_the_lane_for_long_enough():
    evidence = sound()
    swap("outbox", "lane_pos", 0, 1)(evidence)
    change("outbox", 0, claimed_at=80.0)(evidence)
    change("outbox", 1, claim_until=90.0)(evidence)
    assert judge(evidence).good


def test_an_answer_may_overtake_one_whose_sender_was_held_still_until_its_claim_had_run_out():
    evidence = sound()
    swap("outbox", "lane_pos", 0, 1)(evidence)
    change("outbox", 0, claimed_at=36.0)(evidence)
    assert judge(evidence).good
    change("outbox", 0, claimed_at=35.0)(evidence)
    assert broken_rules(judge(evidence)) == {"answers_leave_in_order"}


def test_a_steered_text_may_pass_one_that_waits_for_its_own_turn():
    evidence = sound()
    both(swap("messages", "position", 0, 5), change("messages", 0, step=1))(evidence)
    assert "texts_keep_their_order" not in broken_rules(judge(evidence))


def test_people_are_shown_some_of_what_is_broken_and_programs_all_of_it():
    evidence = sound()
    evidence.log.extend({"process": "worker-1", "line": f"line {number}"} for number in range(8))
    verdict = judge(evidence)
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show(verdict, console)
    printed = console.export_text()
    assert "BROKEN" in printed
    assert "line 4" in printed
    assert "line 5" not in printed
    assert "and 3 more" in printed
    assert len(json.dumps(verdict.as_dict()).split("worker-1: line")) == 9


def test_judging_changes_nothing():
    evidence = sound()
    before = copy.deepcopy(evidence.outbox)
    judge(evidence)
    assert evidence.outbox == before
