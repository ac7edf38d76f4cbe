"""Why a command was not carried out, where no error of the engine says it. Each has a `type` for programs."""

from __future__ import annotations

import click


class Refused(click.ClickException):
    type = "refused"


class NotFound(Refused):
    """What was named is not there."""

    type = "not_found"


def no_session(name: str, tenant: str) -> NotFound:
    of = f" of tenant {tenant!r}" if tenant else ""
    return NotFound(f"there is no session {name!r}{of}; `insika sessions list` shows those there are")


class Ambiguous(Refused):
    """What was named may be several."""

    type = "ambiguous"
