"""The outbox machine over the store on SQLite."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from tests.outbox_machine import OutboxMachine, walk_far
from tests.outbox_world import OutboxWorld, sqlite_outbox


@asynccontextmanager
async def in_a_folder() -> AsyncIterator[OutboxWorld]:
    with tempfile.TemporaryDirectory() as folder:
        async with sqlite_outbox(Path(folder)) as world:
            yield world


class SqliteOutboxMachine(OutboxMachine):
    def open_world(self) -> AbstractAsyncContextManager[OutboxWorld]:
        return in_a_folder()


SqliteOutboxMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestOutboxMachine = SqliteOutboxMachine.TestCase


@pytest.mark.parametrize("seed", range(8))
def test_long_lives_end_as_the_model_says(seed):
    walk_far(SqliteOutboxMachine(), seed)
