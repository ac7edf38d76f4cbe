"""What a request costs, as the vendor counts it while a stream goes on. Pure.

`message_start` tells the input, each `message_delta` what has come together by then: its counts replace those before
it, and what it leaves out or gives as null stays as it was. The three counts of the input are disjoint, as the house's
are, and the output holds what was thought.

Sources: platform.claude.com/docs/en/build-with-claude/streaming ("the counts are cumulative"), prompt-caching,
"Tracking cache performance", and api/messages/create, "Usage".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from insika.messages import Usage

_NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True)
class Counts:
    """`ended`: the vendor has said what the whole output cost."""

    ended: bool = False
    _counts: dict[str, int] = field(default_factory=dict)

    def take(self, told: object, *, at_end: bool = False) -> bool:
        """Whether anything was told."""
        if not isinstance(told, Mapping):
            return False
        news = {name: told[name] for name in _NAMES if _is_count(told.get(name))}
        self._counts.update(news)
        self.ended = self.ended or (at_end and "output_tokens" in news)
        return bool(news)

    @property
    def usage(self) -> Usage:
        count = self._counts.get
        return Usage(*(count(name, 0) for name in _NAMES))

    @property
    def knows_input(self) -> bool:
        return "input_tokens" in self._counts

    @property
    def measured(self) -> bool:
        """The vendor has told the input and the whole output."""
        return self.ended and self.knows_input


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
