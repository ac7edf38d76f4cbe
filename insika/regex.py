"""Patterns that search in time linear in the text, whoever wrote them: RE2's syntax, without backtracking.

A text of strangers meets patterns here, and an operator may add some of his own; with a backtracking engine one slow
pattern would hold up everybody's messages. Back-references and look-around are therefore no part of the syntax
(https://github.com/google/re2/wiki/Syntax). Nothing else may import the engine.
"""

from __future__ import annotations

from collections.abc import Iterator

import re2

_MAX_MEMORY = 32 << 20
"""Bytes for one pattern, its automaton included. Beyond, the engine goes on without a cache: slower, still linear."""

Span = tuple[int, int]


class LinearRegex:
    """One pattern, for texts as UTF-8. Where it matches is told in bytes."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        """Raises ValueError with a sentence that says what is wrong with `pattern`."""
        options = re2.Options()
        options.max_mem = _MAX_MEMORY
        options.log_errors = False
        options.never_capture = True
        options.case_sensitive = not ignore_case
        try:
            self._regex = re2.compile(pattern.encode(), options)
        except re2.error as error:
            raise ValueError(f"is not a pattern in RE2's syntax: {_reason(error)}") from None

    @property
    def size(self) -> int:
        """Instructions of the compiled program: what a search may cost for each byte at the very worst."""
        return int(self._regex.programsize)

    def found_in(self, text: bytes) -> bool:
        return self._regex.search(text) is not None

    def spans(self, text: bytes) -> Iterator[Span]:
        """Where it matches, from left to right, without overlaps."""
        for match in self._regex.finditer(text):
            yield match.span()

    def first_from(self, text: bytes, at: int) -> Span | None:
        """The first match that begins at `at` or later; what stands before is seen by `\\b` and the like."""
        match = self._regex.search(text, at)
        return None if match is None else match.span()

    def at(self, text: bytes, at: int, end: int) -> int | None:
        """Where the match that begins exactly at `at` ends, `end` at most; None without one."""
        match = self._regex.match(text, at, end)
        return None if match is None else int(match.end())


def any_of(patterns: list[str]) -> str:
    """One pattern that matches where any of them does."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else b""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
