"""`insika outbox`: what is delivered, what is not, and sending again by hand what failed or is uncertain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from actors.cli import json_views
from actors.cli.lazy import Group
from actors.cli.options import json_option, limit_option
from actors.cli.output import moment, one_line, print_fields, print_heading, print_json, print_table, rfc3339, short_id
from actors.cli.refusals import NotFound, Refused
from actors.cli.running import open_database, run
from actors.cli.short_ids import as_given, whole_id
from actors.cli.yaml_view import print_yaml
from insika.text import counted
from insika.urls import redacted_url
from outbox.message import DeliveryRow, DeliveryState
from outbox.store import NotResent, OutboxStore, Resent

ID = click.argument("delivery_id", metavar="ID")
"""Or its beginning."""


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def outbox(context: click.Context) -> None:
    """Deliveries of answers and alerts. Without a command: the process that sends them.

    That process works until SIGTERM; then it settles what it is sending, within INSIKA_DRAIN_S seconds. Start as many
    as you like.

    \b
    Example:  insika outbox
              insika outbox list --state uncertain
    """
    if context.invoked_subcommand is None:
        from actors.cli.processes import run_the_outbox

        run_the_outbox(context)


@outbox.command("list")
@click.option("--state", type=click.Choice([str(state) for state in DeliveryState]), help="Only those in this state.")
@limit_option
@json_option
def list_(state: str | None, limit: int, as_json: bool) -> None:
    """List deliveries, the newest first.

    \b
    Example:  insika outbox list --state failed --json
    """
    rows, counts = run(_list(DeliveryState(state) if state else None, limit))
    if as_json:
        print_json([json_views.delivery_json(row) for row in rows])
        return
    print_table(
        ["delivery", "state", "channel", "to", "tries", "reason"],
        [
            (short_id(row.id), row.state, row.channel, row.recipient, _tries(row), one_line(row.reason or "", 200))
            for row in rows
        ],
        whole=("delivery", "state"),
        cut=("reason",),
        empty="No deliveries." if state is None else f"No deliveries are {state}.",
    )
    if rows:
        click.echo("\n" + ", ".join(f"{count} {name}" for name, count in counts.items() if count))


@outbox.command()
@ID
@json_option
def show(delivery_id: str, as_json: bool) -> None:
    """Show one delivery, with what it says.

    \b
    Example:  insika outbox show msg_5f0e1c8e
    """
    row = run(_show(delivery_id))
    if as_json:
        print_json(json_views.delivery_json(row))
        return
    print_fields(
        {
            "delivery": row.id,
            "state": row.state,
            "reason": row.reason,
            "channel": f"{row.channel}, {row.guarantee}",
            "to": row.recipient,
            "url": redacted_url(row.url),
            "tries": _tries(row),
            "resent": counted(row.resends, "time") if row.resends else None,
            "created": moment(row.created_at),
            "due": moment(row.due_at) if row.state is DeliveryState.PENDING else None,
            "last try": moment(row.claimed_at),
            "claim ends": moment(row.claim_until) if row.state is DeliveryState.DELIVERING else None,
            "settled": moment(row.settled_at),
        }
    )
    print_heading("Payload")
    print_yaml(dict(row.payload))


@outbox.command()
@ID
@click.option("--force", is_flag=True, help="Also within five minutes of the last try.")
@json_option
@click.pass_context
def resend(context: click.Context, delivery_id: str, force: bool, as_json: bool) -> None:
    """Send a failed or uncertain delivery once more, marked as a possible duplicate.

    Until five minutes after the last try this is refused, unless it is forced: the receiver would still take that
    request for a fresh one, should it be on its way.

    \b
    Example:  insika outbox resend msg_5f0e1c8e
    """
    id_, answer = run(_resend(delivery_id, force))
    refused = answer if isinstance(answer, NotResent) else None
    if as_json:
        print_json(
            {
                "id": id_,
                "resent": refused is None,
                "not_before": rfc3339(refused.not_before) if refused else None,
                "error": {"type": Refused.type, "message": _why(refused)} if refused else None,
            }
        )
    elif refused is None:
        click.echo(f"resent  {id_}: due in a second, behind everything else of its lane")
    else:
        click.echo(f"Error: {_why(refused)}", err=True)
    context.exit(0 if refused is None else 1)


def _why(refused: NotResent) -> str:
    if refused.not_before is None:
        return refused.reason
    return f"{refused.reason}; it can be resent from {moment(refused.not_before)} on, or now with --force"


def _tries(row: DeliveryRow) -> str:
    return f"{row.attempts}/{row.max_attempts}"


async def _list(state: DeliveryState | None, limit: int) -> tuple[Sequence[DeliveryRow], Mapping[DeliveryState, int]]:
    async with open_database() as stores:
        deliveries = stores.outbox
        return await deliveries.list(state, limit), await deliveries.counts()


async def _show(delivery_id: str) -> DeliveryRow:
    async with open_database() as stores:
        deliveries = stores.outbox
        return await _named(deliveries, delivery_id)


async def _named(deliveries: OutboxStore, delivery_id: str) -> DeliveryRow:
    row = await deliveries.show(await whole_id(delivery_id, deliveries.ids))
    if row is None:
        raise NotFound(f"there is no delivery {as_given(delivery_id)}; `insika outbox list` shows those there are")
    return row


async def _resend(delivery_id: str, force: bool) -> tuple[str, Resent | NotResent]:
    """The whole id, and what became of it."""
    async with open_database() as stores:
        deliveries = stores.outbox
        id_ = (await _named(deliveries, delivery_id)).id
        return id_, await deliveries.resend(id_, force=force)
