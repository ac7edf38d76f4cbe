"""`insika settings`: the platform's settings in the store, and files that may become them. Secrets are never shown."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import click

from actors.cli.json_views import applied_by, revision_json
from actors.cli.lazy import Group
from actors.cli.options import json_option
from actors.cli.output import moment, print_json
from actors.cli.parts import parts_here
from actors.cli.running import environment_here, open_store, run
from actors.cli.validation import Problem, Validated, print_validated, refuse_faulty, tell_warnings, validated
from actors.cli.yaml_view import print_yaml
from actors.configuration import OPERATOR
from actors.tool_set import ToolSet, tool_set
from insika.config_files import load_settings_file
from insika.providers.hosted import HostedProviders
from insika.settings import Settings, load_settings
from insika.storage.rows import Revision

FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(cls=Group)
def settings() -> None:
    """The platform's settings: queue rules, channels, the providers of hosted models, and HTTP tools.

    \b
    Example:  insika settings validate settings.yaml && insika settings apply settings.yaml
    """


@settings.command()
@json_option
def show(as_json: bool) -> None:
    """Show the settings in force, without their secrets.

    \b
    Example:  insika settings show --json
    """
    row, in_force = run(_current())
    if as_json:
        applied = revision_json(row) if row is not None else {"revision": None, "source": None, "applied_at": None}
        print_json({**applied, "settings": in_force.redacted()})
        return
    if row is None:
        click.echo("# No settings have been applied; these are the defaults.")
    else:
        click.echo(f"# revision {row.revision[:12]}, applied {moment(row.at)} by {applied_by(row)}")
    print_yaml(in_force.redacted())


@settings.command()
@FILE
@json_option
@click.pass_context
def validate(context: click.Context, file: Path, as_json: bool) -> None:
    """Check a settings file, naming every mistake by its path. Nothing is applied.

    An HTTP tool must not have the name of a tool of INSIKA_TOOLS. A key or a secret that is not in the environment here
    is warned of; workers need it.

    \b
    Example:  insika settings validate settings.yaml
    """
    checked = _validated(file)
    print_validated(checked, as_json=as_json)
    context.exit(0 if all(one.valid for one in checked) else 1)


@settings.command()
@FILE
@json_option
@click.pass_context
def apply(context: click.Context, file: Path, as_json: bool) -> None:
    """Put a settings file in force. Doing it again changes nothing.

    Running processes learn it within a second or so; turns that have begun go on with what they began with.

    \b
    Example:  insika settings apply settings.yaml
    """
    checked = _validated(file)
    refuse_faulty(context, checked, as_json=as_json)
    for loaded in [one.loaded for one in checked if one.loaded is not None]:
        changed = run(_apply(loaded))
        if as_json:
            print_validated(checked, as_json=True, changed=[loaded.revision()] if changed else [])
            return
        click.echo(f"{'changed' if changed else 'unchanged'}  settings, revision {loaded.revision()[:12]}")
    for one in checked:
        tell_warnings(one)


def _validated(file: Path) -> list[Validated[Settings]]:
    # The modules of INSIKA_TOOLS are imported only for settings that their tools could clash with.
    tools = cache(_tools_here)
    return validated(
        [file],
        load_settings_file,
        problems=lambda loaded: tools().problems(loaded) if loaded.http_tools else (),
        warnings=lambda loaded: [
            *_key_warnings(loaded),
            *(tools().unset_variables(loaded) if loaded.http_tools else ()),
        ],
    )


def _tools_here() -> ToolSet:
    environment = environment_here()
    return tool_set(environment, parts_here(environment))


def _key_warnings(loaded: Settings) -> list[Problem]:
    hosted = HostedProviders(os.environ)
    lacks = [(f"providers.{at}.key_variable", hosted.lack(models)) for at, models in enumerate(loaded.providers)]
    return [(path, why) for path, why in lacks if why]


async def _current() -> tuple[Revision | None, Settings]:
    async with open_store() as store:
        row = await store.current_settings()
    return row, Settings() if row is None else load_settings(dict(row.data), f"settings revision {row.revision[:12]}")


async def _apply(loaded: Settings) -> bool:
    async with open_store() as store:
        return await store.apply_settings(loaded.revision(), loaded.document(), OPERATOR)
