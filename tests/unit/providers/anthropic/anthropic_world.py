"""The adapter and the strict fake over real HTTP on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from insika.clock import Clock, ManualClock
from insika.errors import ProviderError
from insika.messages import user
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta, ThinkingDelta
from insika.providers.anthropic.provider import AnthropicProvider
from insika.providers.endpoint import Endpoint, Kind
from insika.providers.script import Script
from tests.unit.providers.anthropic.anthropic_talk import a_request
from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.vendors import AnthropicVendor, serving

HELLO = a_request(user("Hi"))
ORDER = a_request(user("Where is my order?"))


@dataclass
class World:
    vendor: AnthropicVendor
    provider: AnthropicProvider

    async def heard(self, request: ModelRequest = HELLO) -> list[ModelEvent]:
        return [event async for event in self.provider.stream(request)]

    async def finished(self, request: ModelRequest = HELLO) -> Finished:
        last = (await self.heard(request))[-1]
        assert isinstance(last, Finished)
        return last

    async def failed(self, request: ModelRequest = HELLO) -> tuple[list[ModelEvent], ProviderError]:
        """What came before the failure, and the failure."""
        found: list[ModelEvent] = []
        try:
            async for event in self.provider.stream(request):
                found.append(event)
        except ProviderError as error:
            assert not any(isinstance(event, Finished) for event in found)
            return found, error
        raise AssertionError("it did not fail")


@asynccontextmanager
async def a_world(script: Script = SCRIPT, clock: Clock | None = None) -> AsyncIterator[World]:
    async with serving(AnthropicVendor(script, cache_minimum=0)) as vendor:
        provider = AnthropicProvider(endpoint_of(vendor), clock or ManualClock())
        try:
            yield World(vendor, provider)
        finally:
            await provider.aclose()


def endpoint_of(vendor: AnthropicVendor, **fields: str) -> Endpoint:
    given = {"base_url": vendor.base_url, "key": vendor.key, **fields}
    return Endpoint("anthropic", Kind.ANTHROPIC, **given)


def shown(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thought(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ThinkingDelta))
