"""`insika approvals`: the calls that wait for a person, and a person's word on them."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from actors.cli import json_views
from actors.cli.approval_lists import print_approvals
from actors.cli.approval_words import asked_about_in_full, stands, why_not
from actors.cli.arguments import PROSE
from actors.cli.lazy import Group
from actors.cli.options import json_option, limit_of
from actors.cli.output import (
    moment,
    on_one_line,
    print_fields,
    print_heading,
    print_json,
    printable,
)
from actors.cli.refusals import NotFound, Refused
from actors.cli.running import open_desk, open_store, run
from actors.cli.short_ids import as_given, decided_id, whole_id
from insika.clock import SystemClock
from insika.storage.port import ReadStore
from insika.storage.rows import ApprovalDecision, ApprovalSummary, Decided

REASON_MAX = 1_000
BY_MAX = 128

Command = TypeVar("Command", bound=Callable[..., Any])

ID = click.argument("approval_id", metavar="ID")
"""Or its beginning."""


@click.group(cls=Group)
def approvals() -> None:
    """Calls of tools that a person must approve before they run.

    An agent's profile names such tools in approvals_required.

    \b
    Example:  insika approvals list && insika approvals approve 5c1f
    """


@approvals.command("list")
@click.option("--all", "all_", is_flag=True, help="Those too that nobody need decide any more.")
@limit_of("the oldest of those that wait first; with --all then the others, the newest first")
@json_option
def list_(all_: bool, limit: int, as_json: bool) -> None:
    """List the calls that wait for a person, the oldest first; with --all then the others, the newest first.

    \b
    Example:  insika approvals list --all --json
    """
    rows, now = run(_approvals(limit, open_only=not all_)), SystemClock().now()
    if as_json:
        print_json([json_views.approval_json(row) for row in rows])
        return
    print_approvals(rows, now, all_=all_, empty="No approvals yet." if all_ else "Nothing waits for a person.")


@approvals.command()
@ID
@json_option
def show(approval_id: str, as_json: bool) -> None:
    """Show one call that a person was asked about, with all of its arguments.

    \b
    Example:  insika approvals show 5c1f
    """
    summary, now = run(_show(approval_id)), SystemClock().now()
    if as_json:
        print_json(json_views.approval_json(summary))
        return
    row = summary.approval
    print_fields(
        {
            "approval": row.id,
            "session": summary.session,
            "tenant": summary.tenant or None,
            "agent": summary.agent,
            "turn": row.turn_id,
            "tool": row.tool,
            "asked": moment(row.asked_at),
            "expires": moment(row.expires_at),
            "state": stands(summary, now),
            "reason": row.reason or None,
        }
    )
    print_heading("Arguments")
    click.echo(_whole(summary.arguments))


def _deciding(command: Command) -> Command:
    """What both decisions take."""
    for option in (
        json_option,
        click.option("--by", metavar="NAME", type=PROSE, help="Who decides; absent: the user of this system."),
        click.option(
            "--reason", default="", metavar="TEXT", type=PROSE, help="Why; the agent is told of a rejection's."
        ),
        ID,
    ):
        command = option(command)
    return command


@approvals.command()
@_deciding
@click.pass_context
def approve(context: click.Context, *, approval_id: str, reason: str, by: str | None, as_json: bool) -> None:
    """Let a call run, once, with exactly the arguments that `show` tells.

    The exit code is 1 when that did not count: somebody decided before, or the time was over.

    \b
    Example:  insika approvals approve 5c1f
    """
    _decide(context, approval_id, ApprovalDecision.APPROVED, by=by, reason=reason, as_json=as_json)


@approvals.command()
@_deciding
@click.pass_context
def reject(context: click.Context, *, approval_id: str, reason: str, by: str | None, as_json: bool) -> None:
    """Do not let a call run; its agent is told, with the reason, and goes on.

    The exit code is 1 when that did not count: somebody decided before, or the time was over.

    \b
    Example:  insika approvals reject 5c1f --reason "only within 30 days"
    """
    _decide(context, approval_id, ApprovalDecision.REJECTED, by=by, reason=reason, as_json=as_json)


def decider(given: str | None = None) -> str:
    """Who is said to decide: the name that was given, or the system's user."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return "unknown"


def _decide(
    context: click.Context, given: str, decision: ApprovalDecision, *, by: str | None, reason: str, as_json: bool
) -> None:
    if by is not None and not 0 < len(by.strip()) <= BY_MAX:
        raise click.BadParameter(f"must have 1 to {BY_MAX} characters", param_hint="--by")
    if len(reason) > REASON_MAX:
        raise click.BadParameter(f"must have at most {REASON_MAX} characters", param_hint="--reason")
    decided, summary = run(_decided(given, decision, decider(by), reason))
    why = None if decided.won else why_not(decided.approval)
    if as_json:
        error = {"type": Refused.type, "message": why} if why is not None else None
        print_json({**json_views.approval_json(summary), "counted": decided.won, "error": error})
    elif why is not None:
        click.echo(f"Error: {on_one_line(why)}", err=True)
    else:
        click.echo(f"{decision}  {decided.approval.id}  by {on_one_line(decided.approval.decided_by or '-')}")
        click.echo(_what_follows(decision, summary))
    context.exit(0 if decided.won else 1)


def _what_follows(decision: ApprovalDecision, summary: ApprovalSummary) -> str:
    about, more = asked_about_in_full(summary)
    if decision is ApprovalDecision.APPROVED:
        return f"{about} may run: once, with exactly these arguments, unless its turn ends first.{more}"
    told = f", and why: {on_one_line(summary.approval.reason)}" if summary.approval.reason else "."
    return f"{about} does not run. The agent is told so{told}{more}"


def _whole(arguments: Mapping[str, Any]) -> str:
    return printable(json.dumps(arguments, indent=2, ensure_ascii=False))


async def _approvals(limit: int, *, open_only: bool) -> Sequence[ApprovalSummary]:
    async with open_store() as store:
        return await store.approvals(limit, open_only=open_only)


async def _show(given: str) -> ApprovalSummary:
    async with open_store() as store:
        return await _named(store, given)


async def _decided(given: str, decision: ApprovalDecision, by: str, reason: str) -> tuple[Decided, ApprovalSummary]:
    """What was decided, and the approval as it stands then."""
    async with open_desk() as desk:
        id_ = (await _named(desk.store, await decided_id(given, desk.store.approval_ids))).approval.id
        decided = await desk.control.decide(id_, decision, by=by, reason=reason)
        if decided is None:
            raise _missing(given)
        return decided, await _named(desk.store, id_)


async def _named(store: ReadStore, given: str) -> ApprovalSummary:
    found = await store.approval(await whole_id(given, store.approval_ids))
    if found is None:
        raise _missing(given)
    return found


def _missing(given: str) -> NotFound:
    return NotFound(f"there is no approval {as_given(given)}; `insika approvals list --all` shows those there are")
