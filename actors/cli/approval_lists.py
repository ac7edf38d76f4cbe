"""Listings of the calls that a person was asked about: what one decides about, the arguments, must be readable in them.

On a terminal each call has a paragraph of its own, for a table leaves the arguments no room; anywhere else it is one
line, so that it can be searched and cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import click
from rich.padding import Padding
from rich.text import Text

from actors.cli import output
from actors.cli.approval_words import expires_in, stands
from actors.cli.output import moment, on_one_line, one_line, print_rich, print_table, short_id
from insika.storage.rows import ApprovalSummary

_ARGUMENTS_WIDTH = 80
_ARGUMENTS_ON_TERMINAL = 320
_INDENT = 2


def print_approvals(rows: Sequence[ApprovalSummary], now: datetime, *, all_: bool, empty: str) -> None:
    """`all_`: those too that nobody need decide any more, so how each stands is told. `empty` stands for no rows."""
    if rows and output.on_terminal():
        for row in rows:
            _print_paragraph(row, now, all_=all_)
        return
    with_tenant = any(row.tenant for row in rows)
    print_table(
        [
            *("approval", "session", *(["tenant"] if with_tenant else []), "agent", "tool", "arguments", "asked"),
            "state" if all_ else "expires in",
        ],
        [
            (
                short_id(row.approval.id),
                row.session,
                *([row.tenant or "-"] if with_tenant else []),
                row.agent,
                row.approval.tool,
                one_line(_arguments(row), _ARGUMENTS_WIDTH),
                moment(row.approval.asked_at),
                stands(row, now) if all_ else expires_in(row, now),
            )
            for row in rows
        ],
        empty=empty,
    )


def _print_paragraph(row: ApprovalSummary, now: datetime, *, all_: bool) -> None:
    tenant = f", tenant {row.tenant}" if row.tenant else ""
    standing = stands(row, now) if all_ else f"expires in {expires_in(row, now)}"
    about = f"session {row.session}{tenant}, agent {row.agent}, asked {moment(row.approval.asked_at)}"
    click.echo(short_id(row.approval.id))
    call = f"{row.approval.tool} {one_line(_arguments(row), _ARGUMENTS_ON_TERMINAL)}"
    print_rich(Padding(Text(on_one_line(call), style="bold"), (0, 0, 0, _INDENT)))
    print_rich(Padding(Text(on_one_line(f"{standing}; {about}")), (0, 0, 0, _INDENT)))


def _arguments(row: ApprovalSummary) -> str:
    return json.dumps(row.arguments, ensure_ascii=False)
