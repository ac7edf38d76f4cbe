"""The lease machine over the store on PostgreSQL: fewer lives than on SQLite, each as long."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.lease_machine import LeaseMachine
from tests.postgres_here import postgres_world
from tests.store_world import World


def test_the_rules_of_the_lease_hold(migrated_postgres_url: str) -> None:
    class PostgresLeaseMachine(LeaseMachine):
        def open_world(self) -> AbstractAsyncContextManager[World]:
            return postgres_world(migrated_postgres_url)

    run_state_machine_as_test(PostgresLeaseMachine, settings=settings(max_examples=20, deadline=None))
