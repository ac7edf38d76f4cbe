"""Numbered migrations: which there are, which a database has had, and whether the two agree.

A migration that was applied is never edited; its checksum is recorded with it. How a dialect applies one is its own
affair (`insika.storage.sqlite.schema`). Nothing here touches a database.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from insika.errors import InsikaError

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class NotMigrated(InsikaError):
    """The database lacks tables that this version needs. `insika migrate` adds them."""

    type = "not_migrated"


class SchemaMismatch(InsikaError):
    """The database was migrated by other code: a newer version, or files that were edited since."""

    type = "schema_mismatch"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file. `checksum` is the sha256 of its bytes, in hex."""

    number: int
    name: str
    sql: str
    checksum: str


def available(dialect: str) -> tuple[Migration, ...]:
    """The migrations that came with this version, in order. `dialect` is the folder's name, e.g. sqlite."""
    folder = resources.files("insika.storage").joinpath("migrations", dialect)
    found = []
    for file in folder.iterdir():
        if match := _FILE.fullmatch(file.name):
            text = file.read_bytes()
            checksum = hashlib.sha256(text).hexdigest()
            found.append(Migration(int(match[1]), match[2], text.decode("utf-8"), checksum))
    return tuple(sorted(found, key=lambda migration: migration.number))


def pending(have: Sequence[Migration], applied: Mapping[int, str]) -> tuple[Migration, ...]:
    """Those of `have` that a database with `applied` (number to checksum) still lacks, in order.

    Raises SchemaMismatch when what was applied is not what we have."""
    ours = {migration.number: migration for migration in have}
    for number, checksum in sorted(applied.items()):
        if number not in ours:
            raise SchemaMismatch(
                f"the database has had migration {number:04d}, which this version of insika does not know: "
                "it is newer. Run the version that migrated it, or a later one."
            )
        if ours[number].checksum != checksum:
            raise SchemaMismatch(
                f"migration {number:04d}_{ours[number].name} was edited after it was applied to this database "
                f"(sha256 {checksum[:12]} then, {ours[number].checksum[:12]} now). Restore the file; add a new one."
            )
    return tuple(migration for migration in have if migration.number not in applied)
