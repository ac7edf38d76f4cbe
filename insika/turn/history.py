"""How much of a long conversation a request carries.

The window moves only when a turn begins, and only to the beginning of a turn, so that no result is ever parted from
its call and, between two moves, each request is a byte prefix of the next. When it must move it frees half of the
budget at once: a window that moved a little with every turn would make the vendors' prompt caches miss every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from insika.storage.rows import LogEntry
from insika.turn.estimate import estimate_usage


def load_from(log: Sequence[LogEntry], opening_texts: Sequence[str], context_budget: int | None) -> int | None:
    """The sequence number from which the conversation is loaded from now on, or None to leave it where it is.

    `log` is what is loaded now; `opening_texts` what the new turn begins with. `context_budget` is in tokens,
    estimated; None keeps everything. The new turn itself is always kept, however large.
    """
    if context_budget is None:
        return None
    turns = [tuple(entries) for _, entries in itertools.groupby(log, key=lambda entry: entry.turn_id)]
    costs = [estimate_usage("", [entry.message for entry in turn]).input for turn in turns]
    new = sum(-(-len(text) // 4) for text in opening_texts)
    if sum(costs) + new <= context_budget:
        return None
    room, keep = context_budget // 2 - new, len(turns)
    while keep > 0 and costs[keep - 1] <= room:
        keep -= 1
        room -= costs[keep]
    return turns[keep][0].seq if keep < len(turns) else (log[-1].seq + 1 if log else None)
