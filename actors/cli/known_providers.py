"""Which providers the settings name, as far as a command can know: those in force, and those of the file that processes
apply when they start. Whoever checks a profile may have no database at hand, and needs none for a model that comes with
this version."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from actors.cli.running import open_store, run
from actors.environment import Environment
from insika.agents.profile import Profile
from insika.config_files import load_settings_file
from insika.errors import InsikaError, InvalidConfiguration
from insika.model_endpoints import HostedModels
from insika.providers.catalog import ModelCatalog
from insika.settings import Settings, load_settings
from insika.storage.rows import Revision


class KnownProviders:
    """Raises InvalidConfiguration when the settings file of the environment cannot be read."""

    def __init__(self, environment: Environment, models: ModelCatalog) -> None:
        self._environment = environment
        self._models = models
        self._known: Sequence[HostedModels] | None = None

    def of(self, profile: Profile) -> Sequence[HostedModels]:
        """Those that may matter to this profile. A store that cannot be read tells of none."""
        if self._models.own(profile.model) is not None:
            return ()
        if self._known is None:
            file = self._environment.settings
            of_file = load_settings_file(file).providers if file is not None else ()
            self._known = (*run(_in_force(self._environment)), *of_file)
        return self._known


async def _in_force(environment: Environment) -> Sequence[HostedModels]:
    with suppress(InsikaError):
        async with open_store(environment) as store:
            return providers_of(await store.current_settings())
    return ()


def providers_of(settings: Revision | None) -> Sequence[HostedModels]:
    """Those of the settings in force; none, where this version cannot read them."""
    try:
        return (Settings() if settings is None else load_settings(dict(settings.data), "")).providers
    except InvalidConfiguration:
        return ()


@dataclass(frozen=True, slots=True)
class Reached:
    """How an agent's model is reached from here. `models` None: without a network, or not at all. `why_not`: "" when
    nothing is known to be wrong."""

    models: HostedModels | None
    why_not: str

    @classmethod
    def of(cls, reference: str, catalog: ModelCatalog, given: Sequence[HostedModels]) -> Reached:
        why_not = catalog.problem(reference, given) or catalog.lack(reference, given)
        return cls(catalog.endpoint(reference, given), why_not)

    def as_json(self) -> dict[str, str | None] | None:
        if self.models is None:
            return None
        return {
            "name": self.models.name,
            "kind": self.models.kind,
            "base_url": self.models.address,
            "key_variable": self.models.key_variable,
            "dialect": self.models.speaks,
            "problem": self.why_not or None,
        }

    @property
    def told(self) -> str:
        """In a person's words; "" where there is nothing to tell."""
        if self.models is None:
            return self.why_not
        key = f"key from {self.models.key_variable}" if self.models.key_variable else "without a key"
        return f"{self.models.kind} at {self.models.address}, {key}" + (f"; {self.why_not}" if self.why_not else "")
