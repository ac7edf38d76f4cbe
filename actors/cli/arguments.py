"""What holds for every word on the command line, before a command sees it.

An argument that is not UTF-8 reaches Python with a lone surrogate for each such byte. No store takes it, so as a name
it can only be a mistake. What a person says is replaced where it is taken in; names of files are the system's business.
"""

from __future__ import annotations

import click
from click.types import StringParamType

from insika.text import is_clean


class Prose(StringParamType):
    """Not a name but something a person says: whoever takes it in replaces what no store can hold."""


PROSE = Prose()


class Command(click.Command):
    """A command whose names can be looked up: a text with NUL or a lone surrogate is a usage error, by its option or
    argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        left = super().parse_args(ctx, args)
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            if type(parameter.type) is StringParamType and isinstance(value, str) and not is_clean(value):
                raise click.BadParameter("must not hold NUL or a lone surrogate", ctx=ctx, param=parameter)
        return left
