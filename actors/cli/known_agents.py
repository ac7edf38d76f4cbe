"""Which agents a profile may hand turns to, as far as a command can know: those that are checked with it, those of the
folder that processes apply when they start, and those in force. The store is asked only for a profile that names
another one. Whoever checks a profile may have no database at hand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from actors.cli.running import open_store, run
from actors.cli.validation import Validated
from actors.environment import Environment
from actors.references import delegate_warnings
from insika.agents.profile import Profile
from insika.config_files import load_profile_folder
from insika.errors import InsikaError


def with_delegates(checked: Sequence[Validated[Profile]], environment: Environment) -> Sequence[Validated[Profile]]:
    """The same, each with a warning for every agent that it hands turns to and that nobody knows."""
    known = {one.id for one in checked if one.id is not None}
    if any(_warnings(one, known) for one in checked):
        known.update(_elsewhere(environment))
    return [replace(one, warnings=(*one.warnings, *_warnings(one, known))) for one in checked]


def _warnings(one: Validated[Profile], known: set[str]) -> Sequence[tuple[str, str]]:
    return delegate_warnings(one.loaded, known) if one.loaded is not None else ()


def _elsewhere(environment: Environment) -> Sequence[str]:
    return (*run(_in_force(environment)), *_of_folder(environment))


def _of_folder(environment: Environment) -> Sequence[str]:
    if environment.agents_dir is not None:
        with suppress(InsikaError, OSError):
            return [profile.id for profile in load_profile_folder(environment.agents_dir)]
    return ()


async def _in_force(environment: Environment) -> Sequence[str]:
    with suppress(InsikaError):
        async with open_store(environment) as store:
            return [row.name for row in await store.current_profiles()]
    return ()
