"""Looks for patterns in what a person says. Deterministic: the same text gets the same verdict under the same rules.

Every pattern runs in linear time (`insika.regex`). Most texts meet no pattern, so all are first asked at once; only
where one of them answers is each asked by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from insika.policy.guardrails.pattern import Pattern, View
from insika.policy.guardrails.verdict import ALLOW, Block, GuardVerdict
from insika.readings.reading import Reading, readings
from insika.regex import LinearRegex, Span, any_of

NEAR = 90
"""Bytes before and after a match in which what excuses it may stand."""


class _Rule:
    """One pattern. It is compiled when a text first comes near it, which most never do."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    @cached_property
    def _regex(self) -> LinearRegex:
        return LinearRegex(self.pattern.regex, ignore_case=True)

    @cached_property
    def _excuses(self) -> Sequence[tuple[LinearRegex, bool]]:
        """Each with whether it must share a part with what it excuses."""
        given = ((self.pattern.unless, True), (self.pattern.unless_near, False))
        return [(LinearRegex(excuse, ignore_case=True), shares) for excuse, shares in given if excuse]

    def speaks_against(self, text: bytes) -> bool:
        return any(not self._excused(text, found) for found in self._regex.spans(text))

    def _excused(self, text: bytes, found: Span) -> bool:
        start, end = found
        first = max(0, start - NEAR)
        around = text[first : end + NEAR]
        return any(
            not shares or (first + excuse[0] < end and first + excuse[1] > start)
            for regex, shares in self._excuses
            for excuse in regex.spans(around)
        )


@dataclass(frozen=True, slots=True)
class _Group:
    """The patterns that read one view."""

    view: View
    gate: LinearRegex
    rules: Sequence[_Rule]

    def first_against(self, reading: Reading) -> Pattern | None:
        text = reading.words if self.view is View.WORDS else reading.text
        if not self.gate.found_in(text):
            return None
        return next((rule.pattern for rule in self.rules if rule.speaks_against(text)), None)


class Detector:
    """For one choice of patterns. Making one takes some tens of milliseconds: keep it."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        """Raises ValueError for a pattern that is not in RE2's syntax."""
        given = list(patterns)
        self._groups = [
            _Group(view, LinearRegex(any_of([pattern.regex for pattern in alike]), ignore_case=True), rules)
            for view in View
            if (alike := [pattern for pattern in given if pattern.view is view])
            and (rules := [_Rule(pattern) for pattern in alike])
        ]

    def look(self, text: str) -> GuardVerdict:
        for reading in readings(text):
            for group in self._groups:
                found = group.first_against(reading)
                if found is not None:
                    return Block(found.category, found.id, found.language)
        return ALLOW
