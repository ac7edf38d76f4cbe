"""The mailbox machine over the store on SQLite: short lives that shrink well, and long ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.mailbox_machine import LIVES, MailboxMachine, lead, walk_far
from tests.sqlite_here import sqlite_world
from tests.store_world import World

LONG_LIVES = 2 if os.environ.get("HYPOTHESIS_PROFILE") == "check" else 12


@asynccontextmanager
async def in_a_folder() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        async with sqlite_world(Path(folder)) as world:
            yield world


class SqliteMailboxMachine(MailboxMachine):
    def open_world(self) -> AbstractAsyncContextManager[World]:
        return in_a_folder()


TestMailboxMachine = SqliteMailboxMachine.TestCase


@pytest.mark.parametrize("life", LIVES)
def test_a_rare_life_keeps_the_rules(life: Callable[[MailboxMachine], None]) -> None:
    lead(SqliteMailboxMachine(), life)


@pytest.mark.parametrize("seed", range(LONG_LIVES))
def test_long_lives_keep_the_rules(seed: int) -> None:
    walk_far(SqliteMailboxMachine(), seed)
