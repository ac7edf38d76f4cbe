"""Options that several commands share, so that they are spelt and explained the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

LISTED_AT_MOST = 1_000_000
WANTS_JSON = "insika.json"
"""Where the root command finds out, in its context's `meta`, how an error is to be told."""


def _remembered(context: click.Context, parameter: click.Parameter, as_json: bool) -> bool:
    context.find_root().meta[WANTS_JSON] = as_json
    return as_json


json_option = click.option("--json", "as_json", is_flag=True, callback=_remembered, help="Print one JSON document.")
json_lines_option = click.option(
    "--json", "as_json", is_flag=True, callback=_remembered, help="Print one JSON object a line."
)
tenant_option = click.option(
    "--tenant", default="", metavar="TENANT", help="Whose session it is; absent: the platform."
)
wait_option = click.option(
    "--wait/--no-wait", default=True, help="Wait some seconds for what comes of it; the default.", show_default=False
)


def limit_of(order: str) -> Callable[[Command], Command]:
    """`order`: in which rows are listed, and so which of them are left out."""
    return click.option(
        "--limit",
        type=click.IntRange(1, LISTED_AT_MOST),
        default=100,
        show_default=True,
        help=f"How many to list, {order}.",
    )


limit_option = limit_of("the newest first")
