"""Which provider speaks for a model reference such as `offline/demo`."""

from __future__ import annotations

from collections.abc import Mapping

from insika.errors import InvalidConfiguration
from insika.ports import ModelProvider


class ModelCatalog:
    """The providers of one process, by the name that stands before the first slash of a model reference."""

    def __init__(self, providers: Mapping[str, ModelProvider]) -> None:
        self._providers = dict(providers)

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(self._providers)

    def resolve(self, reference: str) -> tuple[ModelProvider, str]:
        """The provider and the model's name within it; the name may hold further slashes.

        Raises InvalidConfiguration for a reference that is not `provider/model` or names an unknown provider.
        """
        provider, slash, model = reference.partition("/")
        if not (provider and slash and model):
            raise _invalid(reference, "must be provider/model, such as offline/demo")
        if provider not in self._providers:
            there = "there is" if len(self._providers) == 1 else "there are"
            known = ", ".join(self._providers) or "none"
            raise _invalid(reference, f"there is no provider {provider!r} in this version; {there}: {known}")
        return self._providers[provider], model


def _invalid(reference: str, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(f"model {reference!r}", [("model", why)])
