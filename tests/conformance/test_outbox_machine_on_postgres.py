"""The outbox machine over the store on PostgreSQL: fewer lives, each as long."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.outbox_machine import OutboxMachine, walk_far
from tests.outbox_world import OutboxWorld, postgres_outbox


@pytest.fixture
def machine(migrated_postgres_url: str) -> type[OutboxMachine]:
    class PostgresOutboxMachine(OutboxMachine):
        def open_world(self) -> AbstractAsyncContextManager[OutboxWorld]:
            return postgres_outbox(migrated_postgres_url)

    return PostgresOutboxMachine


def test_short_lives_end_as_the_model_says(machine: type[OutboxMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=50, deadline=None))


@pytest.mark.parametrize("seed", range(2))
def test_long_lives_end_as_the_model_says(machine: type[OutboxMachine], seed: int) -> None:
    walk_far(machine(), seed, moves=300)
