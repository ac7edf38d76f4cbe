"""Profiles and settings: immutable revisions, and a record of which was applied when and from where.

The newest applied one is current. A file that has not changed since it was last applied changes nothing, so that what
an operator changed after it stands until the file changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from insika.storage.json_text import to_json
from insika.storage.port import StoreRefused
from insika.storage.rows import Revision
from insika.storage.sqlite import mapping
from insika.storage.sqlite.queries import sql

_OPERATOR = "operator"


def apply_profile(
    connection: sqlite3.Connection, name: str, revision: str, data: Mapping[str, Any], source: str
) -> bool:
    stored = {"revision": revision, "name": name, "data": to_json(data)}
    return _apply(connection, "profile", stored, source)


def apply_settings(connection: sqlite3.Connection, revision: str, data: Mapping[str, Any], source: str) -> bool:
    return _apply(connection, "settings", {"revision": revision, "name": "", "data": to_json(data)}, source)


def current_profiles(connection: sqlite3.Connection) -> Sequence[Revision]:
    return tuple(map(mapping.revision, connection.execute(sql("configuration/current_profiles"))))


def profile(connection: sqlite3.Connection, revision: str) -> Revision | None:
    row = connection.execute(sql("configuration/find_profile"), {"revision": revision}).fetchone()
    return None if row is None else mapping.revision(row)


def current_settings(connection: sqlite3.Connection) -> Revision | None:
    row = connection.execute(sql("configuration/current_settings")).fetchone()
    return None if row is None else mapping.revision(row)


def _apply(connection: sqlite3.Connection, kind: str, stored: Mapping[str, Any], source: str) -> bool:
    of = {"kind": kind, "name": stored["name"]}
    current = connection.execute(sql("configuration/current"), of).fetchone()
    if source != _OPERATOR:
        last_file = connection.execute(sql("configuration/last_file"), of).fetchone()
        if last_file is not None and last_file[0] == source and current[1] == _OPERATOR:
            return False
    if current is not None and current == (stored["revision"], source):
        return False
    changes = current is None or current[0] != stored["revision"]
    if changes:
        _keep(connection, kind, stored)
    if changes or source != _OPERATOR:  # that the file changed counts, even when it only caught up with an operator
        connection.execute(sql("configuration/apply"), {**of, "revision": stored["revision"], "source": source})
    return changes


def _keep(connection: sqlite3.Connection, kind: str, stored: Mapping[str, Any]) -> None:
    known = connection.execute(sql(f"configuration/stored_{kind}"), {"revision": stored["revision"]}).fetchone()
    if known is None:
        connection.execute(sql(f"configuration/insert_{kind}"), stored)
    elif known != (stored["name"], stored["data"]):
        raise StoreRefused(f"revision {stored['revision']} is kept with other data: a revision is immutable")
