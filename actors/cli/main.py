"""The root of the command line: which commands there are, and what holds for all of them."""

from __future__ import annotations

import errno
import sys

import click

from actors.cli.lazy import LazyGroup
from actors.cli.streams import cannot_print, prepare_streams, tell

COMMANDS = {
    "dev": ("actors.cli.dev:dev", "Run everything in this process and chat with an agent."),
    "demo": ("actors.cli.demo:demo", "Watch a whole conversation, and a crash, from job to delivery."),
    "send": ("actors.cli.send:send", "Send a message to an agent."),
    "receive": ("actors.cli.receive:receive", "Receive deliveries, and show them."),
    "ingress": ("actors.cli.processes:ingress", "Take jobs off RabbitMQ."),
    "worker": ("actors.cli.processes:worker", "Run the turns of sessions."),
    "outbox": ("actors.cli.outbox:outbox", "Send deliveries; list, show, resend them."),
    "clock": ("actors.cli.processes:clock", "Wake what has become due."),
    "sessions": ("actors.cli.sessions:sessions", "Conversations: list, show, pause, resume, withdraw, retry."),
    "turns": ("actors.cli.turns:turns", "Turns: list, show, cancel."),
    "approvals": ("actors.cli.approvals:approvals", "Calls that a person must approve: list, show, approve, reject."),
    "agents": ("actors.cli.agents:agents", "Agents: list, show, validate, apply."),
    "settings": ("actors.cli.settings:settings", "The platform's settings: show, validate, apply."),
    "channels": ("actors.cli.channels:channels", "Where answers can be delivered: list."),
    "rejected": ("actors.cli.rejected:rejected", "Jobs that could not be accepted: list, show, requeue."),
    "recover": ("actors.cli.recover:recover", "Pick up what a dead process left."),
    "migrate": ("actors.cli.migrate:migrate", "Bring the database up to date."),
    "doctor": ("actors.cli.doctor:doctor", "Say what is wrong with a deployment, and what to do."),
}

HELP = """Runs the turns of LLM agents that chat with people: in order, steered, and delivered at most once.

Everything is kept in the database that INSIKA_DATABASE_URL names, ./insika.db unless set.

\b
Try it:       insika dev
A message:    insika send --session ana --agent demo "where is order 1234?"

Exit codes: 0 done, 1 failed, 2 used wrongly.
"""

UNPRINTABLE = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT)


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
    prepare_streams()
    try:
        cli(prog_name="insika")
    except OSError as error:
        # A stream has no file name, and what it could not take may be gone from its buffer by now.
        streams = cannot_print() is not None or (error.filename is None and error.errno in UNPRINTABLE)
        tell(f"Error: {'cannot write to standard output: ' if streams else ''}{error.strerror or error}")
        sys.exit(1)
    finally:
        _leave_nothing_unprinted()


def _leave_nothing_unprinted() -> None:
    """What is left fails here, with its sentence, rather than in the interpreter's end."""
    unprintable = cannot_print()
    if unprintable is not None:
        if unprintable.errno != errno.EPIPE:
            tell(f"Error: cannot write to standard output: {unprintable.strerror}")
        sys.exit(1)


if __name__ == "__main__":
    main()
