"""What somebody who is asked for a diagnosis finds in a database: values, and nothing that judges them.

Each dialect gathers them by itself, by reading only, within a few seconds. What could not be read in time is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from insika.storage.rows import Revision


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A PostgreSQL server as one connection sees it.

    `version` is server_version_num: 150004 for 15.4. `writable` False: a standby, or a server or role that is set to
    reading only. `settings` are the server's own words for the settings that are asked for. `connections`: clients
    connected now, this one among them; `connections_max`: how many there may be, reserved ones left out, of this role
    and this database too; `per_process`: how many one process of ours may have open. `renewals`: connections by which
    workers renew leases here, one for each. `ahead_s`: by how much its clock is ahead of this machine's, give or take
    `doubt_s`."""

    version: int
    version_text: str
    encoding: str
    writable: bool
    settings: Mapping[str, str]
    connections: int
    connections_max: int
    per_process: int
    renewals: int
    ahead_s: float
    doubt_s: float


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A SQLite file. `writable`: the file and its folder may be written to. `free_bytes` on its disk."""

    version: tuple[int, int, int]
    path: str
    exists: bool
    writable: bool
    free_bytes: int


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """`owned` sessions have an owner whose lease holds; of `expired` ones it ran out more than `late_s` ago and nobody
    has come. `overdue` are due for longer than that and nobody's, the first of them since `overdue_s` at least.
    `suspects` have outlived two owners. `held` are paused and have something to do. `waiting`: messages that no turn
    has taken yet."""

    owned: int
    expired: int
    overdue: int
    overdue_s: float
    suspects: int
    held: int
    waiting: int


@dataclass(frozen=True, slots=True)
class DeliveryFacts:
    """`overdue` are pending and due for longer than `late_s`, the first of them since `overdue_s`. Of `abandoned` ones
    the sender's claim ran out that long ago. `failed` and `uncertain` are settled so."""

    pending: int
    overdue: int
    overdue_s: float
    abandoned: int
    failed: int
    uncertain: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies in a migrated database. `rejected`: jobs kept aside that nobody has handed in again."""

    settings: Revision | None
    profiles: tuple[Revision, ...]
    sessions: SessionFacts | None
    deliveries: DeliveryFacts | None
    rejected: int | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """`pending`: migrations that the database lacks. `mismatch`: why it is none of this version's; "" when it is one.
    `contents` is None unless both are empty."""

    place: ServerFacts | FileFacts
    pending: tuple[str, ...] = ()
    mismatch: str = ""
    contents: Contents | None = None
