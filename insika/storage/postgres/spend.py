"""What was spent: the sums of days, and what is not in them yet. Both are read in one statement, and a model call goes
from the one to the other in one, so that each is counted once at every instant.
"""

from __future__ import annotations

from datetime import datetime

from insika.storage.operations import utc_midnights
from insika.storage.postgres.pool import Pool
from insika.storage.postgres.queries import sql
from insika.storage.rows import Spend


async def spend(pool: Pool, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> Spend:
    utc_midnights(day_start, month_start)
    values = {"tenant": tenant, "agent": agent, "day": day_start.date(), "month": month_start.date()}
    (row,) = await pool.rows(sql("spend/spend"), values)
    return Spend(*row)


async def roll_up(pool: Pool, until: datetime, limit: int) -> int:
    ((count,),) = await pool.rows(sql("spend/roll_up"), {"until": until, "limit": limit})
    return int(count)
