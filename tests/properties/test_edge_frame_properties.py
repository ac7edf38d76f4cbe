"""Whatever owners a turn has had, and however late their words come: a client sees the answer, and of the rest only
what came to something."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from insika.agents.profile import EdgeStream
from insika.events import Event
from insika.turn import edge_frames
from insika.turn.edge_frames import EdgeFrames, Frame

AT = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Life:
    """What the owners of one turn said, each in a stream of its own, and what came of it."""

    streams: list[list[Event]] = field(default_factory=list)
    answer: str = ""
    narrated: list[str] = field(default_factory=list)
    reasoned: set[str] = field(default_factory=set)
    void: set[str] = field(default_factory=set)


def event(type: str, place: tuple[int, int, int], **data: Any) -> Event:
    epoch, step, attempt = place
    return Event(type, AT, "t", "s", "a", None, epoch, step, attempt, data)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """A turn of a few steps. Each attempt shows some pieces, every one unlike all others, and then is whole, fails, or
    is left because its owner died or was told that things stand otherwise; an owner may die at any of its events."""
    life = Life([[]])
    steps, epoch, made = draw(st.integers(1, 4)), 1, 0
    for step in range(1, steps + 1):
        attempt = 0
        while True:
            attempt += 1
            place = (epoch, step, attempt)
            pieces = draw(st.lists(st.sampled_from(["content", "thinking"]), max_size=4))
            texts = [f"<{made + index}>" for index in range(len(pieces))]
            made += len(pieces)
            said = [event(kind, place, text=text) for kind, text in zip(pieces, texts, strict=True)]
            end = draw(st.sampled_from(["whole", "whole", "failed", "died", "reloaded"]))
            if attempt >= 4:
                end = "whole"
            if end != "whole":
                life.void.update(texts)
                kept = said[: draw(st.integers(0, len(said)))] if end == "died" else said
                life.streams[-1] += [*kept, *([event("provider_failure", place)] if end == "failed" else [])]
                if end == "died":
                    life.streams.append([])
                    epoch += 1
                continue
            spoken = "".join(each.data["text"] for each in said if each.type == "content")
            thought = {each.data["text"] for each in said if each.type == "thinking"}
            life.streams[-1] += said
            life.reasoned |= thought
            if step == steps:
                life.answer = spoken
                life.streams[-1].append(event("turn_completed", place, outcome="completed"))
                return life
            if said:
                life.narrated.append(spoken)
                life.streams[-1].append(event("intermediate", place, text=spoken))
            break


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[Life, list[Event]]:
    """The same as a reader gets it: each owner's words in their order, those of older owners arbitrarily late."""
    life = draw(lives())
    waiting = [list(stream) for stream in life.streams]
    came: list[Event] = []
    while any(waiting):
        came.append(waiting[draw(st.sampled_from([n for n, left in enumerate(waiting) if left]))].pop(0))
    return life, came


def frames_of(came: list[Event], answer: str | None, stream: EdgeStream) -> list[Frame]:
    frames = EdgeFrames(stream)
    return [frame for each in came for frame in frames.read(each, answer if each.type == "turn_completed" else None)]


def deltas(frames: list[Frame], type: str) -> list[str]:
    return [frame.data["delta"] for frame in frames if frame.type == type]


@given(interleaved(), st.booleans(), st.booleans())
def test_a_client_sees_the_answer_and_nothing_that_came_to_nothing(
    lived: tuple[Life, list[Event]], thinking: bool, intermediate: bool
) -> None:
    life, came = lived
    frames = frames_of(came, life.answer, EdgeStream(thinking=thinking, intermediate=intermediate))

    assert "".join(deltas(frames, edge_frames.ANSWER)) == life.answer
    everything = "".join(frame.data.get("delta", "") for frame in frames)
    assert not [text for text in life.void if text in everything]
    reasoning = deltas(frames, edge_frames.REASONING)
    assert set(reasoning) <= (life.reasoned if thinking else set())
    assert len(reasoning) == len(set(reasoning))
    narration = deltas(frames, edge_frames.NARRATION)
    told = [text for text in life.narrated if text]
    assert [text for text in told if text in narration] == narration
    assert intermediate or not narration
    assert [frame.type for frame in frames].count(edge_frames.COMPLETED) == 1
    assert frames[-1].type == edge_frames.COMPLETED


@given(lives())
def test_in_the_order_of_their_owners_all_of_it_is_seen(life: Life) -> None:
    came = [each for stream in life.streams for each in stream]
    frames = frames_of(came, None, EdgeStream(thinking=True, intermediate=True))

    assert "".join(deltas(frames, edge_frames.ANSWER)) == life.answer
    assert set(deltas(frames, edge_frames.REASONING)) == life.reasoned
    assert deltas(frames, edge_frames.NARRATION) == [text for text in life.narrated if text]


@given(lives(), st.data())
def test_where_words_are_lost_the_answer_is_still_whole(life: Life, data: Any) -> None:
    came = [each for stream in life.streams for each in stream]
    ends = came.pop()
    missed = Event("events_missed", AT)
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(came)))
        last = data.draw(st.integers(first, len(came)))
        came[first:last] = [missed]
    frames = frames_of([*came, ends], life.answer, EdgeStream(thinking=True, intermediate=True))

    assert "".join(deltas(frames, edge_frames.ANSWER)) == life.answer
    assert not [text for text in life.void if text in "".join(frame.data.get("delta", "") for frame in frames)]
