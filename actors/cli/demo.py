"""`insika demo`: a whole conversation with a kill in the middle, told as it happens."""

from __future__ import annotations

import asyncio

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, ending with demo.finished.")
def demo(as_json: bool) -> None:
    """Run a real conversation through the whole pipeline, kill the process in the middle, and count.

    Everything is real but the model, which is a script: a SQLite file in a temporary folder, a local HTTP receiver,
    signed deliveries, and SIGKILL. Needs no network and no key, and leaves nothing behind.

    Example: insika demo --json | tail -1
    """
    from rich.console import Console  # noqa: PLC0415 - keeps `insika --help` quick

    from actors.demo.narrator import JsonNarrator, TerminalNarrator  # noqa: PLC0415
    from actors.demo.show import Show  # noqa: PLC0415
    from actors.demo.worker import WorkerFailed  # noqa: PLC0415

    narrator = JsonNarrator() if as_json else TerminalNarrator(Console())
    try:
        kept = asyncio.run(Show(narrator).run())
    except WorkerFailed as failure:
        raise click.ClickException(str(failure)) from failure
    if not kept:
        raise click.ClickException("a tool or a delivery was repeated; this must never happen, please report it")
