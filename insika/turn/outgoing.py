"""What a model says is looked through before anybody sees it: piece by piece as it streams, and whole before it counts.

Of each attempt, what it says and what it thinks are looked through apart, so that nothing of one can hide in the other.
What is held back of an attempt that fails is never shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from insika.events import EventType
from insika.policy.guardrails.redaction.redactor import Redacted

Show = Callable[[EventType, str], None]

REDACTED = "redacted"
"""The reason of `guardrail_flagged` where something was taken out."""
_NOTHING: Mapping[str, int] = MappingProxyType({})


class OutgoingText(Protocol):
    """One text that comes in pieces."""

    @property
    def found(self) -> Mapping[str, int]:
        """How often each kind was taken out so far."""
        ...

    def feed(self, chunk: str) -> str:
        """What may be shown once `chunk` has come; the rest is held back."""
        ...

    def finish(self) -> str:
        """What was held back."""
        ...


class OutgoingGuard(Protocol):
    """A text comes out the same, whole or in whatever pieces."""

    def stream(self) -> OutgoingText: ...

    def redacted(self, text: str) -> Redacted: ...


class UnguardedText:
    found = _NOTHING

    def feed(self, chunk: str) -> str:
        return chunk

    def finish(self) -> str:
        return ""


class Unguarded:
    """Everything leaves as it was said."""

    def stream(self) -> OutgoingText:
        return _UNGUARDED

    def redacted(self, text: str) -> Redacted:
        return Redacted(text, _NOTHING)


_UNGUARDED = UnguardedText()
UNGUARDED = Unguarded()


class ShownAttempt:
    """What one attempt shows of itself. `show` gets each piece that may be seen."""

    def __init__(self, guard: OutgoingGuard, show: Show) -> None:
        self._guard = guard
        self._show = show
        self._content = guard.stream()
        self._thinking: OutgoingText | None = None
        self._thought: Counter[str] = Counter()

    @property
    def found_thinking(self) -> Mapping[str, int]:
        """How often each kind was taken out of what was thought."""
        return self._thought

    def says(self, text: str) -> None:
        self._ends_thinking()
        self._shows(EventType.CONTENT, self._content.feed(text))

    def thinks(self, text: str) -> None:
        if self._thinking is None:
            self._thinking = self._guard.stream()
        self._shows(EventType.THINKING, self._thinking.feed(text))

    def ends(self) -> None:
        """The attempt is whole."""
        self._ends_thinking()
        self._shows(EventType.CONTENT, self._content.finish())

    def _ends_thinking(self) -> None:
        """A thought that is followed by words is whole, and is shown before them."""
        if self._thinking is not None:
            self._shows(EventType.THINKING, self._thinking.finish())
            self._thought.update(self._thinking.found)
            self._thinking = None

    def _shows(self, type: EventType, text: str) -> None:
        if text:
            self._show(type, text)


def flagged(step: int, *found: Mapping[str, int]) -> Mapping[str, Any]:
    """What `guardrail_flagged` says of a step of which something was taken out; empty where nothing was."""
    kinds: Counter[str] = Counter()
    for each in found:
        kinds.update(each)
    return {"reason": REDACTED, "step": step, "kinds": dict(sorted(kinds.items()))} if kinds else {}
