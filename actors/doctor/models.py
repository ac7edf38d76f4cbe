"""Whether the hosted models that agents speak with can be asked from here: each provider's key, and its address.
Whether a key is valid only its vendor knows, and nobody is asked: that would cost money.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from actors.doctor.finding import Finding, fail, ok, warn
from insika.agents.profile import Profile
from insika.model_endpoints import HostedModels
from insika.providers.catalog import ModelCatalog

ABOUT = "models"
_NAMED = 3
"""Agents that are named; of more, only the number is told."""


@dataclass(frozen=True, slots=True)
class Used:
    """A provider, the agents that speak with it, and what is lacking here to ask it ("" for nothing)."""

    provider: HostedModels
    agents: tuple[str, ...]
    lack: str

    @property
    def host(self) -> str:
        return urlsplit(self.provider.address).hostname or ""

    @property
    def by(self) -> str:
        rest = len(self.agents) - _NAMED
        named = ", ".join(self.agents[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
        return f"{'agents' if len(self.agents) > 1 else 'agent'} {named}"


def used(profiles: Sequence[Profile], models: ModelCatalog, given: Sequence[HostedModels]) -> Sequence[Used]:
    """Each provider that some agent speaks with over the network. `given`: the providers of the settings."""
    agents: dict[str, list[str]] = {}
    found: dict[str, HostedModels] = {}
    for profile in profiles:
        provider = models.endpoint(profile.model, given)
        if provider is not None:
            found[provider.name] = provider
            agents.setdefault(provider.name, []).append(profile.id)
    return [Used(one, tuple(sorted(agents[name])), models.hosted.lack(one)) for name, one in sorted(found.items())]


def judged(providers: Sequence[Used], resolved: Mapping[str, Sequence[str] | str]) -> Iterator[Finding]:
    """`resolved`: by host, its addresses, or why there are none."""
    for one in providers:
        yield _provider(one, resolved.get(one.host, "it was not looked up in time"))
        if not one.lack and one.provider.key_variable is not None and _is_in_the_open(one.provider):
            what = f"The key of provider {one.provider.name} goes to {one.host} unencrypted."
            yield warn(ABOUT, what, "Give it a base_url that begins with https://.")


def _provider(one: Used, addresses: Sequence[str] | str) -> Finding:
    name, key = one.provider.name, one.provider.key_variable
    if one.lack:
        what = f"Provider {name}, wanted by {one.by}, cannot be asked from here: {one.lack}."
        return fail(ABOUT, what, "Mend that in the environment of each worker, and start them again.")
    if isinstance(addresses, str):
        what = f"The host of provider {name}, {one.host}, cannot be found from here: {addresses}."
        return warn(ABOUT, what, "Check its base_url, and the DNS of the machines that run workers.")
    return ok(
        ABOUT, f"Provider {name} is at {one.host}, its key in {key}." if key else f"Provider {name} is at {one.host}."
    )


def _is_in_the_open(provider: HostedModels) -> bool:
    """Plain HTTP to a name of the public DNS or a public address; a name without a dot is one of a private network."""
    parts = urlsplit(provider.address)
    host = parts.hostname or ""
    if parts.scheme != "http":
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith((".localhost", ".local", ".internal"))
