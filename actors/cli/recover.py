"""`insika recover`: pick up what a dead process left, and say how much that was."""

from __future__ import annotations

from dataclasses import asdict

import click

from actors.cli.arguments import Command
from actors.cli.options import json_option
from actors.cli.output import print_json
from actors.cli.running import environment_here, open_database, run
from actors.recovery import Recovered
from actors.recovery import recover as recover_store

MEANS = {
    "sent": "deliveries that were due and have arrived now",
    "uncertain": "deliveries that may or may not have arrived; see `insika outbox list`",
    "pending": "deliveries left for a later try",
    "sending": "deliveries that a process is sending; settled at the latest when its claim has run out",
    "woken": "sessions that are due; a running process takes them up at once",
}


@click.command(cls=Command)
@json_option
def recover(as_json: bool) -> None:
    """Pick up what a dead process left: send deliveries that are due, settle those it was sending, wake sessions.

    What a process was sending is settled once its claim has run out; until then it counts as being sent, because the
    process may be alive. `insika outbox show ID` tells when that is.

    Every process does this by itself when it starts. It may be run at any time, also twice at once.

    \b
    Example:  insika recover --json
    """
    recovered = run(_recover())
    if as_json:
        print_json(asdict(recovered))
        return
    for name, count in asdict(recovered).items():
        click.echo(f"{name:<9}  {count:>5}  {MEANS[name]}")


async def _recover() -> Recovered:
    environment = environment_here()
    async with open_database(environment) as stores:
        return await recover_store(stores.store, stores.outbox, environment)
