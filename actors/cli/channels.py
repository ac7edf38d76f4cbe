"""`insika channels`: where answers can be delivered, as the settings in force say. Secrets are never shown."""

from __future__ import annotations

import click

from actors.cli.lazy import Group
from actors.cli.options import json_option
from actors.cli.output import print_json, print_table
from actors.cli.running import open_store, run
from insika.channels import Channel
from insika.settings import load_settings
from insika.urls import redacted_url


@click.group(cls=Group)
def channels() -> None:
    """Where answers can be delivered.

    Channels are part of the settings: `insika settings apply` adds and changes them.

    \b
    Example:  insika channels list
    """


@channels.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the channels in the settings in force.

    \b
    Example:  insika channels list --json
    """
    found = run(_channels())
    if as_json:
        print_json([channel.model_dump(mode="json") for channel in found])
        return
    print_table(
        ["channel", "url", "guarantee", "split", "tries", "timeout", "secrets"],
        [
            (
                channel.id,
                redacted_url(channel.url),
                channel.guarantee,
                channel.split,
                str(channel.max_attempts),
                f"{channel.timeout_s:g} s",
                str(len(channel.secrets)),
            )
            for channel in found
        ],
        whole=("channel", "guarantee", "split"),
        empty="No channels. Write them into a settings file, then: insika settings apply FILE",
    )


async def _channels() -> tuple[Channel, ...]:
    async with open_store() as store:
        row = await store.current_settings()
    if row is None:
        return ()
    return load_settings(dict(row.data), f"settings revision {row.revision[:12]}").channels
