"""What is left of a storm: every row of the tables, and every book. All times are seconds since 1970."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from scripts.storm.books import Entry, entries
from scripts.storm.folder import Folder
from scripts.storm.jobs import Job, Line, Rubbish

Row = Mapping[str, Any]

TABLES = ("sessions", "mailbox", "turns", "messages", "tool_calls", "model_calls", "outbox", "rejected_jobs")


@dataclass
class Evidence:
    """`lines`: what was to be published. `queues`: messages left in each. `at_rest_s`: from the last fault until
    everything was at rest; None when it never was. `within_s`: how long that may take. `log`: what the processes
    logged that nobody foresaw."""

    lines: Sequence[Line]
    sessions: list[Row] = field(default_factory=list)
    mailbox: list[Row] = field(default_factory=list)
    turns: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    tool_calls: list[Row] = field(default_factory=list)
    model_calls: list[Row] = field(default_factory=list)
    outbox: list[Row] = field(default_factory=list)
    rejected_jobs: list[Row] = field(default_factory=list)
    journal: list[Entry] = field(default_factory=list)
    published: list[Entry] = field(default_factory=list)
    received: list[Entry] = field(default_factory=list)
    deeds: list[Entry] = field(default_factory=list)
    queues: Mapping[str, int] = field(default_factory=dict)
    log: list[Entry] = field(default_factory=list)
    at_rest_s: float | None = None
    within_s: float = 0.0

    @cached_property
    def jobs(self) -> Mapping[tuple[str, str, str], Job]:
        """By tenant, session and id."""
        return {(line.tenant, line.session, job.id): job for line in self.lines for job in line.jobs}

    @cached_property
    def rubbish(self) -> Sequence[Rubbish]:
        return [rubbish for line in self.lines for rubbish in line.rubbish]

    @cached_property
    def names(self) -> Mapping[int, tuple[str, str]]:
        """Tenant and name of each session."""
        return {row["id"]: (row["tenant"], row["name"]) for row in self.sessions}

    @cached_property
    def turns_by_id(self) -> Mapping[str, Row]:
        return {row["id"]: row for row in self.turns}

    @cached_property
    def posts(self) -> Mapping[str, Sequence[Entry]]:
        """What arrived at the receiver for each delivery, in order."""
        return by(self.taken_down("received", "post"), "id")

    def taken_down(self, book: str, kind: str) -> list[Entry]:
        return [entry for entry in getattr(self, book) if entry["kind"] == kind]

    def faults(self, kind: str, role: str) -> list[Entry]:
        """What was done, of one kind, to processes or services of this name."""
        found = [deed for deed in self.taken_down("deeds", "fault") if deed["fault"] == kind]
        return [deed for deed in found if deed["target"].partition("-")[0] == role]


def by(rows: Sequence[Row], *columns: str) -> Mapping[Any, Sequence[Row]]:
    """Rows with the same values in these columns, in their order, by the value or the tuple of values."""
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        key = tuple(row[column] for column in columns)
        found[key[0] if len(columns) == 1 else key].append(row)
    return found


def read_books(evidence: Evidence, folder: Folder) -> None:
    evidence.journal = entries(folder.journal)
    evidence.published = entries(folder.published)
    evidence.received = entries(folder.received)
    evidence.deeds = entries(folder.deeds)


def read_tables(evidence: Evidence, database: str, folder: Path) -> None:
    """Also as files of JSON lines in `folder`, for whoever looks into it later."""
    with psycopg.connect(database, row_factory=dict_row) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for table in TABLES:
            rows = connection.execute(f"SELECT {_columns(connection, table)} FROM {table}").fetchall()
            setattr(evidence, table, rows)
            lines = (json.dumps(row, default=_as_text) + "\n" for row in rows)
            (folder / f"{table}.jsonl").write_text("".join(lines), encoding="utf-8")


def _columns(connection: psycopg.Connection[Row], table: str) -> str:
    """A time may be infinite, which Python's cannot."""
    asked = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s"
    columns = connection.execute(asked, (table,)).fetchall()
    return ", ".join(
        f"extract(epoch FROM {name})::float8 AS {name}" if type_.startswith("timestamp") else name
        for name, type_ in ((column["column_name"], column["data_type"]) for column in columns)
    )


def _as_text(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
