"""`insika demo`: a whole conversation with a kill in the middle, told as it happens."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import click

from actors.cli.arguments import Command
from actors.cli.options import json_lines_option
from actors.cli.refusals import Refused


@click.command(cls=Command)
@json_lines_option
def demo(as_json: bool) -> None:
    """Run a real conversation through the whole pipeline, kill the process in the middle, and count.

    Everything is real but the model, which is a script: a SQLite file in a temporary folder, a local HTTP receiver,
    signed deliveries, and SIGKILL. Needs no network and no key, and leaves nothing behind. With --json the last line
    is demo.finished.

    Example: insika demo --json | tail -1
    """
    from rich.console import Console  # noqa: PLC0415 - keeps `insika --help` quick

    from actors.demo.narrator import JsonNarrator, TerminalNarrator  # noqa: PLC0415
    from actors.demo.show import Show  # noqa: PLC0415
    from actors.demo.worker import WorkerFailed  # noqa: PLC0415

    narrator = JsonNarrator() if as_json else TerminalNarrator(Console())
    try:
        kept = asyncio.run(_until_told(Show(narrator).run()))
    except asyncio.CancelledError:
        raise Refused("the demo was stopped before its end") from None
    except WorkerFailed as failure:
        raise Refused(str(failure)) from failure
    if not kept:
        raise Refused("a tool or a delivery was repeated; this must never happen, please report it")


async def _until_told(show: Coroutine[Any, Any, bool]) -> bool:
    """Run the show. The first SIGINT or SIGTERM cancels it, which takes everything away; later ones change nothing."""
    loop, showing = asyncio.get_running_loop(), asyncio.ensure_future(show)
    told: list[int] = []

    def stop(number: int) -> None:
        if not told:
            showing.cancel()
        told.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    return await showing
