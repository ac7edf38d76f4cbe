"""Settings as far as a command can know of them: those in force, and those of the file that processes apply when they
start. Whoever checks a profile may have no database at hand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from actors.cli.running import open_store, run
from actors.environment import Environment
from insika.config_files import load_settings_file
from insika.errors import InsikaError
from insika.settings import Settings, load_settings


def known_settings(environment: Environment) -> Sequence[Settings]:
    """Those in force first; a store that cannot be read, or whose settings this version cannot read, tells of none.
    Raises InvalidConfiguration when the file that the environment names cannot be read."""
    file = environment.settings
    of_file = (load_settings_file(file),) if file is not None else ()
    return (*run(_in_force(environment)), *of_file)


async def _in_force(environment: Environment) -> Sequence[Settings]:
    with suppress(InsikaError):
        async with open_store(environment) as store:
            row = await store.current_settings()
            return (load_settings(dict(row.data), ""),) if row is not None else ()
    return ()
