"""`insika agents`: the profiles in the store, and files that may become them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from actors.cli.json_views import applied_by, revision_json
from actors.cli.known_agents import with_delegates
from actors.cli.known_providers import KnownProviders, Reached, providers_of
from actors.cli.known_tools import KnownTools
from actors.cli.lazy import Group
from actors.cli.options import json_option
from actors.cli.output import moment, on_one_line, print_json, print_table
from actors.cli.parts import models_of_hosts, parts_here
from actors.cli.refusals import NotFound
from actors.cli.running import environment_here, open_store, run
from actors.cli.validation import Validated, print_validated, refuse_faulty, tell_warnings, validated
from actors.cli.yaml_view import print_yaml
from actors.configuration import Configuration
from actors.environment import Environment
from actors.references import further_model_warnings, guard_warnings, key_warnings, model_problems, policy_warnings
from insika.agents.profile import Profile
from insika.agents.profile_schema import schema_text
from insika.config_files import load_profile_file
from insika.storage.rows import Revision

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.group(cls=Group)
def agents() -> None:
    """Agents: what each is, which tools it may call, and what bounds it.

    \b
    Example:  insika agents validate agents/*.yaml && insika agents apply agents/*.yaml
    """


@agents.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the agents in force.

    \b
    Example:  insika agents list --json
    """
    rows = run(_current())
    if as_json:
        print_json([{"id": row.name, "model": row.data.get("model"), **revision_json(row)} for row in rows])
        return
    print_table(
        ["agent", "model", "revision", "applied", "by"],
        [(row.name, str(row.data.get("model")), row.revision[:12], moment(row.at), applied_by(row)) for row in rows],
        whole=("agent", "revision", "applied"),
        empty="No agents. Write a profile, then: insika agents apply FILE",
    )


@agents.command()
@click.argument("id_", metavar="ID")
@json_option
def show(id_: str, as_json: bool) -> None:
    """Show one agent's profile, and where its model is reached.

    \b
    Example:  insika agents show store-support
    """
    row, reached = run(_one(id_, environment_here()))
    if as_json:
        provider = reached.as_json()
        print_json({"id": row.name, **revision_json(row), "provider": provider, "profile": dict(row.data)})
        return
    click.echo(f"# revision {row.revision[:12]}, applied {moment(row.at)} by {applied_by(row)}")
    if reached.told:
        click.echo(on_one_line(f"# model {row.data.get('model')}: {reached.told}"))
    print_yaml(dict(row.data))


@agents.command()
@FILES
@json_option
@click.pass_context
def validate(context: click.Context, files: Sequence[Path], as_json: bool) -> None:
    """Check profiles, naming every mistake by its path. Nothing is applied.

    A tool that does not exist here, among those of INSIKA_TOOLS or the sample tools, is warned of, and so is a policy
    of your own, and a model whose key is not in the environment. Providers and HTTP tools are those of the settings in
    force and of INSIKA_SETTINGS.

    \b
    Example:  insika agents validate agents/*.yaml
    """
    checked = _validated(files, environment_here())
    print_validated(checked, as_json=as_json)
    context.exit(0 if all(one.valid for one in checked) else 1)


@agents.command()
@FILES
@json_option
@click.pass_context
def apply(context: click.Context, files: Sequence[Path], as_json: bool) -> None:
    """Put profiles in force: all of them, or none when one has a mistake. Doing it again changes nothing.

    Running processes learn it within a second or so; turns that have begun go on with the profile they began with.

    \b
    Example:  insika agents apply store-support.yaml
    """
    environment = environment_here()
    checked = _validated(files, environment)
    refuse_faulty(context, checked, as_json=as_json)
    profiles = [one.loaded for one in checked if one.loaded is not None]
    changed = run(_apply(profiles, environment))
    if as_json:
        print_validated(checked, as_json=True, changed=[one.revision() for one in profiles if one.id in changed])
        return
    for one in checked:
        if one.loaded is not None:
            told = "changed" if one.id in changed else "unchanged"
            click.echo(f"{told}  {one.id}, revision {one.loaded.revision()[:12]}")
            tell_warnings(one)


@agents.command()
def schema() -> None:
    """Print the JSON Schema of a profile, for editors.

    With it an editor completes keys, says what they mean, and marks most mistakes while you type. `validate` sees all
    of them.

    \b
    Example:  insika agents schema > profile.schema.json
    """
    click.echo(schema_text(), nl=False)


def _validated(files: Sequence[Path], environment: Environment) -> Sequence[Validated[Profile]]:
    parts = parts_here(environment)
    models, known = parts.models, KnownProviders(environment, parts.models)
    tools = KnownTools(environment, parts)
    checked = validated(
        files,
        load_profile_file,
        problems=lambda profile: model_problems(profile, models, known.of(profile)),
        warnings=lambda profile: [
            *key_warnings(profile, models, known.of(profile)),
            *further_model_warnings(profile, models, known.of(profile)),
            *tools.warnings(profile),
            *policy_warnings(profile, parts.policies),
            *guard_warnings(profile),
        ],
    )
    return with_delegates(checked, environment)


async def _current() -> Sequence[Revision]:
    async with open_store() as store:
        return sorted(await store.current_profiles(), key=lambda row: row.name)


async def _one(id_: str, environment: Environment) -> tuple[Revision, Reached]:
    async with open_store(environment) as store:
        row = next((row for row in await store.current_profiles() if row.name == id_), None)
        given = providers_of(await store.current_settings())
    if row is None:
        raise NotFound(f"there is no agent {id_!r}; `insika agents list` shows those there are")
    return row, Reached.of(str(row.data.get("model")), models_of_hosts(), given)


async def _apply(profiles: Sequence[Profile], environment: Environment) -> list[str]:
    async with open_store(environment) as store:
        return await Configuration(store).apply_profiles(profiles, from_file=False)
