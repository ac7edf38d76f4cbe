"""Patterns as data, and which of them count for one agent."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from insika.agents.guardrails import Guardrails
from insika.choices import Strictness

ANY_LANGUAGE = "any"
OWN = "own"
"""The language of patterns that a profile adds."""


class View(enum.StrEnum):
    """Which form of the folded text a pattern reads: its words alone, or with all punctuation."""

    WORDS = "words"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Pattern:
    """`regex` and `unless` are for `LinearRegex`, and for folded text. `strictness`: the lowest at which it counts.

    A match is excused by a match of `unless` that shares a part with it, and by one of `unless_near` not far from it
    (empty: nothing excuses it). `matches` and `passes` are examples that its tests hold it to."""

    id: str
    category: str
    language: str
    strictness: Strictness
    view: View
    regex: str
    unless: str = ""
    unless_near: str = ""
    matches: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()


def chosen(built_in: Iterable[Pattern], rules: Guardrails) -> Sequence[Pattern]:
    """The patterns in force for an agent with these rules; its own come last."""
    removed = set(rules.remove)
    languages = None if rules.languages is None else {str(language) for language in rules.languages}
    return [
        *(
            pattern
            for pattern in built_in
            if pattern.strictness.covered_by(rules.strictness)
            and (languages is None or pattern.language in languages or pattern.language == ANY_LANGUAGE)
            and pattern.id not in removed
        ),
        *(
            Pattern(own.id, own.category, OWN, Strictness.LOW, View(own.view), own.folded, "", own.folded_unless)
            for own in rules.add
        ),
    ]
