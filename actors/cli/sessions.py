"""`insika sessions`: the conversations in the store, an operator's hold on them, and one more try of a failed turn."""

from __future__ import annotations

from collections.abc import Sequence

import click

from actors.cli import json_views
from actors.cli.conversation import told_by_turn
from actors.cli.options import json_option, limit_option, tenant_option
from actors.cli.output import (
    moment,
    one_line,
    print_fields,
    print_heading,
    print_json,
    print_rich,
    print_table,
)
from actors.cli.retry import Retried, retry_turn
from actors.cli.running import open_door, open_store, run
from actors.cli.verdicts import print_handed_in
from insika.storage.rows import LogEntry, Mail, SessionRow, SessionSummary, TurnRow

NAME = click.argument("name", metavar="SESSION")


@click.group()
def sessions() -> None:
    """Conversations.

    \b
    Example:  insika sessions show ana
    """


@sessions.command("list")
@click.option("--tenant", metavar="TENANT", help="Only this tenant's; absent: all.")
@limit_option
@json_option
def list_(tenant: str | None, limit: int, as_json: bool) -> None:
    """List conversations, the newest first.

    \b
    Example:  insika sessions list --tenant acme --json
    """
    rows = run(_sessions(limit, tenant))
    if as_json:
        print_json([json_views.session_json(row) for row in rows])
        return
    with_tenant = any(row.tenant for row in rows)
    print_table(
        ["session", *(["tenant"] if with_tenant else []), "messages", "waiting", "turn", "due"],
        [
            (
                row.name,
                *([row.tenant or "-"] if with_tenant else []),
                str(row.messages),
                str(row.waiting),
                _doing(row),
                moment(row.due_at),
            )
            for row in rows
        ],
        empty="No sessions yet.",
    )


@sessions.command()
@NAME
@tenant_option
@json_option
def show(name: str, tenant: str, as_json: bool) -> None:
    """Show one conversation: what was said, in which turn and step, and what became of each message.

    \b
    Example:  insika sessions show ana
    """
    session, turns, mail, messages = run(_session(name, tenant))
    if as_json:
        print_json(
            {
                **json_views.session_row_json(session),
                "turns": [json_views.turn_json(row) for row in turns],
                "mail": [json_views.mail_json(row) for row in mail],
                "messages": [json_views.message_json(entry) for entry in messages],
            }
        )
        return
    print_fields(
        {
            "session": session.name,
            "tenant": session.tenant or None,
            "waiting": str(session.waiting),
            "due": moment(session.due_at),
            "paused": "yes" if session.paused else None,
        }
    )
    print_heading("Conversation")
    for line in told_by_turn(messages, turns):
        print_rich(line)
    print_heading("Messages and where they went")
    print_table(
        ["#", "verdict", "turn", "ended", "text"],
        [_went(row) for row in mail],
        whole=("turn",),
        empty="No messages.",
    )


@sessions.command()
@NAME
@tenant_option
def pause(name: str, tenant: str) -> None:
    """Hold a session: its messages are accepted, and wait. A turn that is running goes on to its end.

    \b
    Example:  insika sessions pause ana
    """
    run(_hold(name, tenant, paused=True))
    click.echo(f"paused  {name}")


@sessions.command()
@NAME
@tenant_option
def resume(name: str, tenant: str) -> None:
    """Let a held session go on.

    \b
    Example:  insika sessions resume ana
    """
    run(_hold(name, tenant, paused=False))
    click.echo(f"resumed  {name}")


@sessions.command()
@NAME
@click.option("--turn", "turn_id", metavar="ID", help="The failed turn; absent: the last one that failed.")
@tenant_option
@json_option
@click.pass_context
def retry(context: click.Context, name: str, turn_id: str | None, tenant: str, as_json: bool) -> None:
    """Run a failed turn once more, as a new message with the same text.

    Doing it again for the same failed turn is a duplicate.

    \b
    Example:  insika sessions retry ana
    """
    retried = run(_retry(name, tenant, turn_id))
    print_handed_in(retried.handed_in, as_json=as_json, more={"retried_turn": retried.turn_id})
    context.exit(0 if retried.handed_in.taken else 1)


def _doing(row: SessionSummary) -> str:
    doing = row.turn_state or ("waiting" if row.waiting else "idle")
    return f"{doing}, paused" if row.paused else doing


def _went(row: Mail) -> Sequence[str]:
    ended = "waits" if row.ended is None else str(row.ended)
    return (str(row.position), row.verdict, row.consumed_by or row.turn_id or "-", ended, one_line(row.text))


def _missing(name: str, tenant: str) -> click.ClickException:
    of = f" of tenant {tenant!r}" if tenant else ""
    return click.ClickException(f"there is no session {name!r}{of}; `insika sessions list` shows those there are")


async def _sessions(limit: int, tenant: str | None) -> Sequence[SessionSummary]:
    async with open_store() as store:
        return await store.sessions(limit, tenant=tenant)


async def _session(name: str, tenant: str) -> tuple[SessionRow, Sequence[TurnRow], Sequence[Mail], Sequence[LogEntry]]:
    async with open_store() as store:
        session = await store.session(name, tenant=tenant)
        if session is None:
            raise _missing(name, tenant)
        return session, await store.turns(session.id), await store.mail(session.id), await store.messages(session.id)


async def _hold(name: str, tenant: str, *, paused: bool) -> None:
    async with open_store() as store:
        if not await store.set_paused(name, paused, tenant=tenant):
            raise _missing(name, tenant)


async def _retry(name: str, tenant: str, turn_id: str | None) -> Retried:
    async with open_door() as door:
        session = await door.store.session(name, tenant=tenant)
        if session is None:
            raise _missing(name, tenant)
        return await retry_turn(door, session, turn_id)
