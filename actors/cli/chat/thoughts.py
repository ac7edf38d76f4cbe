"""What a chat shows of a model while it works: its reasoning as it comes, and the requests that failed.

Told from events, which are hints: they may be missing, as when another process runs the session. What a model *says* is
shown from the store alone, once it is whole, so nothing of a failed request is ever taken for an answer; of its
reasoning, which cannot be taken back from a screen, the chat says that it is void.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from actors.cli.output import on_one_line
from insika.events import Event, EventType

THOUGHT = "  ~ "
LINE_MAX = 160
"""Reasoning without a line end is shown by so many characters."""

Place = tuple[str, int]
"""A turn and a step of it, in order: turns' ids grow with time."""
_Attempt = tuple[int, int, int]
"""Epoch, step, attempt: what is older than what has been read is dropped."""

Heard = Callable[[], Sequence[Event]]
"""The events since it was asked last; does not wait."""


def nothing_heard() -> Sequence[Event]:
    return ()


@dataclass(frozen=True, slots=True)
class Shown:
    number: int
    place: Place
    text: Text


class Thoughts:
    """Of one session. Read events before a look into the store and after it: what came before it and is newer than all
    that was found there may be shown; what came during it may have something before it that was not found yet."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._turn = ""
        self._attempt: _Attempt = (0, 0, 0)
        self._begun = ""
        self._showed = False
        self._waiting: list[Shown] = []
        self._numbers = itertools.count(1)
        self.last = 0
        """The number of the newest line."""

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.session == self._session and event.tenant is None and event.turn_id is not None:
                self._read(event, event.turn_id)

    def before(self, place: Place) -> list[Text]:
        """What belongs before what was said at `place`, or beside it."""
        if (self._turn, self._attempt[1]) <= place:
            self._flush()
        taken = [shown.text for shown in self._waiting if shown.place <= place]
        self._waiting = [shown for shown in self._waiting if shown.place > place]
        return taken

    def rest(self, last: int) -> list[Text]:
        """All that is left up to line number `last`."""
        taken = [shown.text for shown in self._waiting if shown.number <= last]
        self._waiting = [shown for shown in self._waiting if shown.number > last]
        return taken

    def _read(self, event: Event, turn_id: str) -> None:
        if event.step == 0:
            if event.type in (EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED):
                self._flush()
            return
        if not self._moves_to(turn_id, (event.epoch, event.step, event.attempt)):
            return
        if event.type == EventType.THINKING:
            self._think(str(event.data.get("text", "")))
        elif event.type == EventType.PROVIDER_FAILURE:
            self._fail(event)
        else:
            self._flush()

    def _moves_to(self, turn_id: str, attempt: _Attempt) -> bool:
        if turn_id == self._turn and attempt <= self._attempt:
            return attempt == self._attempt
        self._flush()
        self._turn, self._attempt, self._showed = turn_id, attempt, False
        return True

    def _think(self, text: str) -> None:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._show_thought(line)
        while len(self._begun) > LINE_MAX:
            head, space, tail = self._begun[:LINE_MAX].rpartition(" ")
            self._show_thought(head if space else tail)
            self._begun = (tail if space else "") + self._begun[LINE_MAX:]

    def _fail(self, event: Event) -> None:
        self._begun = ""
        status = event.data.get("status")
        what = f"a request to {event.data.get('model')} failed" + (f" (HTTP {status})" if status else "")
        void = f"; what stands above with {THOUGHT.strip()} was part of it, and is void" if self._showed else ""
        self._show(Text(f"[{on_one_line(what)}{void}]", style="dim"))

    def _flush(self) -> None:
        begun, self._begun = self._begun, ""
        self._show_thought(begun)

    def _show_thought(self, line: str) -> None:
        if line.strip():
            self._showed = True
            self._show(Text(f"{THOUGHT}{on_one_line(line.strip())}", style="dim"))

    def _show(self, text: Text) -> None:
        self.last = next(self._numbers)
        self._waiting.append(Shown(self.last, (self._turn, self._attempt[1]), text))
