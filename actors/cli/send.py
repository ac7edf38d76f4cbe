"""`insika send`: hand in one message, as a producer would, and tell what became of it.

With `--amqp` it is published to RabbitMQ instead of the store, and all that is known is that RabbitMQ has it.
"""

from __future__ import annotations

import json
import sys
import uuid

import click

from actors.cli.arguments import PROSE, Command
from actors.cli.options import json_option
from actors.cli.refusals import Refused
from actors.cli.running import open_door, run
from actors.cli.verdicts import HandedIn, hand_in, print_handed_in
from insika.choices import QueueMode
from insika.errors import InsikaError


@click.command(cls=Command)
@click.option("--session", required=True, help="The conversation; messages of one run in order.")
@click.option("--agent", required=True, help="Who shall answer.")
@click.option("--id", "id_", help="This message's id; sent again under the same one, it counts once. Absent: made up.")
@click.option("--channel", help="Where the answer is delivered; absent: it is kept, not delivered.")
@click.option("--recipient", help="The person's address in the channel; absent: the session.")
@click.option("--tenant", help="Whose session it is; absent: the platform.")
@click.option("--mode", type=click.Choice([str(mode) for mode in QueueMode]), help="What to do in a busy session.")
@click.option("--amqp", is_flag=True, help="Publish it to RabbitMQ at INSIKA_AMQP_URL.")
@json_option
@click.argument("text", type=PROSE)
@click.pass_context
def send(
    context: click.Context,
    *,
    session: str,
    agent: str,
    id_: str | None,
    channel: str | None,
    recipient: str | None,
    tenant: str | None,
    mode: str | None,
    amqp: bool,
    as_json: bool,
    text: str,
) -> None:
    """Send TEXT to an agent; `-` reads it from standard input. `insika dev` or a worker answers it.

    Prints the verdict and the turn. A message that is rejected is kept (`insika rejected list`), and the exit code
    is 1. With --amqp it is published instead, and RabbitMQ has confirmed it when this command ends; the verdict is
    given later.

    \b
    Example:  insika send --session ana --agent demo "where is order 1234?"
    """
    given = {"channel": channel, "recipient": recipient, "tenant": tenant, "queue_mode": mode}
    job = {
        "id": id_ if id_ is not None else f"send-{uuid.uuid4()}",
        "session": session,
        "agent": agent,
        "text": _read() if text == "-" else text,
        **{name: value for name, value in given.items() if value is not None},
    }
    if amqp:
        from actors.cli.published import print_published, publish  # noqa: PLC0415 - others need no broker

        print_published(job, run(publish(job)), as_json=as_json)
        return
    handed_in = run(_send(job))
    print_handed_in(handed_in, as_json=as_json, more={})
    context.exit(0 if handed_in.taken else 1)


def _read() -> str:
    """Standard input without the line end that a shell puts there."""
    try:
        raw = sys.stdin.buffer.read()
    except OSError as error:
        raise Refused(f"cannot read standard input: {error.strerror}") from error
    return raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


async def _send(job: dict[str, str]) -> HandedIn:
    raw = json.dumps(job).encode()
    async with open_door() as door:
        try:
            return await hand_in(door.ingress, raw, id=job["id"], session=job["session"], source="send")
        except InsikaError as error:
            error.message += f" (nobody knows whether the message was taken; send it again with --id {job['id']})"
            raise
