"""A prompt cache: what a vendor remembers of the prompts it was sent, so that usage shows whether a prefix is stable.

A prompt is a list of pieces, each the bytes of one tool, one system text or one block of a message, in the order in
which vendors read them: tools, system, messages (platform.claude.com/docs/en/build-with-claude/prompt-caching, "How
prompt caching works"). Nothing is ever forgotten: times to live are not simulated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.vendors.spoken import tokens


@dataclass(frozen=True, slots=True)
class Cached:
    """Tokens of the prompt, in three disjoint parts."""

    fresh: int
    read: int
    written: int

    @property
    def prompt(self) -> int:
        return self.fresh + self.read + self.written


def prefix_hashes(pieces: Sequence[bytes], scope: str = "") -> list[str]:
    """One for each prefix, from the first piece alone to the whole. `scope`: what does not share a cache (a model)."""
    running = hashlib.sha256(scope.encode())
    hashes = []
    for piece in pieces:
        running.update(len(piece).to_bytes(8, "big") + piece)
        hashes.append(running.hexdigest())
    return hashes


@dataclass
class MarkedCache:
    """Anthropic's: written where a breakpoint stands, found at breakpoints and up to 20 pieces before each.

    `minimum`: fewer tokens are not cached, and nobody is told (same page, "Cache limitations").
    """

    lookback: int = 20
    _known: set[str] = field(default_factory=set)

    def look(self, scope: str, pieces: Sequence[bytes], marks: Sequence[int], minimum: int) -> Cached:
        """`marks`: indices of the pieces that end with a breakpoint."""
        sizes = _running_sizes(pieces)
        hashes = prefix_hashes(pieces, scope)
        usable = [mark for mark in marks if sizes[mark] >= minimum]
        hits = [
            at for mark in usable for at in range(max(0, mark - self.lookback), mark + 1) if hashes[at] in self._known
        ]
        read = sizes[max(hits)] if hits else 0
        written = max(0, (sizes[max(usable)] if usable else 0) - read)
        self._known.update(hashes[mark] for mark in usable)
        return Cached((sizes[-1] if sizes else 0) - read - written, read, written)


@dataclass
class AutomaticCache:
    """OpenAI's and those of its kind: every prompt is remembered, the longest common prefix is read, from `minimum`
    tokens on and in whole steps of `step` (developers.openai.com/api/docs/guides/prompt-caching)."""

    _known: set[str] = field(default_factory=set)

    def look(self, scope: str, pieces: Sequence[bytes], minimum: int, step: int) -> Cached:
        sizes = _running_sizes(pieces)
        hashes = prefix_hashes(pieces, scope)
        hits = [at for at, digest in enumerate(hashes) if digest in self._known]
        common = sizes[max(hits)] if hits else 0
        read = common // step * step if common >= minimum else 0
        self._known.update(hashes)
        return Cached((sizes[-1] if sizes else 0) - read, read, 0)


def _running_sizes(pieces: Sequence[bytes]) -> list[int]:
    total = 0
    sizes = []
    for piece in pieces:
        total += tokens(len(piece))
        sizes.append(total)
    return sizes
