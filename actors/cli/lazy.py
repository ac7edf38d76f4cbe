"""A group that imports a command only when it is asked for, so that a help text does not wait for an HTTP client.

What each command is about is therefore said twice: in one line here at the root, and in full where it is defined.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import cast

import click

from insika.errors import InsikaError

WHAT_TO_DO = {
    "store_unavailable": "Check INSIKA_DATABASE_URL, the folder's permissions and the free space, then run this again.",
}
"""By error type, for errors that do not say it themselves."""


class LazyGroup(click.Group):
    """`lazy`: (`module:attribute`, one line) by command name, in the order of the help text."""

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])

    def invoke(self, ctx: click.Context) -> object:
        """As click does; an error that people are to read becomes a sentence and exit code 1."""
        try:
            return super().invoke(ctx)
        except InsikaError as error:
            advice = WHAT_TO_DO.get(error.type)
            raise click.ClickException(f"{error.message.rstrip('.')}. {advice}" if advice else error.message) from error
