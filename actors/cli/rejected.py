"""`insika rejected`: the jobs that could not be accepted, as they came, and handing one in again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from actors.cli import json_views
from actors.cli.lazy import Group
from actors.cli.options import json_option, limit_option
from actors.cli.output import moment, one_line, print_fields, print_heading, print_json, print_table, printable
from actors.cli.refusals import NotFound
from actors.cli.running import open_door, open_store, run
from actors.cli.verdicts import HandedIn, hand_in, print_handed_in
from insika.documents import parse_json
from insika.storage.rows import RejectedJob

NUMBER = click.argument("number", type=click.IntRange(min=1, max=2**63 - 1))


@click.group(cls=Group)
def rejected() -> None:
    """Jobs that could not be accepted. They are kept as they came, and never run by themselves.

    \b
    Example:  insika rejected list
    """


@rejected.command("list")
@limit_option
@json_option
def list_(limit: int, as_json: bool) -> None:
    """List rejected jobs, the newest first.

    \b
    Example:  insika rejected list --json
    """
    rows = run(_list(limit))
    if as_json:
        print_json([json_views.rejected_json(row) for row in rows])
        return
    print_table(
        ["#", "at", "from", "requeued", "error"],
        [
            (
                str(row.id),
                moment(row.at),
                row.source,
                "yes" if row.requeued_at else "no",
                one_line(str(row.error.get("message")), 200),
            )
            for row in rows
        ],
        whole=("#", "at"),
        cut=("error",),
        empty="No jobs were rejected.",
    )


@rejected.command()
@NUMBER
@json_option
def show(number: int, as_json: bool) -> None:
    """Show one rejected job, with its body as it came.

    \b
    Example:  insika rejected show 3
    """
    row = run(_show(number))
    shown = json_views.rejected_json(row)
    if as_json:
        print_json(shown)
        return
    print_fields(
        {
            "number": str(row.id),
            "at": moment(row.at),
            "from": row.source,
            "field": row.error.get("field"),
            "error": str(row.error.get("message")),
            "requeued": moment(row.requeued_at) if row.requeued_at else None,
        }
    )
    print_heading("Body")
    click.echo(printable(shown["raw"]) if shown["raw"] is not None else f"(base64) {shown['raw_base64']}")


@rejected.command()
@NUMBER
@json_option
@click.pass_context
def requeue(context: click.Context, number: int, as_json: bool) -> None:
    """Hand a rejected job in again, once what was wrong is put right.

    Should it be rejected again, it is kept anew under another number.

    \b
    Example:  insika agents apply store-support.yaml && insika rejected requeue 3
    """
    handed_in = run(_requeue(number))
    print_handed_in(handed_in, as_json=as_json, more={"requeued_job": number})
    context.exit(0 if handed_in.taken else 1)


def _missing(number: int) -> NotFound:
    return NotFound(f"there is no rejected job {number}; `insika rejected list` shows those there are")


def _named(raw: bytes, field: str) -> str | None:
    """What the job itself says there, if it can be read so far."""
    try:
        job = parse_json(raw.decode("utf-8-sig"))
    except ValueError:
        return None
    named = job.get(field) if isinstance(job, Mapping) else None
    return named if isinstance(named, str) else None


async def _list(limit: int) -> Sequence[RejectedJob]:
    async with open_store() as store:
        return await store.rejected_jobs(limit)


async def _show(number: int) -> RejectedJob:
    async with open_store() as store:
        row = await store.rejected_job(number)
    if row is None:
        raise _missing(number)
    return row


async def _requeue(number: int) -> HandedIn:
    async with open_door() as door:
        row = await door.store.rejected_job(number)
        if row is None:
            raise _missing(number)
        # A job without an id, of its own or by the broker, gets one that follows from its number: doing this twice runs
        # it once.
        id_ = _named(row.raw, "id") or row.error.get("message_id") or f"requeued-{number}"
        session = _named(row.raw, "session")
        handed_in = await hand_in(door.ingress, row.raw, id=id_, session=session, source="requeue")
        if handed_in.taken or handed_in.number is not None:
            await door.store.mark_requeued(number)  # it lives on, in a mailbox or under another number
        return handed_in
