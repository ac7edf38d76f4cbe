"""`insika dev`: everything in one process, and a chat with an agent on top of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import click

from actors.cli.approvals import decider
from actors.cli.arguments import Command
from actors.cli.chat.lines import is_input
from actors.cli.chat.screen import screen_and_lines
from actors.cli.chat.talk import SESSION_MAX, Talk
from actors.cli.company import Company, Partner
from actors.cli.parts import parts_here
from actors.cli.running import environment_here, leave_nothing_running, run
from actors.cli.stopping import stop_on_signals
from actors.control import Control
from actors.embedded import Embedded
from actors.environment import Environment
from insika.clock import SystemClock
from insika.ports import ModelRequest
from insika.providers.offline import at_once

READING_PACE_S = 0.03


@click.command(cls=Command, short_help="Run everything in this process and chat with an agent.")
@click.option("--agent", help="Whom to talk to; absent: the only one there is, or `demo`.")
@click.option("--model", help="What the sample agent speaks with, as PROVIDER/NAME; absent: what there is a key for.")
@click.option("--session", default="dev", show_default=True, help="The conversation to go on with.")
@click.pass_context
def dev(context: click.Context, agent: str | None, model: str | None, session: str) -> None:
    """Run everything in this process, on SQLite, and chat with an agent.

    In an empty folder there is a sample agent, `demo`, with sample tools. It speaks with a hosted model when
    ANTHROPIC_API_KEY or OPENAI_API_KEY is set, and otherwise with a script, which is not a language model. Agents of
    your own speak with what their profiles name. Lines that are piped in are answered one after the other. With
    neither a terminal nor a pipe, as under a supervisor, it only works: it answers what others send, until it is told
    to stop.

    \b
    Example:  insika dev
              insika dev --model anthropic/claude-sonnet-5-5
              echo "where is order 1234?" | insika dev --model offline/demo
    """
    if not 0 < len(session) <= SESSION_MAX:
        raise click.BadParameter(f"must have 1 to {SESSION_MAX} characters", param_hint="--session")
    # Who only works has nowhere else to tell of a turn; a chat shows each.
    context.exit(run(_dev(agent, model, session), log_level="warning" if is_input() else "info"))


async def _dev(agent: str | None, model: str | None, session: str) -> int:
    """The exit code."""
    environment = environment_here()
    stop = stop_on_signals()
    parts = parts_here(environment, _at_reading_pace if sys.stdin.isatty() else at_once)
    insika = await Embedded.open(environment, parts)
    try:
        company = await Company.of(insika, environment, parts.models)
        partner = company.partner(agent, model) if is_input() or agent is not None or model is not None else None
        told = await company.put_sample_in_force(insika.configuration, partner)
    except BaseException:
        await insika.close()
        raise
    async with insika:
        if partner is not None and is_input():
            code = await _chat(insika, environment, partner, session, stop)
        else:
            code = await _work(told, environment, stop)
    return await leave_nothing_running(code)


async def _work(told: Sequence[str], environment: Environment, stop: asyncio.Event) -> int:
    for line in told:
        click.echo(line)
    click.echo(f"Working on {environment.database_shown} until SIGINT or SIGTERM.")
    await stop.wait()
    return 0


async def _chat(insika: Embedded, environment: Environment, partner: Partner, session: str, stop: asyncio.Event) -> int:
    click.echo(f"Insika: agent {partner.agent} on {partner.model}, {environment.database_shown}")
    for line in partner.told:
        click.echo(line)
    typing = sys.stdin.isatty()
    if typing:
        click.echo("Write a message, or /help. /quit leaves.\n")
    with screen_and_lines() as (screen, read), insika.events.subscribe() as heard:
        control = Control(insika.store, insika.bus, insika.bus, insika.events, SystemClock())
        talk = Talk(insika.ingress, control, insika.store, screen, partner.agent, decider(), heard.take)
        await talk.enter(session)
        await _unless(stop, talk.typed(read) if typing else talk.piped(read))
    if insika.runtime.busy:
        click.echo("Finishing what is under way; a turn that is cut short goes on when a process runs next ...")
    return 1 if talk.failures and not typing else 0


async def _at_reading_pace(request: ModelRequest, chunk: int, /) -> None:
    await asyncio.sleep(READING_PACE_S)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end, or until `stop` is set. Raises what `work` raises."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        await asyncio.wait({working})
    elif (error := working.exception()) is not None:
        raise error
