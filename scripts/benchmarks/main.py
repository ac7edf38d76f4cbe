"""Prints the figures: a table for people, or one JSON object a line."""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import structlog
from private_services import PrivateServices
from rich.console import Console
from rich.table import Table

from benchmarks import durable, intake, layers, limits, memory, pipeline, waiting
from benchmarks.measure import Figure

PEERS_PYTHON = Path(__file__).resolve().parents[2] / ".venv-peers" / "bin" / "python"
COLUMNS = ("name", "n", "p50_ms", "p95_ms", "per_s", "floor_ms", "ratio", "note")

Suite = Callable[[], Awaitable[list[Figure]]]
OnServices = Callable[[PrivateServices, Path], Awaitable[list[Figure]]]


async def peer_figures() -> list[Figure]:
    """In their own environment, whose path `scripts/bench` has set up."""
    run = await asyncio.to_thread(
        subprocess.run, [PEERS_PYTHON, "-m", "benchmarks.peers"], stdout=subprocess.PIPE, check=True, text=True
    )
    return [Figure(**json.loads(line)) for line in run.stdout.splitlines()]


async def postgres_figures(services: PrivateServices, root: Path) -> list[Figure]:
    return await durable.postgres_figures(services.postgres.create_database("bench_durable"))


ALONE: dict[str, Suite] = {"memory": memory.figures, "layers": layers.figures, "sqlite": durable.sqlite_figures}
ON_SERVICES: dict[str, OnServices] = {
    "postgres": postgres_figures,
    "limits": limits.figures,
    "ingress": intake.figures,
    "pipeline": pipeline.figures,
    "waiting": waiting.figures,
}
PEERS: dict[str, Suite] = {"peers": peer_figures}


@contextmanager
def suites(chosen: Sequence[str], with_peers: bool) -> Iterator[dict[str, Suite]]:
    """With the servers that they need, for as long as they are measured."""
    wanted: dict[str, Suite] = {name: suite for name, suite in ALONE.items() if name in chosen}
    with ExitStack() as stack:
        if any(name in chosen for name in ON_SERVICES):
            sys.stderr.write("starting RabbitMQ, PostgreSQL and Redis ...\n")
            services = stack.enter_context(PrivateServices.start())
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="insika-bench-")))
            for name, suite in ON_SERVICES.items():
                if name in chosen:
                    wanted[name] = functools.partial(suite, services, root)
        yield wanted | (PEERS if with_peers else {})


async def run(as_json: bool, chosen: Sequence[str], with_peers: bool) -> None:
    table = Table(*COLUMNS, box=None)
    with suites(chosen, with_peers) as wanted:
        for name, suite in wanted.items():
            sys.stderr.write(f"measuring {name} ...\n")
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
        description="Measures what a turn costs, beside a floor measured in the same run. Takes a few minutes; "
        "run it on a quiet machine.",
    )
    names = [*ALONE, *ON_SERVICES]
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"what to measure, of {', '.join(names)}; absent: all"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line on standard output")
    parser.add_argument("--peers", action="store_true", help="also the same turn in other agent libraries")
    options = parser.parse_args()
    if unknown := [name for name in options.suites if name not in names]:
        parser.error(f"there is no suite {unknown[0]!r}; there are: {', '.join(names)}")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(run(options.json, options.suites or names, options.peers))


if __name__ == "__main__":
    main()
