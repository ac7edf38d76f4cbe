"""Makes the adapter of an endpoint. Only what speaks its kind of API is imported for it, and a vendor's SDK by the
first request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from insika.ports import ModelProvider
from insika.providers.endpoint import Endpoint, Kind


class Adapter(ModelProvider, Protocol):
    """A provider with connections of its own."""

    async def aclose(self) -> None:
        """Close them. Requests under way break."""
        ...


MakeAdapter = Callable[[Endpoint], Adapter]


def adapter_for(endpoint: Endpoint) -> Adapter:
    """One that speaks the endpoint's kind of API. Nothing is connected yet."""
    match endpoint.kind:
        case Kind.ANTHROPIC:
            from insika.providers.anthropic.provider import AnthropicProvider  # noqa: PLC0415 - see above

            return AnthropicProvider(endpoint)
        case Kind.OPENAI:
            from insika.providers.openai.provider import OpenAIProvider  # noqa: PLC0415 - see above

            return OpenAIProvider(endpoint)
