"""Texts with places that are filled later: `%{arguments.order_id}`, `%{context.session}`.

What stands in a place is known only when a call is made; which places there may be is known when the settings are
read. Nothing is ever read a second time: what has been filled in is text, also where it looks like a placeholder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

ARGUMENTS, CONTEXT, ENV, RESULT = "arguments", "context", "env", "result"

_PLACE = re.compile(r"%\{([^{}]*)\}?")
_NAME = re.compile(r"[A-Za-z]+(?:\.[A-Za-z0-9_-]+)*")


class Missing(Enum):
    """Not there, which null is."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Place:
    """`source` is the first word of a placeholder; `path` what follows it, name by name."""

    source: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return "%{" + ".".join((self.source, *self.path)) + "}"


@dataclass(frozen=True, slots=True)
class Template:
    """A text in pieces, as it was written."""

    pieces: tuple[str | Place, ...]

    @property
    def places(self) -> Iterator[Place]:
        return (piece for piece in self.pieces if isinstance(piece, Place))

    @property
    def whole(self) -> Place | None:
        """The place that is all of the text: what is filled in there keeps its type."""
        first = self.pieces[0] if len(self.pieces) == 1 else None
        return first if isinstance(first, Place) else None

    def filled(self, value_of: Callable[[Place], str]) -> str:
        return "".join(piece if isinstance(piece, str) else value_of(piece) for piece in self.pieces)


def parse(text: str) -> Template:
    """Raises ValueError, saying which placeholder is not one. It does not look at what a placeholder is about."""
    pieces: list[str | Place] = []
    end = 0
    for found in _PLACE.finditer(text):
        if not found[0].endswith("}"):
            raise ValueError("holds a %{ that no } follows")
        if not _NAME.fullmatch(found[1]):
            raise ValueError(
                f"holds {found[0][:80]!r}, which is no placeholder; write one like %{{arguments.order_id}}"
            )
        if found.start() > end:
            pieces.append(text[end : found.start()])
        source, *path = found[1].split(".")
        pieces.append(Place(source, tuple(path)))
        end = found.end()
    if end < len(text):
        pieces.append(text[end:])
    return Template(tuple(pieces))


def value_at(root: Any, path: Sequence[str]) -> Any:
    """What stands below `root`, by the names of objects and the positions of lists; MISSING where there is nothing."""
    for step in path:
        if isinstance(root, Mapping) and step in root:
            root = root[step]
        elif isinstance(root, list | tuple) and step.isascii() and step.isdigit() and int(step[:9]) < len(root):
            root = root[int(step)]
        else:
            return MISSING
    return root


def as_text(value: Any) -> str:
    """A JSON value within a text: a string as it is, all else as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
