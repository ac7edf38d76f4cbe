"""The mailbox machine over the store on PostgreSQL: fewer lives, each as long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.mailbox_machine import LIVES, MailboxMachine, lead, walk_far
from tests.postgres_here import postgres_world
from tests.store_world import World


@pytest.fixture
def machine(migrated_postgres_url: str) -> type[MailboxMachine]:
    class PostgresMailboxMachine(MailboxMachine):
        def open_world(self) -> AbstractAsyncContextManager[World]:
            return postgres_world(migrated_postgres_url)

    return PostgresMailboxMachine


def test_the_rules_of_the_mailbox_hold(machine: type[MailboxMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=15, deadline=None))


@pytest.mark.parametrize("life", LIVES)
def test_a_rare_life_keeps_the_rules(machine: type[MailboxMachine], life: Callable[[MailboxMachine], None]) -> None:
    lead(machine(), life)


@pytest.mark.parametrize("seed", range(3))
def test_long_lives_keep_the_rules(machine: type[MailboxMachine], seed: int) -> None:
    walk_far(machine(), seed, moves=250)
