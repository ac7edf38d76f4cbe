"""What a client of `/v1/responses` that streams gets to see of one turn: its events, translated into frames. Pure.

A client puts deltas together as they come and can take none back. So a text is held until it is known what it is: a
step's text is narration once the step has called tools, and the answer once the turn has completed, and both events
name the attempt that came to it; what another attempt has shown, which failed or which nobody finished, never leaves.
Only the message that ends the turn is in the answer's frames; reasoning and narration have frames of their own, and
only where the agent's `edge_stream` lets them out.

Events come from every owner that the turn had, some of them late: what is older by (epoch, step, attempt) than what
has been read is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from insika.agents.profile import EdgeStream
from insika.events import Event, EventType

ANSWER = "response.output_text.delta"
REASONING = "response.reasoning_summary_text.delta"
NARRATION = "insika.intermediate.delta"
FIRST_TOKEN = "insika.ttft"  # noqa: S105 - the name of a frame
COMPLETED = "response.completed"
FAILED = "response.failed"

Place = tuple[int, int, int]
"""Epoch, step, attempt."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`data` holds what this file knows of it: `delta`, `ttft_ms`, `outcome`, `timing`, `error`. Ids, sequence numbers
    and the rest of OpenAI's envelope are whoever sends it to add."""

    type: str
    data: dict[str, Any]


class EdgeFrames:
    """The frames of one turn, for one client. `timing`: the process tells times (INSIKA_TURN_TIMING)."""

    def __init__(self, edge_stream: EdgeStream | None, *, timing: bool = False) -> None:
        shown = edge_stream or EdgeStream()
        self._reasons = shown.thinking
        self._narrates = shown.intermediate
        self._timing = timing
        self._place: Place = (0, 0, 0)
        self._void = False
        self._said: list[str] = []
        self._thought: list[str] = []
        self._ended = False

    @property
    def ended(self) -> bool:
        """The turn has; nothing follows."""
        return self._ended

    def read(self, event: Event, answer: str | None = None) -> Sequence[Frame]:
        """What `event` lets out. Give every event of the turn as it comes, and `events_missed`.

        `answer`: with `turn_completed`, the answer as the store has it, which is the truth: what was heard is told in
        its pieces only where it comes to the same. None: there is nothing to compare with.
        """
        if self._ended:
            return ()
        match event.type:
            case EventType.CONTENT:
                if self._hears(event):
                    self._said.append(event.data["text"])
            case EventType.THINKING:
                if self._hears(event) and self._reasons:
                    self._thought.append(event.data["text"])
            case EventType.INTERMEDIATE:
                return self._narrated(event)
            case EventType.TTFT:
                if self._timing and self._moves_to(event):
                    return (Frame(FIRST_TOKEN, {"ttft_ms": event.data["ttft_ms"]}),)
            case EventType.EVENTS_MISSED:
                self._forget()
            case EventType.TURN_COMPLETED:
                return self._completed(event, answer)
            case EventType.TURN_FAILED | EventType.TURN_CANCELLED:
                self._ended = True
                return (Frame(FAILED, self._with_timing(event, {"error": event.data.get("error")})),)
        return ()

    def _hears(self, event: Event) -> bool:
        """It is of the attempt at hand, which may come to something yet."""
        return self._moves_to(event) and not self._void

    def _narrated(self, event: Event) -> Sequence[Frame]:
        """The step has its calls in the log: what its attempt showed was narration, and reasoning towards it."""
        if not self._moves_to(event):
            return ()
        frames = self._reasoning()
        if self._narrates and event.data["text"]:
            frames.append(Frame(NARRATION, {"delta": event.data["text"]}))
        self._forget()
        return frames

    def _completed(self, event: Event, answer: str | None) -> Sequence[Frame]:
        self._ended = True
        if _place_of(event) != self._place or self._void:
            self._said, self._thought = [], []
        heard = "".join(self._said)
        pieces = self._said if answer is None or heard == answer else [answer]
        frames = self._reasoning()
        frames += [Frame(ANSWER, {"delta": piece}) for piece in pieces if piece]
        frames.append(Frame(COMPLETED, self._with_timing(event, {"outcome": event.data["outcome"]})))
        return frames

    def _reasoning(self) -> list[Frame]:
        return [Frame(REASONING, {"delta": piece}) for piece in self._thought if piece]

    def _with_timing(self, event: Event, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "timing": event.data["timing"]} if self._timing and "timing" in event.data else data

    def _moves_to(self, event: Event) -> bool:
        """False: it is older than what has been read. A newer place voids what the one before had shown."""
        place = _place_of(event)
        if place > self._place:
            self._place, self._void, self._said, self._thought = place, False, [], []
        return place == self._place

    def _forget(self) -> None:
        """Nothing that the attempt at hand has shown, or shows yet, is to leave."""
        self._void, self._said, self._thought = True, [], []


def _place_of(event: Event) -> Place:
    return (event.epoch, event.step, event.attempt)
