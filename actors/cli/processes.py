"""The processes of a cluster: `insika ingress`, `worker`, `clock`, and `outbox` where it is given no command."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import click

from actors.cli.arguments import Command
from actors.cli.parts import parts_here
from actors.cli.running import environment_here, leave_nothing_running, run
from actors.cli.stopping import stop_on_signals
from actors.environment import Environment
from actors.parts import Parts
from actors.processes.clock import run_clock
from actors.processes.ingress import run_ingress
from actors.processes.outbox import run_outbox
from actors.processes.preflight import ToldToStop
from actors.processes.worker import run_worker

Process = Callable[[Environment, Parts, asyncio.Event], Awaitable[None]]

SWITCH_S = 0.001
"""How long a thread of these processes waits for another that is busy, in seconds: what a message takes goes through
three of them, and Python's own 5 ms would stand between each two."""


def run_process(context: click.Context, process: Process) -> None:
    """Until it is told to stop, logging from info on unless the user chose otherwise."""
    sys.setswitchinterval(SWITCH_S)
    context.exit(run(_run(process), log_level="info"))


async def _run(process: Process) -> int:
    environment = environment_here()
    with suppress(ToldToStop):
        await process(environment, parts_here(environment), stop_on_signals())
    return await leave_nothing_running(0)


@click.command(cls=Command, short_help="Take jobs off RabbitMQ.")
@click.pass_context
def ingress(context: click.Context) -> None:
    """Take jobs off the queue insika.turns, in order, and have each accepted or kept aside.

    Start two, and one stands by. It needs INSIKA_AMQP_URL and a migrated database, and waits a minute for both at its
    start. While the database is away it holds still; after five minutes it ends, with exit code 1, and nothing is lost.

    \b
    Example:  insika ingress
    """
    run_process(context, run_ingress)


@click.command(cls=Command, short_help="Run the turns of sessions.")
@click.pass_context
def worker(context: click.Context) -> None:
    """Run the turns of sessions, up to INSIKA_SLOTS at once. Start as many as you like, on as many machines.

    SIGTERM drains it: turns come to their next boundary or answer within INSIKA_DRAIN_S seconds, and what is left goes
    on in another worker. A worker that dies is found by the end of its leases (INSIKA_LEASE_S).

    \b
    Example:  INSIKA_SLOTS=500 insika worker
    """
    run_process(context, run_worker)


@click.command(cls=Command, short_help="Wake what has become due.")
@click.pass_context
def clock(context: click.Context) -> None:
    """Wake sessions and deliveries that have become due: an owner died, a debounce is over, a retry may be made.

    One is enough, two do no harm, and without one the others find what is due a little later.

    \b
    Example:  insika clock
    """
    run_process(context, run_clock)


def run_the_outbox(context: click.Context) -> None:
    """`insika outbox` without a command."""
    run_process(context, run_outbox)
