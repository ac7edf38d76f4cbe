"""How the parts of a chunk are read, and what is said of one that cannot be. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from insika.text import clean_text


class Unreadable(Exception):
    """What came is not in the shape of a chunk. Holds nothing of what was in it."""


class Failed(Exception):
    """The vendor says in mid-stream that it cannot go on. `error` is its error object."""

    def __init__(self, error: Mapping[str, object]) -> None:
        super().__init__()
        self.error = error


class BrokenOff(Exception):
    """The stream ended before the message did."""


def text_in(part: Mapping[str, object], name: str) -> str:
    """ "" where it is null or absent. Raises Unreadable where it is no text."""
    value = part.get(name)
    if value is not None and not isinstance(value, str):
        raise Unreadable(f"a {name} that is no text")
    return value or ""


class Halves:
    """Text whose pieces may part the two halves of one character: JSON can write an emoji as two escapes, and a model's
    tokens can end between them. What is given out is always text that can be encoded and kept."""

    def __init__(self) -> None:
        self._half = ""

    def join(self, piece: str) -> str:
        """What can be said by now."""
        text, self._half = self._half + piece, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean_text(text)

    def rest(self) -> str:
        """What is left when nothing more comes."""
        half, self._half = self._half, ""
        return clean_text(half)
