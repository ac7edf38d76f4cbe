"""Prints the figures: a table for people, or one JSON object a line."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks import durable, memory
from benchmarks.measure import Figure

PEERS_PYTHON = Path(__file__).resolve().parents[2] / ".venv-peers" / "bin" / "python"
COLUMNS = ("name", "n", "p50_ms", "p95_ms", "per_s", "floor_ms", "ratio", "note")

Suite = Callable[[], Awaitable[list[Figure]]]


async def peer_figures() -> list[Figure]:
    """In their own environment, whose path `scripts/bench` has set up."""
    run = await asyncio.to_thread(
        subprocess.run, [PEERS_PYTHON, "-m", "benchmarks.peers"], stdout=subprocess.PIPE, check=True, text=True
    )
    return [Figure(**json.loads(line)) for line in run.stdout.splitlines()]


def suites(with_peers: bool) -> list[tuple[str, Suite]]:
    own: list[tuple[str, Suite]] = [
        ("the loop in memory", memory.figures),
        ("the durable turn on SQLite", durable.figures),
    ]
    return [*own, ("the same turn in other libraries", peer_figures)] if with_peers else own


async def run(as_json: bool, with_peers: bool) -> None:
    table = Table(*COLUMNS, box=None)
    for title, suite in suites(with_peers):
        sys.stderr.write(f"measuring {title} ...\n")
        for figure in await suite():
            if as_json:
                sys.stdout.write(json.dumps(asdict(figure)) + "\n")
                sys.stdout.flush()
            else:
                table.add_row(*(str(getattr(figure, column)) for column in COLUMNS))
    if not as_json:
        Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures what a turn costs, beside a floor measured in the same run. Takes a minute; "
        "run it on a quiet machine.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line on standard output")
    parser.add_argument("--peers", action="store_true", help="also the same turn in other agent libraries")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(run(options.json, options.peers))


if __name__ == "__main__":
    main()
