"""Who owns a session: claiming it, loading it, letting it go, and finding those that want an owner.

Time decides who may claim; the lease's id alone decides who may write. A claim and the load after it are two
statements: one alone would load what was there before it waited for the lock.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from insika.storage.operations import Fence, Release, Seen
from insika.storage.postgres import mapping
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.queries import sql
from insika.storage.rows import Claim, Loaded


async def claim(
    pool: Pool, session_id: int, lease_s: float, *, take_expired: bool, take_suspects: bool, lease_id: str
) -> Claim | None:
    lease_id = lease_id or os.urandom(16).hex()
    values = {
        "session_id": session_id,
        "lease_id": lease_id,
        "lease_ms": lease_s * 1000,
        "take_expired": take_expired,
        "take_suspects": take_suspects,
    }
    row = await pool.row(sql("ownership/claim"), values)
    return None if row is None else Claim(session_id, lease_id, *row)


async def load(pool: Pool, fence: Fence, log_after: int) -> Loaded | None:
    row = await pool.row(sql("ownership/load"), {**_fenced(fence), "log_after": log_after})
    return None if row is None else mapping.loaded(row[0])


async def confirm(pool: Pool, fence: Fence) -> bool:
    return await pool.row(sql("ownership/confirm"), _fenced(fence)) is not None


async def release(pool: Pool, fence: Fence, seen: Seen, release: Release) -> bool:
    values = {**_fenced(fence), "mail": seen.mail, "due_at": release.due_at}
    return await pool.row(sql("ownership/release"), values) is not None


async def nudge_due(pool: Pool, limit: int) -> tuple[int, ...]:
    """Those that are due, counted as nudged, so that two who ask at once get different ones."""
    return tuple(session_id for (session_id,) in await pool.rows(sql("ownership/nudge_due"), {"limit": limit}))


async def wake_due(pool: Pool) -> int:
    ((count,),) = await pool.rows(sql("ownership/wake_due"), {})
    return int(count)


async def next_due_at(pool: Pool) -> datetime:
    ((at,),) = await pool.rows(sql("ownership/next_due_at"), {})
    return at  # type: ignore[no-any-return]


def _fenced(fence: Fence) -> dict[str, Any]:
    return {"session_id": fence.session_id, "lease_id": fence.lease_id}
