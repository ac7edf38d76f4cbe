"""What a streaming client sees of a turn: the answer, and beside it only what its agent lets out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from insika.agents.profile import EdgeStream
from insika.events import Event, EventType
from insika.turn.edge_frames import EdgeFrames, Frame

ALL = EdgeStream(thinking=True, intermediate=True)
TIMING = {"total_ms": 5.0, "model": [{"step": 1, "attempts": 1, "ms": 4.0, "ttft_ms": 2.0}]}


def event(type: str, step: int = 1, attempt: int = 1, epoch: int = 1, **data: Any) -> Event:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    return Event(type, at, "t", "s", "a", None, epoch, step, attempt, {"step": step, "attempt": attempt, **data})


def says(text: str, *place: int) -> Event:
    return event("content", *place, text=text)


def thinks(text: str, *place: int) -> Event:
    return event("thinking", *place, text=text)


def narrated(text: str, *place: int) -> Event:
    return event("intermediate", *place, text=text)


def fails(*place: int) -> Event:
    return event("provider_failure", *place, action="retryable", status=500, retry_after=None)


def completed(*place: int, outcome: str = "completed") -> Event:
    return event("turn_completed", *place, outcome=outcome, timing=TIMING)


def shown(*events: Event, stream: EdgeStream | None = ALL, timing: bool = False, answer: str | None = None):
    """(type, what it says) of every frame."""
    frames = EdgeFrames(stream, timing=timing)
    found: list[Frame] = []
    for each in events:
        found += frames.read(each, answer if each.type == EventType.TURN_COMPLETED else None)
    return [(frame.type, frame.data.get("delta", frame.data)) for frame in found]


ANSWER, REASONING, NARRATION = (
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "insika.intermediate.delta",
)
DONE = ("response.completed", {"outcome": "completed"})
A_TURN = [
    thinks("I should look"),
    says("Let me "),
    says("see."),
    narrated("Let me see."),
    event("tool_called", tool="look"),
    thinks("found", 2),
    says("It is ", 2),
    says("there.", 2),
    completed(2),
]


def test_an_agent_that_lets_nothing_out_shows_its_answer_and_nothing_else():
    for stream in (EdgeStream(), None):
        assert shown(*A_TURN, stream=stream) == [(ANSWER, "It is "), (ANSWER, "there."), DONE]


def test_reasoning_and_narration_have_frames_of_their_own():
    assert shown(*A_TURN) == [
        (REASONING, "I should look"),
        (NARRATION, "Let me see."),
        (REASONING, "found"),
        (ANSWER, "It is "),
        (ANSWER, "there."),
        DONE,
    ]


@pytest.mark.parametrize(
    ("stream", "kind"), [(EdgeStream(thinking=True), NARRATION), (EdgeStream(intermediate=True), REASONING)]
)
def test_each_is_switched_by_itself(stream, kind):
    found = {type for type, _ in shown(*A_TURN, stream=stream)}
    assert kind not in found
    assert len(found) == 3


def test_nothing_leaves_before_it_is_known_what_it_is():
    frames = EdgeFrames(ALL)
    for each in (thinks("a"), says("b"), says("c")):
        assert frames.read(each) == ()
    assert frames.read(narrated("bc")) != ()


def test_of_a_failed_attempt_nothing_is_shown():
    events = [
        thinks("x"),
        says("wrong"),
        fails(),
        says("late"),
        thinks("y", 1, 2),
        says("right", 1, 2),
        completed(1, 2),
    ]
    assert shown(*events) == [(REASONING, "y"), (ANSWER, "right"), DONE]


def test_an_attempt_that_nobody_finished_is_void_once_the_next_one_begins():
    events = [says("half of"), says("whole", 1, 2, 2), says("late", 1, 1, 1), completed(1, 2, 2)]
    assert shown(*events) == [(ANSWER, "whole"), DONE]


def test_a_step_whose_narration_was_never_told_does_not_become_part_of_the_answer():
    assert shown(says("Let me see."), says("Done.", 2, 1, 2), completed(2, 1, 2)) == [(ANSWER, "Done."), DONE]


def test_an_old_owner_s_words_are_dropped_whatever_they_are():
    late = [
        thinks("x", 5, 1, 1),
        says("x", 5, 1, 1),
        narrated("x", 5, 1, 1),
        fails(5, 1, 1),
        event("ttft", 5, 1, 1, ttft_ms=1),
    ]
    events = [says("new", 1, 1, 2), *late, completed(1, 1, 2)]
    assert shown(*events, timing=True) == [
        (ANSWER, "new"),
        ("response.completed", {"outcome": "completed", "timing": TIMING}),
    ]


def test_the_store_has_the_word_on_what_the_answer_is():
    heard = [says("It "), says("is.")]
    assert shown(*heard, completed(), answer="It is.") == [(ANSWER, "It "), (ANSWER, "is."), DONE]
    assert shown(*heard, completed(), answer="It is not.") == [(ANSWER, "It is not."), DONE]
    assert shown(*heard, completed(), answer="") == [DONE]
    assert shown(completed(), answer="Whole.") == [(ANSWER, "Whole."), DONE]


def test_a_halt_speaks_in_place_of_what_announced_it():
    events = [thinks("x"), says("Closing."), narrated("Closing."), says("late"), completed(outcome="halted")]
    assert shown(*events, answer="Goodbye.") == [
        (REASONING, "x"),
        (NARRATION, "Closing."),
        (ANSWER, "Goodbye."),
        ("response.completed", {"outcome": "halted"}),
    ]


def test_what_is_completed_by_an_attempt_that_was_not_heard_is_not_what_was_heard():
    assert shown(thinks("x"), says("old"), completed(1, 2), answer="new") == [(ANSWER, "new"), DONE]
    assert shown(says("old"), completed(1, 2)) == [DONE]


def test_where_events_are_missing_nothing_half_is_shown():
    missed = Event(EventType.EVENTS_MISSED, datetime(2030, 1, 1, tzinfo=UTC))
    events = [thinks("x"), says("It "), missed, says("there."), completed()]
    assert shown(*events, answer="It is there.") == [(ANSWER, "It is there."), DONE]
    assert shown(*events) == [DONE]
    assert shown(says("x"), missed, says("It is.", 2), completed(2)) == [(ANSWER, "It is."), DONE]


def test_times_are_told_where_the_process_tells_them():
    events = [event("ttft", ttft_ms=2.0), says("Hi."), completed()]
    assert shown(*events) == [(ANSWER, "Hi."), DONE]
    assert shown(*events, timing=True, stream=EdgeStream()) == [
        ("insika.ttft", {"ttft_ms": 2.0}),
        (ANSWER, "Hi."),
        ("response.completed", {"outcome": "completed", "timing": TIMING}),
    ]


@pytest.mark.parametrize("type", ["turn_failed", "turn_cancelled"])
def test_a_turn_without_an_answer_shows_none(type):
    end = event(type, 0, error="timeout", outcome="failed")
    assert shown(says("half"), thinks("x"), end, says("late")) == [("response.failed", {"error": "timeout"})]


def test_nothing_follows_the_end():
    frames = EdgeFrames(ALL, timing=True)
    frames.read(completed())
    assert frames.ended
    for each in (*A_TURN, event("ttft", 3, ttft_ms=1)):
        assert frames.read(each) == ()


def test_what_concerns_no_text_is_passed_over():
    for type in ("turn_accepted", "turn_started", "tool_called", "tool_returned", "turn_steered", "approval_requested"):
        assert shown(says("a"), event(type, 9, 9, 9), says("b"), completed()) == [(ANSWER, "a"), (ANSWER, "b"), DONE]
