"""Taking back a message that waits: asking its session's owner, waiting for a moment, and telling whether it came in
time."""

from __future__ import annotations

from dataclasses import dataclass

import click

from actors.cli.outcomes import outcome, patience_s
from actors.cli.output import on_one_line, print_json
from actors.cli.refusals import NotFound, Refused
from actors.cli.running import Desk
from insika.storage.rows import Ended, Mail, SessionRow


@dataclass(frozen=True, slots=True)
class TakenBack:
    """`mail` is the message as it stood at the last look; `before`: it had ended when this was asked."""

    session: SessionRow
    mail: Mail
    before: bool

    @property
    def in_time(self) -> bool | None:
        """None: nobody has looked yet."""
        return None if self.mail.ended is None else self.mail.ended is Ended.WITHDRAWN


async def take_back(desk: Desk, session: SessionRow, message_id: str, *, wait: bool) -> TakenBack:
    """Raises NotFound when no such message is known."""
    asked = await desk.control.withdraw(
        session.name, message_id, request_id=f"withdraw-{message_id}", tenant=session.tenant
    )
    if asked is None:
        raise _missing(session, message_id)

    async def now() -> Mail:
        # A control message's position is behind the one it is aimed at: both are there.
        return next(row for row in await desk.store.mail(session.id) if row.position == asked.position)

    async def ended() -> Mail | None:
        mail = await now()
        return mail if mail.ended is not None else None

    patience = patience_s(session) if wait and asked.ended is None else 0
    return TakenBack(session, await outcome(ended, patience) or await now(), before=asked.ended is not None)


def print_taken_back(taken: TakenBack, *, as_json: bool) -> None:
    mail = taken.mail
    why = _why_not(taken) if taken.in_time is False else None
    if as_json:
        print_json(
            {
                "session": taken.session.name,
                "tenant": taken.session.tenant or None,
                "id": mail.job_id,
                "position": mail.position,
                "withdrawn": taken.in_time,
                "ended": mail.ended,
                "consumed_by": mail.consumed_by,
                "error": {"type": Refused.type, "message": why} if why is not None else None,
            }
        )
        return
    id_ = on_one_line(mail.job_id)
    if why is not None:
        click.echo(f"Error: {on_one_line(why)}", err=True)
    elif taken.in_time is None:
        name = on_one_line(taken.session.name)
        click.echo(f"asked      {id_}")
        click.echo(f"Nobody has looked yet. `insika sessions show {name}` tells whether this came in time.")
    else:
        click.echo(f"withdrawn  {id_}")
        click.echo("It had been taken back before." if taken.before else "No turn has read it, and none will.")


def _why_not(taken: TakenBack) -> str:
    mail = taken.mail
    if mail.ended is Ended.TURN:
        return f"too late: turn {mail.consumed_by} had read message {mail.job_id}; nothing was changed"
    return f"message {mail.job_id} had been {mail.ended} before; nothing was changed"


def _missing(session: SessionRow, message_id: str) -> NotFound:
    return NotFound(
        f"session {session.name!r} knows no message {message_id!r}; `insika sessions show {session.name}` lists those "
        "it has"
    )
