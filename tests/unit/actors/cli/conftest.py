"""A command line over a database of its own, filled before a command looks at it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner, Result

from actors.cli.main import cli
from insika.clock import ManualClock
from insika.storage.sqlite.schema import migrate
from insika.storage.sqlite.store import SqliteStore
from tests.store_world import Rows, World

T = TypeVar("T")

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class CommandLine:
    """`run` answers what a command printed and its exit code; `seed` fills the store first, in a time long ago."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "insika.db"

    def run(self, *arguments: str, input: str | None = None) -> Result:
        result = CliRunner().invoke(cli, arguments, input=input, prog_name="insika")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def migrate(self) -> None:
        migrate(self.database, ManualClock(LONG_AGO).now)

    def seed(self, fill: Callable[[World], Awaitable[T]]) -> T:
        clock = ManualClock(LONG_AGO)
        migrate(self.database, clock.now)

        async def filled() -> T:
            store = SqliteStore.open(self.database, clock.now)
            try:
                return await fill(World(store, clock, self._peek(store)))
            finally:
                await store.close()

        return asyncio.run(filled())

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    @staticmethod
    def _peek(store: SqliteStore) -> Callable[[str], Awaitable[Rows]]:
        async def peek(statement: str) -> Rows:
            def rows(connection: sqlite3.Connection) -> Rows:
                cursor = connection.execute(statement)
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor]

            return await store.database.read(rows)

        return peek


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    for name in os.environ:
        if name.startswith("INSIKA_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.fixture
def migrated(command_line: CommandLine) -> CommandLine:
    command_line.migrate()
    return command_line
