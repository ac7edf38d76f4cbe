"""What people say in a storm: a label, which no other text has, and the batches of calls that its turn is to make.

    s017#4: look charge | reserve

The scripted model reads this and does as it is told, so the text alone decides what a turn does; the label lets the
verdict find each text again in the conversation, and each call in the tools' journal.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

TOOLS = ("look", "weigh", "charge", "letter", "reserve")
ONCE_ONLY = frozenset({"charge", "letter"})
"""The tools that change the world and do not bear a second run for one call."""
SIDE_EFFECTS = ONCE_ONLY | {"reserve"}

_SHORT_MS = range(10, 130)
_LONG_MS = range(300, 900)
_ONE_IN_LONG = 8


@dataclass(frozen=True, slots=True)
class Wish:
    """`batches`: the tools to call, batch by batch. Without any the model answers at once."""

    label: str
    batches: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return f"{self.label}: " + " | ".join(" ".join(batch) for batch in self.batches)

    @classmethod
    def read(cls, text: str) -> Wish:
        label, _, rest = text.partition(": ")
        batches = (tuple(batch.split()) for batch in rest.split("|"))
        return cls(label, tuple(batch for batch in batches if batch))

    def order(self, batch: int, index: int) -> str:
        """What the call at that place is made for: no other call anywhere has the same."""
        return f"{self.label}.{batch}.{index}"


def pause_s(order: str) -> float:
    """How long a tool takes over this order: mostly tens of milliseconds, sometimes most of a second."""
    number = zlib.crc32(order.encode())
    spread = _LONG_MS if number % _ONE_IN_LONG == 0 else _SHORT_MS
    return spread[number // _ONE_IN_LONG % len(spread)] / 1000
