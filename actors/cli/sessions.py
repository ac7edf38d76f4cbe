"""`insika sessions`: the conversations in the store, an operator's hold on them, and one more try of a failed turn."""

from __future__ import annotations

from collections.abc import Sequence

import click

from actors.cli import json_views
from actors.cli.conversation import told_by_turn
from actors.cli.lazy import Group
from actors.cli.options import json_option, limit_option, tenant_option
from actors.cli.output import (
    moment,
    on_one_line,
    one_line,
    print_fields,
    print_heading,
    print_json,
    print_rich,
    print_table,
    short_id,
)
from actors.cli.refusals import no_session
from actors.cli.retry import Retried, retry_turn
from actors.cli.running import environment_here, open_door, open_store, run
from actors.cli.telling import telling
from actors.cli.verdicts import print_handed_in
from insika.clock import SystemClock
from insika.storage.rows import LogEntry, Mail, SessionRow, SessionSummary, TurnRow, Verdict

NAME = click.argument("name", metavar="SESSION")


@click.group(cls=Group)
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
                due(row),
            )
            for row in rows
        ],
        whole=("due",),
        cut=("turn",),
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
                **json_views.session_row_json(session, turns, SystemClock().now()),
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
            "due": due(session),
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
@json_option
def pause(name: str, tenant: str, as_json: bool) -> None:
    """Hold a session: its messages are accepted, and wait. A turn that is running goes on to its end.

    \b
    Example:  insika sessions pause ana
    """
    _print_held(run(_hold(name, tenant, paused=True)), as_json=as_json)


@sessions.command()
@NAME
@tenant_option
@json_option
def resume(name: str, tenant: str, as_json: bool) -> None:
    """Let a held session go on.

    \b
    Example:  insika sessions resume ana
    """
    _print_held(run(_hold(name, tenant, paused=False)), as_json=as_json)


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


def _print_held(session: SessionRow, *, as_json: bool) -> None:
    if as_json:
        print_json({"session": session.name, "tenant": session.tenant or None, "paused": session.paused})
    else:
        click.echo(f"{'paused' if session.paused else 'resumed'}  {on_one_line(session.name)}")


def due(row: SessionSummary | SessionRow) -> str:
    return "held" if row.paused else moment(row.due_at)


def _doing(row: SessionSummary) -> str:
    doing = row.turn_state or ("waiting" if row.waiting else "idle")
    return f"{doing}, paused" if row.paused else doing


def _went(row: Mail) -> Sequence[str]:
    ended = "waits" if row.ended is None else str(row.ended)
    # What asks for a turn's end says nothing itself.
    text = row.mode if row.verdict is Verdict.CONTROL else one_line(row.text)
    return (str(row.position), row.verdict, short_id(row.consumed_by or row.turn_id or "-"), ended, text)


async def _sessions(limit: int, tenant: str | None) -> Sequence[SessionSummary]:
    async with open_store() as store:
        return await store.sessions(limit, tenant=tenant)


async def _session(name: str, tenant: str) -> tuple[SessionRow, Sequence[TurnRow], Sequence[Mail], Sequence[LogEntry]]:
    async with open_store() as store:
        session = await store.session(name, tenant=tenant)
        if session is None:
            raise no_session(name, tenant)
        return session, await store.turns(session.id), await store.mail(session.id), await store.messages(session.id)


async def _hold(name: str, tenant: str, *, paused: bool) -> SessionRow:
    environment = environment_here()
    async with open_store(environment) as store, telling(environment) as told:
        await store.set_paused(name, paused, tenant=tenant)
        session = await store.session(name, tenant=tenant)
        if session is None:
            raise no_session(name, tenant)
        if not session.paused:
            told.wakes.session(session.id)
        return session


async def _retry(name: str, tenant: str, turn_id: str | None) -> Retried:
    async with open_door() as door:
        session = await door.store.session(name, tenant=tenant)
        if session is None:
            raise no_session(name, tenant)
        return await retry_turn(door, session, turn_id)
