"""`insika doctor`: what is wrong with a deployment, and what to do about it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import click
from rich.table import Table
from rich.text import Text

from actors.cli.arguments import Command
from actors.cli.options import json_option
from actors.cli.output import on_one_line, on_terminal, print_json, print_rich
from actors.cli.parts import parts_here
from actors.cli.running import run
from actors.doctor.examination import examine
from actors.doctor.finding import Finding, Level
from actors.doctor.variables import unreadable
from actors.environment import read_environment, unknown_variables
from insika.clock import SystemClock
from insika.errors import InvalidConfiguration
from insika.text import counted

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


@click.command(cls=Command)
@json_option
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Look at everything that a deployment rests on, and say what is wrong and what to do.

    It asks the database, RabbitMQ and Redis, as far as the environment names them, and reads what processes read when
    they start. It changes nothing and takes at most some 20 seconds. The exit code is 1 when something fails; warnings
    alone leave it at 0. Run it where the processes run, with their environment.

    \b
    Example:  insika doctor --json
    """
    findings = run(_findings())
    if as_json:
        counts = Counter(finding.level for finding in findings)
        print_json(
            {
                "healthy": counts[Level.FAIL] == 0,
                "counts": {str(level): counts[level] for level in Level},
                "findings": [_as_json(finding) for finding in findings],
            }
        )
    else:
        _print(findings)
    context.exit(1 if any(finding.level is Level.FAIL for finding in findings) else 0)


async def _findings() -> Sequence[Finding]:
    try:
        environment = read_environment()
    except InvalidConfiguration as error:
        return list(unreadable(error))
    unknown = unknown_variables(os.environ)
    return await examine(environment, unknown, lambda: parts_here(environment), SystemClock())


def _as_json(finding: Finding) -> dict[str, str | None]:
    return {"level": finding.level, "about": finding.about, "what": finding.what, "do": finding.do or None}


def _print(findings: Sequence[Finding]) -> None:
    """On a terminal what to do stands on a line of its own; elsewhere a finding is one line."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    between = "\n" if on_terminal() else " "
    for finding in findings:
        told = Text(on_one_line(finding.what))
        if finding.do:
            told.append(f"{between}{on_one_line(finding.do)}", style="dim")
        table.add_row(Text(finding.level, style=_STYLES[finding.level]), Text(finding.about), told)
    print_rich(table)
    counts = Counter(finding.level for finding in findings)
    failures, warnings = counted(counts[Level.FAIL], "failure"), counted(counts[Level.WARN], "warning")
    click.echo(f"\n{failures}, {warnings}." if counts[Level.FAIL] or counts[Level.WARN] else "\nAll is well.")
