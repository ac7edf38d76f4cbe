"""Options that several commands share, so that they are spelt and explained the same everywhere."""

from __future__ import annotations

import click

LISTED_AT_MOST = 1_000_000

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
tenant_option = click.option(
    "--tenant", default="", metavar="TENANT", help="Whose session it is; absent: the platform."
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(1, LISTED_AT_MOST),
    default=100,
    show_default=True,
    help="How many to list, the newest first.",
)
