"""Which providers the settings name, as far as a command can know: those in force, and those of the file that processes
apply when they start. Whoever checks a profile may have no database at hand, and needs none for a model that comes with
this version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from actors.cli.known_settings import known_settings
from actors.environment import Environment
from insika.agents.profile import Profile
from insika.errors import InvalidConfiguration
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
        classifier = profile.routes.model if profile.routes is not None else None
        if all(self._models.own(model) is not None for model in (profile.model, classifier) if model is not None):
            return ()
        if self._known is None:
            settings = known_settings(self._environment)
            self._known = tuple(chain.from_iterable(each.providers for each in settings))
        return self._known


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
