"""Which provider speaks for a model reference such as `offline/demo` or `anthropic/claude-sonnet-5-5`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

from insika.errors import InvalidConfiguration, ProviderFatal
from insika.model_endpoints import HostedModels
from insika.ports import ModelEvent, ModelProvider, ModelRequest
from insika.providers.hosted import HostedProviders, NoHostedProviders


class ModelCatalog:
    """The providers of one process, by the name that stands before the first slash of a model reference.

    `providers` are the process's own, and come before all others of their names; `hosted` are reached over the
    network. In each method `given` are the providers of the settings in force.
    """

    def __init__(self, providers: Mapping[str, ModelProvider], hosted: HostedProviders | None = None) -> None:
        self._providers = dict(providers)
        self.hosted = hosted or NoHostedProviders()

    def names(self, given: Sequence[HostedModels] = ()) -> tuple[str, ...]:
        """Of the providers that there are."""
        return tuple(dict.fromkeys([*self._providers, *self.hosted.names(given)]))

    def own(self, reference: str) -> ModelProvider | None:
        """The process's own provider of this model; None where it has none of that name."""
        return self._providers.get(reference.partition("/")[0])

    def endpoint(self, reference: str, given: Sequence[HostedModels] = ()) -> HostedModels | None:
        """Where this model is reached; None where it is not hosted, or unknown."""
        name = reference.partition("/")[0]
        return None if name in self._providers else self.hosted.find(name, given)

    def problem(self, reference: str, given: Sequence[HostedModels] = ()) -> str:
        """Why no process with these settings could speak to this model; "" when one could."""
        name, slash, model = reference.partition("/")
        if not (name and slash and model):
            return "must be provider/model, such as offline/demo"
        if name in self._providers or self.hosted.find(name, given) is not None:
            return ""
        known = self.names(given)
        there = "there is" if len(known) == 1 else "there are"
        return f"there is no provider {name!r} here; {there}: {', '.join(known) or 'none'}"

    def lack(self, reference: str, given: Sequence[HostedModels] = ()) -> str:
        """What this process lacks to speak to a model of a known provider, with the variable at fault; "" when it
        lacks nothing."""
        models = self.endpoint(reference, given)
        why = self.hosted.lack(models) if models is not None else ""
        return f"provider {reference.partition('/')[0]} cannot be asked from this process: {why}" if why else ""

    def resolve(self, reference: str, given: Sequence[HostedModels] = ()) -> tuple[ModelProvider, str]:
        """The provider and the model's name within it; the name may hold further slashes.

        Raises InvalidConfiguration for a reference that is not `provider/model`, one that names an unknown provider,
        and for a provider that this process lacks a key for."""
        if why := self.problem(reference, given) or self.lack(reference, given):
            raise InvalidConfiguration(f"model {reference!r}", [("model", why)])
        models = self.endpoint(reference, given)
        name, _, model = reference.partition("/")
        return (self._providers[name] if models is None else self.hosted.adapter(models)), model

    def speaker(self, given: Sequence[HostedModels] = ()) -> ModelProvider:
        """One provider for every model there is: whoever speaks for a request is found by its reference, when it is
        made."""
        return _Speaker(self, given)

    async def aclose(self) -> None:
        """Close the connections to hosted models."""
        await self.hosted.aclose()


class _Speaker:
    def __init__(self, catalog: ModelCatalog, given: Sequence[HostedModels]) -> None:
        self._catalog = catalog
        self._given = given

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Raises ProviderFatal for a model that nobody here can ask."""
        try:
            provider, _ = self._catalog.resolve(request.reference, self._given)
        except InvalidConfiguration as error:
            why = "; ".join(why for _, why in error.problems)
            raise ProviderFatal(f"{request.reference} cannot be asked: {why}", field="model") from error
        return provider.stream(request)
