"""`insika send --amqp`: a message handed to RabbitMQ, of which no more is known than that RabbitMQ has it."""

from __future__ import annotations

from typing import Any

import click

from actors.cli.output import on_one_line, print_json
from actors.cli.refusals import Refused
from actors.cli.running import environment_here
from insika import AsyncProducer
from insika.producer.errors import NotPublished, NotRouted
from insika.producer.job import QUEUE

PATIENCE_S = 10.0
"""Seconds within which RabbitMQ must have confirmed the message."""


async def publish(job: dict[str, Any]) -> str:
    """Which broker has the message now. Raises NotPublished, InvalidJob, or Refused where no broker is named."""
    url = environment_here().amqp_url
    if url is None:
        raise Refused("INSIKA_AMQP_URL is not set; it says where RabbitMQ is: amqp://user:password@host:5672/")
    async with AsyncProducer(url.get_secret_value(), timeout_s=PATIENCE_S) as producer:
        try:
            await producer.send(**job)
        except NotRouted as error:
            error.message += " (`insika ingress` is who does)"
            raise
        except NotPublished as error:
            if error.may_have_arrived:
                error.message += f" (send it again with --id {job['id']})"
            raise
        return producer.where


def print_published(job: dict[str, Any], broker: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"verdict": None, "id": job["id"], "session": job["session"], "broker": broker, "queue": QUEUE})
        return
    click.echo(f"published  id {on_one_line(job['id'])}")
    click.echo(f"RabbitMQ at {broker} has the message; its verdict is not known yet, but given when {QUEUE} is read.")
