"""`insika dev`: everything in one process, and a chat with an agent on top of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import click

from actors.cli.approvals import decider
from actors.cli.arguments import Command
from actors.cli.chat.lines import is_input
from actors.cli.chat.screen import screen_and_lines
from actors.cli.chat.talk import SESSION_MAX, Talk
from actors.cli.parts import parts_here
from actors.cli.refusals import NotFound
from actors.cli.running import environment_here, leave_nothing_running, run
from actors.cli.stopping import stop_on_signals
from actors.configuration import Configuration
from actors.control import Control
from actors.embedded import Embedded
from actors.environment import Environment
from actors.parts import Parts
from actors.samples.demo_agent import DEMO, demo_profile
from insika.clock import SystemClock
from insika.ports import ModelRequest
from insika.providers.offline import NOTICE, at_once
from insika.storage.port import ConfigurationStore

READING_PACE_S = 0.03


@click.command(cls=Command, short_help="Run everything in this process and chat with an agent.")
@click.option("--agent", help="Whom to talk to; absent: the only one there is, or `demo`.")
@click.option("--session", default="dev", show_default=True, help="The conversation to go on with.")
@click.pass_context
def dev(context: click.Context, agent: str | None, session: str) -> None:
    """Run everything in this process, on SQLite, and chat with an agent.

    In an empty folder there is a sample agent, `demo`, with sample tools. Its model is a script, not a language
    model. Lines that are piped in are answered one after the other. With neither a terminal nor a pipe, as under a
    supervisor, it only works: it answers what others send, until it is told to stop.

    \b
    Example:  insika dev
              echo "where is order 1234?" | insika dev
    """
    if not 0 < len(session) <= SESSION_MAX:
        raise click.BadParameter(f"must have 1 to {SESSION_MAX} characters", param_hint="--session")
    # Who only works has nowhere else to tell of a turn; a chat shows each.
    context.exit(run(_dev(agent, session), log_level="warning" if is_input() else "info"))


async def _dev(agent: str | None, session: str) -> int:
    """The exit code."""
    environment = environment_here()
    stop = stop_on_signals()
    insika = await Embedded.open(environment, _parts(environment))
    await _put_sample_in_force(insika.configuration, insika.store)
    async with insika:
        if not is_input():
            if agent is not None:
                _chosen(agent, sorted(row.name for row in await insika.store.current_profiles()))
            click.echo(f"{NOTICE}\nWorking on {environment.database_shown} until SIGINT or SIGTERM.")
            await stop.wait()
            code = 0
        else:
            code = await _chat(insika, environment, agent, session, stop)
    return await leave_nothing_running(code)


async def _chat(
    insika: Embedded, environment: Environment, agent: str | None, session: str, stop: asyncio.Event
) -> int:
    profiles = {row.name: row for row in await insika.store.current_profiles()}
    chosen = _chosen(agent, sorted(profiles))
    model = str(profiles[chosen].data.get("model"))
    click.echo(f"Insika: agent {chosen} on {model}, {environment.database_shown}")
    if model.startswith("offline/"):
        click.echo(NOTICE)
    typing = sys.stdin.isatty()
    if typing:
        click.echo("Write a message, or /help. /quit leaves.\n")
    with screen_and_lines() as (screen, read):
        control = Control(insika.store, insika.bus, insika.bus, insika.events, SystemClock())
        talk = Talk(insika.ingress, control, insika.store, screen, chosen, decider())
        await talk.enter(session)
        await _unless(stop, talk.typed(read) if typing else talk.piped(read))
    if insika.runtime.busy:
        click.echo("Finishing what is under way; a turn that is cut short goes on when a process runs next ...")
    return 1 if talk.failures and not typing else 0


def _parts(environment: Environment) -> Parts:
    return parts_here(environment, _at_reading_pace if sys.stdin.isatty() else at_once)


async def _at_reading_pace(request: ModelRequest, chunk: int, /) -> None:
    await asyncio.sleep(READING_PACE_S)


async def _put_sample_in_force(configuration: Configuration, store: ConfigurationStore) -> None:
    """Where there is no agent but the sample itself, which a newer version may have changed."""
    if all(row.name == DEMO for row in await store.current_profiles()):
        await configuration.apply_profiles([demo_profile()], from_file=True)
        await configuration.refresh()


def _chosen(agent: str | None, known: list[str]) -> str:
    if agent is not None:
        if agent not in known:
            raise NotFound(f"there is no agent {agent!r}; there are: {', '.join(known)}")
        return agent
    if len(known) == 1:
        return known[0]
    if DEMO in known:
        return DEMO
    raise click.UsageError(f"there are several agents, so say which with --agent: {', '.join(known)}")


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
