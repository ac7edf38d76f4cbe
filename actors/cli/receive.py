"""`insika receive`: a receiver of deliveries for trying things out. It is no part of the engine."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import click

from actors.cli.alert_words import alert_said, is_alert
from actors.cli.arguments import Command
from actors.cli.options import json_lines_option
from actors.cli.output import on_one_line, one_line
from actors.cli.refusals import Refused
from actors.cli.running import run
from actors.receiver import Answer, Journal, NoJournal, Received, Receiver
from insika.channels import signing_secret

SECRETS = "INSIKA_RECEIVE_SECRETS"


@click.command(cls=Command)
@click.option("--port", type=click.IntRange(0, 65_535), required=True, help="On 127.0.0.1; 0 takes a free one.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="whsec_...",
    envvar=SECRETS,
    show_envvar=True,
    help="The channel's signing secret; may be repeated. Without one, nothing is verified.",
)
@click.option("--journal", type=click.Path(path_type=Path, dir_okay=False), help="Also append each delivery to FILE.")
@click.option("--status", type=click.IntRange(200, 599), default=200, show_default=True, help="What to answer.")
@click.option("--times", type=click.IntRange(1), help="Only the first so many requests of each delivery; then 200.")
@click.option("--retry-after", type=click.IntRange(0), metavar="SECONDS", help="Ask to be tried again after these.")
@json_lines_option
def receive(
    *,
    port: int,
    secrets: tuple[str, ...],
    journal: Path | None,
    status: int,
    times: int | None,
    retry_after: int | None,
    as_json: bool,
) -> None:
    """Receive deliveries and show them, until it is told to stop (Ctrl-C).

    Signatures are checked and each delivery is on the disk before it is answered. Several secrets in the variable have
    spaces between them. --status tries out what becomes of a delivery that is not accepted.

    \b
    Example:  insika receive --port 9000 --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    Retries:  insika receive --port 9000 --status 503 --times 2 --retry-after 1
    """
    for secret in secrets:
        try:
            signing_secret(secret)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint=f"--secret or {SECRETS}") from None
    run(_receive(port, secrets, journal, Answer(status, times, retry_after), as_json))


async def _receive(port: int, secrets: tuple[str, ...], journal: Path | None, answer: Answer, as_json: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        receiver = Receiver(
            secrets,
            port=port,
            journal=Journal(journal) if journal is not None else NoJournal(),
            answer=answer,
            on_received=lambda received: _show(received, as_json),
            on_turned_away=lambda received: _show(received, as_json),
            on_refused=lambda reason: click.echo(f"refused: {reason}", err=True),
        )
        async with receiver:
            click.echo(f"Listening on {receiver.url} ({'verifying' if secrets else 'not verifying'})", err=as_json)
            await stop.wait()
    except OSError as error:
        raise Refused(f"cannot receive: {error.strerror or error}") from error


def _show(received: Received, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(received.as_dict()))
        return
    payload = received.payload if isinstance(received.payload, dict) else {}
    notes = [
        *([f"attempt {received.attempt}"] if received.attempt > 1 else []),
        *(["possible duplicate"] if received.possible_duplicate else []),
        *([f"received {received.count} times"] if received.count > 1 else []),
        *([f"answered {received.answered}"] if received.answered != 200 else []),
    ]
    alert = is_alert(payload)
    said = alert_said(payload) if alert else str(payload.get("content", payload.get("type", "")))
    whom = payload.get("agent" if alert else "recipient", "?")
    told = f" ({', '.join(notes)})" if notes else ""
    heading = f"{received.id}  {payload.get('type', '?')} for {whom}{told}"
    click.echo(f"{on_one_line(heading)}: {one_line(said, 200)}")
