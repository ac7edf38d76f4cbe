"""The newest entries of the stream as one process has read them, for all who subscribe there.

A subscriber holds a place in it, not a queue of its own: a slow one costs nothing, and one that has fallen behind the
window reads on from Redis.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from insika.coordination.redis.entries import Entry


class Window:
    """Holds the entries after number `begins` up to `ends` that could be read, at least the newest `bound` of them."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._entries: list[Entry] = []
        self.begins = 0
        self.ends = 0

    def begin(self, seq: int) -> None:
        """Forget everything, and go on after number `seq`."""
        self._entries = []
        self.begins = self.ends = seq

    def add(self, entries: Sequence[Entry]) -> None:
        """What was read next. What is known already, or lies before the window, is left aside."""
        new = [entry for entry in entries if entry.seq > self.ends]
        if not new:
            return
        self._entries.extend(new)
        self.ends = new[-1].seq
        # Seldom and many at a time, because cutting a list moves all that stays.
        if len(self._entries) > 2 * self._bound:
            self.begins = self._entries[-self._bound - 1].seq
            del self._entries[: -self._bound]

    def after(self, seq: int, limit: int) -> Sequence[Entry] | None:
        """At most `limit` entries after number `seq`; None: the window does not reach back that far."""
        if seq < self.begins:
            return None
        place = bisect_right(self._entries, seq, key=_number)
        return self._entries[place : place + limit]


def _number(entry: Entry) -> int:
    return entry.seq
