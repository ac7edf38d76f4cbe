"""What was spent: the sums of days, and what is not in them yet. Both are read in one statement, and a model call goes
from the one to the other in one write, so that each is counted once at every instant.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import datetime

from insika.storage.operations import utc_midnights
from insika.storage.rows import Spend
from insika.storage.sqlite.queries import sql
from insika.storage.sqlite.times import to_micros

_DAY_US = 86_400_000_000


def spend(connection: sqlite3.Connection, tenant: str, agent: str, day_start: datetime, month_start: datetime) -> Spend:
    utc_midnights(day_start, month_start)
    day, month = to_micros(day_start) // _DAY_US, to_micros(month_start) // _DAY_US
    values = {"tenant": tenant, "agent": agent, "day": day, "month": month}
    return Spend(*connection.execute(sql("spend/spend"), values).fetchone())


def roll_up(connection: sqlite3.Connection, until: datetime, limit: int) -> int:
    values = {"until": to_micros(until), "limit": limit}
    rolled = connection.execute(sql("spend/mark_rolled_up"), values).fetchall()
    sums = Counter[tuple[str, str, int]]()
    for tenant, agent, day, tokens in rolled:
        sums[tenant, agent, day] += tokens
    connection.executemany(sql("spend/add_to_day"), [(*day, tokens) for day, tokens in sums.items()])
    return len(rolled)
