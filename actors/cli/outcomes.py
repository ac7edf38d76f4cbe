"""Waiting, for some seconds, for what an owner makes of something that was asked of its session.

Whatever was asked stands in the store by then and is done in any case: nothing is lost by not waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from insika.clock import SystemClock
from insika.storage.rows import SessionRow

T = TypeVar("T")

LOOK_S = 0.1
"""Between two looks into the store."""
OWNED_S = 6.0
"""An owner that no signal reaches looks when it renews its lease, every third of it: 5 s unless INSIKA_LEASE_S says
otherwise."""
UNOWNED_S = 3.0
"""For a process to come for the session. There may be none."""


def patience_s(session: SessionRow | None) -> float:
    """How long it is worth waiting for the owner of this session."""
    owned = session is not None and session.lease_until is not None and session.lease_until >= SystemClock().now()
    return OWNED_S if owned else UNOWNED_S


async def outcome(look: Callable[[], Awaitable[T | None]], patience: float) -> T | None:
    """What `look` finds as soon as it finds something, within `patience` seconds; it is asked once in any case."""
    for _ in range(int(patience / LOOK_S)):
        found = await look()
        if found is not None:
            return found
        await asyncio.sleep(LOOK_S)
    return await look()
