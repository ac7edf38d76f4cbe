"""The providers of hosted models: which there are, and the adapter of each, made when it is first asked for.

Two are there without settings, `anthropic` and `openai`; what the settings in force say of a name comes before that.
Keys are looked up in the variables that the process was started with, and are nowhere else: no repr, error or log has
one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from insika.errors import InvalidConfiguration
from insika.model_endpoints import Dialect, HostedModels, Kind, address_of
from insika.providers.adapters import Adapter, MakeAdapter, adapter_for
from insika.providers.endpoint import Endpoint

_KEY = re.compile(r"[!#-&(-~]+")
"""Printable ASCII without spaces and quotation marks: what may stand in a header, and what people set by mistake."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A provider that needs no settings, and the variables that its own SDK goes by, too."""

    name: str
    kind: Kind
    key_variable: str
    url_variable: str


BUILT_IN = (
    BuiltIn("anthropic", Kind.ANTHROPIC, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    BuiltIn("openai", Kind.OPENAI, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
)


class HostedProviders:
    """`variables`: the environment of this process; what is in it when this is made counts. In each method `given` are
    the providers of the settings in force. Use it on one event loop, and close it there."""

    def __init__(self, variables: Mapping[str, str], make: MakeAdapter = adapter_for) -> None:
        self._variables = {name: value.strip() for name, value in variables.items()}
        self._make = make
        self._made: dict[Endpoint, Adapter] = {}
        self._faults: dict[str, str] = {}
        self._built_in = {one.name: self._read(one) for one in BUILT_IN}

    def names(self, given: Sequence[HostedModels] = ()) -> tuple[str, ...]:
        """Of the providers that there are, built in or given."""
        return tuple(dict.fromkeys([*self._built_in, *(models.name for models in given)]))

    def find(self, name: str, given: Sequence[HostedModels] = ()) -> HostedModels | None:
        """None: there is no such provider."""
        return next((models for models in given if models.name == name), self._built_in.get(name))

    def lack(self, models: HostedModels) -> str:
        """Why this process cannot speak to `models`, with the variable at fault; "" when nothing is known to be wrong.
        Nobody is asked whether a key is valid."""
        if models is self._built_in.get(models.name) and models.name in self._faults:
            return self._faults[models.name]
        if models.key_variable is None:
            return ""
        key = self._variables.get(models.key_variable, "")
        if not key:
            return f"{models.key_variable} is not set"
        if not _KEY.fullmatch(key):
            return f"{models.key_variable} holds what no key has (a space, a quotation mark or a line end)"
        return ""

    def adapter(self, models: HostedModels) -> Adapter:
        """The one of this endpoint, kept while the process lives: a turn may be using it when the settings have moved
        on. Raises InvalidConfiguration when something is lacking, or it cannot be made."""
        if why := self.lack(models):
            raise _invalid(models, why)
        key = self._variables.get(models.key_variable or "", "")
        endpoint = Endpoint(models.name, models.kind, models.address, key, models.speaks or Dialect.COMPATIBLE)
        if endpoint not in self._made:
            try:
                self._made[endpoint] = self._make(endpoint)
            except Exception as error:  # whatever a vendor's SDK raises; its words may hold the key
                raise _invalid(models, f"it cannot be used: {type(error).__name__} was raised for it") from None
        return self._made[endpoint]

    async def aclose(self) -> None:
        """Close what was made. What is asked for after that is made anew."""
        made, self._made = self._made, {}
        for endpoint, adapter in made.items():
            try:
                await adapter.aclose()
            except Exception as error:  # the process is ending, and nothing that counts depends on it
                log = structlog.get_logger("insika.providers")
                log.warning("provider not closed", provider=endpoint.name, error=type(error).__name__)

    def _read(self, built_in: BuiltIn) -> HostedModels:
        url: str | None = self._variables.get(built_in.url_variable) or None
        if url is not None:
            try:
                url = address_of(built_in.kind, url)
            except ValueError as error:
                self._faults[built_in.name], url = f"{built_in.url_variable} {error}", None
        return HostedModels(name=built_in.name, kind=built_in.kind, base_url=url, key_variable=built_in.key_variable)


class NoHostedProviders(HostedProviders):
    """There are none: for whoever brings providers of their own, and no keys."""

    def __init__(self) -> None:
        super().__init__({})

    def names(self, given: Sequence[HostedModels] = ()) -> tuple[str, ...]:
        return ()

    def find(self, name: str, given: Sequence[HostedModels] = ()) -> HostedModels | None:
        return None


def _invalid(models: HostedModels, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(f"provider {models.name}", [("model", f"provider {models.name}: {why}")])
