"""Whether the database is one that promises can rest on: new enough, migrated, written to, durable, with room."""

from __future__ import annotations

from collections.abc import Iterator

from actors.doctor.clocks import compared
from actors.doctor.finding import Finding, fail, ok, warn
from actors.doctor.versions import POSTGRES, SQLITE, new_enough
from insika.storage.inspection import FileFacts, Inspection, ServerFacts
from insika.text import counted

ABOUT = "database"
LITTLE_DISK_BYTES = 256 * 1024 * 1024

_LOSES = "a crash of the server can lose what was committed, and no promise survives that"


def judged(found: Inspection, shown: str) -> Iterator[Finding]:
    """`shown` is what the database is to be called."""
    if isinstance(found.place, ServerFacts):
        yield from _server(found.place, shown)
    else:
        yield from _file(found.place, shown)
    yield from _schema(found, shown)


def _server(server: ServerFacts, shown: str) -> Iterator[Finding]:
    yield new_enough(ABOUT, "PostgreSQL", server.version_text, POSTGRES)
    if server.encoding != "UTF8":
        what = f"{shown} is encoded in {server.encoding}, so texts would be lost."
        yield fail(ABOUT, what, "Create it anew with ENCODING 'UTF8', and run: insika migrate")
    if not server.writable:
        what = f"{shown} takes no writes: it is a standby, or set to reading only."
        do = "Let INSIKA_DATABASE_URL lead to the primary; of several hosts in it, the one that takes writes is used."
        yield fail(ABOUT, what, do)
    yield from _durability(server)
    yield _room(server)
    yield compared("the database", server.ahead_s, server.doubt_s)


def _durability(server: ServerFacts) -> Iterator[Finding]:
    settings = server.settings
    lax = [name for name in ("fsync", "full_page_writes") if settings.get(name) == "off"]
    commits = settings.get("synchronous_commit", "on")
    for name in lax:
        yield fail(ABOUT, f"{name} is off: {_LOSES}.", f"Set {name} = on in postgresql.conf and reload it.")
    if commits == "off":
        do = "Set synchronous_commit = on, for the server or for this role and database."
        yield fail(ABOUT, f"synchronous_commit is off: {_LOSES}.", do)
    elif commits == "local" and settings.get("synchronous_standby_names"):
        what = "synchronous_commit is local: a failover can lose what was committed, and no promise survives that."
        yield warn(ABOUT, what, "Set synchronous_commit = on, so that commits wait for the synchronous standby.")
    elif not lax:
        yield ok(ABOUT, f"It writes durably (fsync on, synchronous_commit {commits}).")


def _room(server: ServerFacts) -> Finding:
    free = max(0, server.connections_max - server.connections)
    used = f"{server.connections} of {counted(server.connections_max, 'connection')} to PostgreSQL are in use"
    if free < server.per_process:
        do = f"Raise max_connections (or the role's or database's limit): one process has up to {server.per_process}."
        return warn(ABOUT, f"{used}, which leaves no room for another process.", do)
    return ok(ABOUT, f"{used}; a process has up to {server.per_process}.")


def _file(file: FileFacts, shown: str) -> Iterator[Finding]:
    yield new_enough(ABOUT, "SQLite", ".".join(map(str, file.version)), SQLITE)
    if not file.writable:
        what = f"{shown} and its folder cannot be written to by this user."
        yield fail(ABOUT, what, "Give the processes' user the right to write there, or set INSIKA_DATABASE_URL.")
    if file.free_bytes < LITTLE_DISK_BYTES:
        what = f"The disk of {shown} has {file.free_bytes // (1024 * 1024)} MiB left."
        yield warn(ABOUT, what, "Make room: a store that cannot write accepts nothing.")


def _schema(found: Inspection, shown: str) -> Iterator[Finding]:
    if found.mismatch:
        do = "Run the version of Insika that migrated it, or a later one."
        yield fail(ABOUT, f"{shown} was migrated by other code: {found.mismatch.rstrip('.')}.", do)
    elif found.pending:
        absent = isinstance(found.place, FileFacts) and not found.place.exists
        what = "does not exist yet" if absent else f"is not up to date (pending: {', '.join(found.pending)})"
        yield fail(ABOUT, f"{shown} {what}.", "Run: insika migrate")
    elif found.contents is not None:
        yield ok(ABOUT, f"{shown} answers and is up to date.")
