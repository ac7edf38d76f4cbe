"""`insika sessions`: the conversations in the store, an operator's hold on them, a message taken back, and one more try
of a failed turn."""

from __future__ import annotations

from collections.abc import Sequence

import click

from actors.cli import json_views
from actors.cli.approval_lists import print_approvals
from actors.cli.conversation import told_by_turn
from actors.cli.lazy import Group
from actors.cli.options import json_option, limit_option, tenant_option, wait_option
from actors.cli.output import (
    on_one_line,
    one_line,
    print_fields,
    print_heading,
    print_json,
    print_rich,
    print_table,
)
from actors.cli.refusals import no_session
from actors.cli.retry import Retried, retry_turn
from actors.cli.running import open_desk, open_door, open_store, run
from actors.cli.session_reading import due, read_session
from actors.cli.verdicts import print_handed_in
from actors.cli.whereabouts import Whereabouts
from actors.cli.withdrawing import TakenBack, print_taken_back, take_back
from insika.clock import SystemClock
from insika.storage.rows import Mail, SessionRow, SessionSummary, TurnState, Verdict

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
    """Show one conversation: what was said, in which turn and step, and where each message went.

    \b
    Example:  insika sessions show ana
    """
    found, now = run(read_session(name, tenant)), SystemClock().now()
    if as_json:
        print_json(
            {
                **json_views.session_row_json(found.row, found.turns, now),
                "state": found.doing,
                "turns": [json_views.turn_json(row) for row in found.turns],
                "mail": [json_views.mail_json(row) for row in found.mail],
                "messages": [json_views.message_json(entry) for entry in found.messages],
                "approvals": [json_views.approval_json(row) for row in found.approvals],
            }
        )
        return
    print_fields(
        {
            "session": found.row.name,
            "tenant": found.row.tenant or None,
            "state": found.stands,
            "waiting": str(found.row.waiting),
            "due": due(found.row),
        }
    )
    print_heading("Conversation")
    for line in told_by_turn(found.messages, found.turns):
        print_rich(line)
    if found.approvals:
        print_heading("Waits for a person")
        print_approvals(found.approvals, now, all_=False, empty="")
    print_heading("Messages and where they went")
    whereabouts = Whereabouts.of(found.row, found.turns, found.mail, found.messages)
    print_table(
        ["#", "message", "text", "verdict", "where it went"],
        [(str(row.position), row.job_id, _text(row), row.verdict, whereabouts.went(row)) for row in found.mail],
        whole=("message", "verdict"),
        empty="No messages.",
    )


@sessions.command()
@NAME
@tenant_option
@json_option
def pause(name: str, tenant: str, as_json: bool) -> None:
    """Hold a session. It takes effect at the next boundary.

    A model that is being asked finishes what it says, and tools that run come to their end; then the turn stops where
    it is, and no other begins. Messages are accepted, and wait. The time of the turn stands still.

    \b
    Example:  insika sessions pause ana
    """
    _print_held(run(_hold(name, tenant, paused=True)), as_json=as_json)


@sessions.command()
@NAME
@tenant_option
@json_option
def resume(name: str, tenant: str, as_json: bool) -> None:
    """Let a held session go on, where its turn stopped.

    \b
    Example:  insika sessions resume ana
    """
    _print_held(run(_hold(name, tenant, paused=False)), as_json=as_json)


@sessions.command()
@NAME
@click.argument("message_id", metavar="MESSAGE_ID")
@tenant_option
@wait_option
@json_option
@click.pass_context
def withdraw(context: click.Context, name: str, message_id: str, *, tenant: str, wait: bool, as_json: bool) -> None:
    """Take back a message that no turn has read yet, by the id its producer gave it (`show` lists them).

    Tells whether that came in time; the exit code is 1 when it was too late. A turn is neither cut nor delayed by it:
    to end one, there is `insika turns cancel`.

    \b
    Example:  insika sessions withdraw ana m2
    """
    taken = run(_withdraw(name, message_id, tenant, wait=wait))
    print_taken_back(taken, as_json=as_json)
    context.exit(1 if taken.in_time is False else 0)


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


def _doing(row: SessionSummary) -> str:
    doing = row.turn_state or ("waiting" if row.waiting else "idle")
    if row.turn_state is TurnState.WAITING:
        doing = "waits for a person"
    return f"{doing}, paused" if row.paused else doing


def _text(row: Mail) -> str:
    # What asks something of a session says nothing itself.
    return f"({row.mode})" if row.verdict is Verdict.CONTROL else one_line(row.text)


async def _sessions(limit: int, tenant: str | None) -> Sequence[SessionSummary]:
    async with open_store() as store:
        return await store.sessions(limit, tenant=tenant)


async def _hold(name: str, tenant: str, *, paused: bool) -> SessionRow:
    async with open_desk() as desk:
        held = desk.control.pause if paused else desk.control.resume
        session = await desk.store.session(name, tenant=tenant) if await held(name, tenant=tenant) else None
        if session is None:
            raise no_session(name, tenant)
        return session


async def _withdraw(name: str, message_id: str, tenant: str, *, wait: bool) -> TakenBack:
    async with open_desk() as desk:
        session = await desk.store.session(name, tenant=tenant)
        if session is None:
            raise no_session(name, tenant)
        return await take_back(desk, session, message_id, wait=wait)


async def _retry(name: str, tenant: str, turn_id: str | None) -> Retried:
    async with open_door() as door:
        session = await door.store.session(name, tenant=tenant)
        if session is None:
            raise no_session(name, tenant)
        return await retry_turn(door, session, turn_id)
