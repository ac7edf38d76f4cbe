"""Replaces what may not leave in an answer, in a text that comes in pieces.

What comes out, put together, is the same however the text was cut: every finder answers by the text alone, and what it
cannot tell yet is held back until it can. What is held back is short; what follows the head of a long secret is dropped
as it comes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from insika.policy.guardrails.redaction.finding import CONTEXT, NO_REST, Finder, Hit, Hold, Rest

EVERYWHERE = re.compile("")
_PIECE = 1_024
"""Characters looked at together. Finders look ahead to the end of what there is, after every hit anew."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without what was found in it, and how often each kind was."""

    text: str
    found: Mapping[str, int]


class StreamRedactor:
    """Of one text. `kept` says of what was found whether it may stay. Where `begins` finds nothing, no finder does."""

    def __init__(
        self,
        finders: Sequence[Finder],
        replacements: Mapping[str, str],
        kept: Callable[[str], bool] = lambda said: False,
        begins: re.Pattern[str] = EVERYWHERE,
    ) -> None:
        self._finders = finders
        self._begins = begins
        self._replacements = replacements
        self._kept = kept
        self._text = ""
        self._at = 0  # what stands before it has been said, and is kept only to be looked back at
        self._rest: Rest = NO_REST
        self._skipped = 0
        self._found: Counter[str] = Counter()

    @property
    def found(self) -> Mapping[str, int]:
        """How often each kind was found so far."""
        return dict(self._found)

    def feed(self, chunk: str) -> str:
        """What may be said once `chunk` has come; the rest is held back."""
        if len(chunk) <= _PIECE:
            self._text += chunk
            return self._say(ended=False)
        said = []
        for first in range(0, len(chunk), _PIECE):
            self._text += chunk[first : first + _PIECE]
            said.append(self._say(ended=False))
        return "".join(said)

    def finish(self) -> str:
        """What was held back, now that nothing more comes."""
        return self._say(ended=True)

    def _say(self, *, ended: bool) -> str:
        if self._rest is NO_REST and self._begins.search(self._text, self._at) is None:
            said_at_once, self._at = self._text[self._at :], len(self._text)
            self._forget()
            return said_at_once
        said: list[str] = []
        while self._skip(ended):
            met = self._first(ended)
            said.append(self._text[self._at : len(self._text) if met is None else met.start])
            if met is None:
                self._at = len(self._text)
                break
            self._at = met.start
            if isinstance(met, Hold):
                break
            said.append(self._replaced(met))
        self._forget()
        return "".join(said)

    def _first(self, ended: bool) -> Hit | Hold | None:
        first: Hit | Hold | None = None
        for finder in self._finders:
            met = finder.first(self._text, self._at, ended)
            if met is not None and (first is None or met.start < first.start):
                first = met
        return first

    def _replaced(self, hit: Hit) -> str:
        found = self._text[hit.start : hit.end]
        self._at = hit.end
        if hit.rest is NO_REST and self._kept(found):
            return found
        self._rest, self._skipped = hit.rest, 0
        self._found[hit.kind] += 1
        return self._replacements[hit.kind]

    def _skip(self, ended: bool) -> bool:
        """Drop what goes with the last hit. False: more of it may come."""
        if self._rest is NO_REST:
            return True
        before = self._at
        self._at, over = self._rest.skip(self._text, self._at, self._skipped, ended)
        self._skipped += self._at - before
        if over:
            self._rest = NO_REST
        return over

    def _forget(self) -> None:
        if (cut := self._at - CONTEXT) > 0:
            self._text, self._at = self._text[cut:], CONTEXT
