"""A group that imports a command only when it is asked for, so that a help text does not wait for an HTTP client.

What each command is about is therefore said twice: in one line here at the root, and in full where it is defined.
"""

from __future__ import annotations

import difflib
import importlib
import json
from collections.abc import Mapping
from typing import cast

import click

from actors.cli.arguments import Command
from actors.cli.options import WANTS_JSON
from actors.cli.refusals import Refused
from insika.errors import InsikaError

WHAT_TO_DO = {
    "store_unavailable": "Check INSIKA_DATABASE_URL, the folder's permissions and the free space, then run this again.",
}
"""By error type, for errors that do not say it themselves."""


class Group(click.Group):
    """A group that guesses what a mistyped command was meant to be."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], known, n=1)
            ctx.fail(f"There is no command {args[0]!r}" + (f"; did you mean {close[0]}?" if close else "."))
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
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
        """As click does; an error that people are to read becomes a sentence, one that a program asked for JSON an
        object `{"error": {"type", "message", "field"?, "retry_after"?}}` on standard output. The exit code is 1."""
        try:
            return super().invoke(ctx)
        except InsikaError as error:
            advice = WHAT_TO_DO.get(error.type)
            message = f"{error.message.rstrip('.')}. {advice}" if advice else error.message
            _tell_as_json(ctx, {**error.as_dict(), "message": message})
            raise click.ClickException(message) from error
        except Refused as refused:
            _tell_as_json(ctx, {"type": refused.type, "message": refused.message})
            raise


def _tell_as_json(context: click.Context, error: Mapping[str, object]) -> None:
    """Ends the command, unless its errors are for people."""
    if context.meta.get(WANTS_JSON):
        click.echo(json.dumps({"error": error}, indent=2))
        context.exit(1)
