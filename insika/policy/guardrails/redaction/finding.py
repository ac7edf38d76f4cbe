"""How a finder tells what it has found in a text of which more may come.

What holds for every finder, and makes a streamed text come out as if it had been there at once: what it says of a place
depends on the text alone. It looks at no more than `CONTEXT` characters before the place; and as long as what may still
come could change its mind it answers `Hold`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CONTEXT = 48
"""Characters before a place that a finder may look at."""


class Rest(Protocol):
    """What follows a hit and goes with it, however long it is."""

    def skip(self, text: str, at: int, skipped: int, ended: bool) -> tuple[int, bool]:
        """Up to where `text` goes from `at` on, and whether that was all. `skipped`: how much has gone before."""
        ...


class NoRest:
    def skip(self, text: str, at: int, skipped: int, ended: bool) -> tuple[int, bool]:
        return at, True


NO_REST = NoRest()


@dataclass(frozen=True, slots=True)
class Hit:
    """`text[start:end]` is something of this kind, and what `rest` takes goes with it."""

    start: int
    end: int
    kind: str
    rest: Rest = NO_REST


@dataclass(frozen=True, slots=True)
class Hold:
    """From `start` on, nothing can be said before more has come."""

    start: int


class Finder(Protocol):
    @property
    def begins(self) -> str:
        """A pattern that is found wherever this finder begins to find or to hold something: cheap to look for, and
        where it is not, the finder need not be asked. "" is everywhere."""
        ...

    def first(self, text: str, at: int, ended: bool) -> Hit | Hold | None:
        """The first thing that begins at `at` or later. None: there is none, whatever may come. `ended`: nothing more
        comes, and no `Hold` is given."""
        ...
