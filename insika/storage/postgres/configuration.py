"""Profiles and settings: immutable revisions, and a record of which was applied when and from where.

The newest applied one is current. A file that has not changed since it was last applied changes nothing, so that what
an operator changed after it stands until the file changes. Whoever applies waits for whoever is applying.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insika.storage.json_text import to_json
from insika.storage.port import StoreRefused
from insika.storage.postgres import mapping
from insika.storage.postgres.pool import Pool, Statements
from insika.storage.postgres.queries import sql
from insika.storage.rows import Revision

_OPERATOR = "operator"


async def apply_profile(pool: Pool, name: str, revision: str, data: Mapping[str, Any], source: str) -> bool:
    return await _apply(pool, "profile", {"revision": revision, "name": name, "data": to_json(data)}, source)


async def apply_settings(pool: Pool, revision: str, data: Mapping[str, Any], source: str) -> bool:
    return await _apply(pool, "settings", {"revision": revision, "name": "", "data": to_json(data)}, source)


async def current_profiles(pool: Pool) -> Sequence[Revision]:
    return tuple(map(mapping.revision, await pool.rows(sql("configuration/current_profiles"), {})))


async def profile(pool: Pool, revision: str) -> Revision | None:
    row = await pool.row(sql("configuration/find_profile"), {"revision": revision})
    return None if row is None else mapping.revision(row)


async def current_settings(pool: Pool) -> Revision | None:
    row = await pool.row(sql("configuration/current_settings"), {})
    return None if row is None else mapping.revision(row)


async def _apply(pool: Pool, kind: str, stored: Mapping[str, str], source: str) -> bool:
    of = {"kind": kind, "name": stored["name"], "revision": stored["revision"], "source": source}

    async def apply(run: Statements) -> bool:
        await run(sql("configuration/lock"), {})
        current = next(iter(await run(sql("configuration/current"), of)), (None, None, None))
        revision, current_source, last_file = current
        if source != _OPERATOR and last_file == source and current_source == _OPERATOR:
            return False
        if (revision, current_source) == (stored["revision"], source):
            return False
        changes: bool = revision != stored["revision"]
        if changes and await run(sql(f"configuration/keep_{kind}"), stored) != [(True,)]:
            raise StoreRefused(f"revision {stored['revision']} is kept with other data: a revision is immutable")
        if changes or source != _OPERATOR:  # that the file changed counts, even where it caught up with an operator
            await run(sql("configuration/apply"), of)
        return changes

    return await pool.in_transaction(apply)
