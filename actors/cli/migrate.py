"""`insika migrate`: bring the database up to date, or say what that would take."""

from __future__ import annotations

from collections.abc import Sequence

import click

from actors.cli.arguments import Command
from actors.cli.options import json_option
from actors.cli.output import print_json
from actors.cli.running import environment_here, run
from actors.environment import Environment
from actors.stores import migrate_database, pending_migrations
from insika.clock import SystemClock
from insika.storage.migrate import Migration


@click.command(cls=Command, short_help="Bring the database up to date.")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 when something is pending.")
@json_option
@click.pass_context
def migrate(context: click.Context, check: bool, as_json: bool) -> None:
    """Bring the database up to date: create it, or add the tables that this version needs.

    Running it again, or twice at once, does no harm. `insika dev` does it by itself.

    \b
    Example:  insika migrate --check || insika migrate
    """
    environment = environment_here()
    database = environment.database_shown
    applied, pending = run(_migrate(environment, check=check))
    if as_json:
        print_json(
            {
                "database": database,
                "applied": [name_of(migration) for migration in applied],
                "pending": [name_of(migration) for migration in pending],
            }
        )
    else:
        for migration in applied:
            click.echo(f"applied  {name_of(migration)}")
        for migration in pending:
            click.echo(f"pending  {name_of(migration)}")
        click.echo(
            f"{database} is up to date." if not pending else f"{database} is not up to date. Run: insika migrate"
        )
    context.exit(1 if pending else 0)


async def _migrate(environment: Environment, *, check: bool) -> tuple[Sequence[Migration], Sequence[Migration]]:
    """What was applied, and what is pending still."""
    applied = () if check else await migrate_database(environment, SystemClock())
    return applied, await pending_migrations(environment)


def name_of(migration: Migration) -> str:
    return f"{migration.number:04d}_{migration.name}"
