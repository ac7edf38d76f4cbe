"""The root of the command line: which commands there are, and what holds for all of them."""

from __future__ import annotations

import io
import sys

import click

from actors.cli.lazy import LazyGroup

COMMANDS = {
    "dev": ("actors.cli.dev:dev", "Run everything in this process and chat with an agent."),
    "demo": ("actors.cli.demo:demo", "Watch a whole conversation, and a crash, from job to delivery."),
    "send": ("actors.cli.send:send", "Send a message to an agent."),
    "receive": ("actors.cli.receive:receive", "Receive deliveries, and show them."),
    "sessions": ("actors.cli.sessions:sessions", "Conversations: list, show, pause, resume, retry."),
    "turns": ("actors.cli.turns:turns", "Turns: list, show, cancel."),
    "agents": ("actors.cli.agents:agents", "Agents: list, show, validate, apply."),
    "settings": ("actors.cli.settings:settings", "The platform's settings: show, validate, apply."),
    "channels": ("actors.cli.channels:channels", "Where answers can be delivered: list."),
    "outbox": ("actors.cli.outbox:outbox", "Deliveries: list, show, resend."),
    "rejected": ("actors.cli.rejected:rejected", "Jobs that could not be accepted: list, show, requeue."),
    "recover": ("actors.cli.recover:recover", "Pick up what a dead process left."),
    "migrate": ("actors.cli.migrate:migrate", "Bring the database up to date."),
}

HELP = """Runs the turns of LLM agents that chat with people: in order, steered, and delivered at most once.

Everything is kept in the database that INSIKA_DATABASE_URL names, ./insika.db unless set.

\b
Try it:       insika dev
A message:    insika send --session ana --agent demo "where is order 1234?"

Exit codes: 0 done, 1 failed, 2 used wrongly.
"""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="insika", prog_name="insika")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    envvar="INSIKA_LOG_LEVEL",
    show_envvar=True,
    help="What is logged on standard error; absent: info where `dev` only works, warning in its chat, else error.",
)
@click.pass_context
def cli(context: click.Context, log_level: str | None) -> None:
    context.obj = log_level


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to fail
    cli(prog_name="insika")


if __name__ == "__main__":
    main()
