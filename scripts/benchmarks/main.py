"""Prints the figures: a table for people, or one JSON object a line."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks import durable, memory
from benchmarks.measure import Figure

SUITES: tuple[tuple[str, Callable[[], Awaitable[list[Figure]]]], ...] = (
    ("the loop in memory", memory.figures),
    ("the durable turn on SQLite", durable.figures),
)
COLUMNS = ("name", "n", "p50_ms", "p95_ms", "per_s", "floor_ms", "ratio", "note")
USAGE = """\
Usage: scripts/bench [--json]

Measures what a turn costs, beside a floor measured in the same run. Takes a few minutes; run it on a quiet machine.

  --json   one JSON object a line on standard output
  --help   this text
"""


async def run(as_json: bool) -> None:
    table = Table(*COLUMNS, box=None)
    for title, suite in SUITES:
        sys.stderr.write(f"measuring {title} ...\n")
        for figure in await suite():
            if as_json:
                sys.stdout.write(json.dumps(asdict(figure)) + "\n")
                sys.stdout.flush()
            else:
                table.add_row(*(str(getattr(figure, column)) for column in COLUMNS))
    if not as_json:
        Console(width=140).print(table)


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(USAGE)
        return 0
    if unknown := [argument for argument in arguments if argument != "--json"]:
        sys.stderr.write(f"bench: no such option: {unknown[0]}. Usage: scripts/bench [--json]\n")
        return 2
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(run("--json" in arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
