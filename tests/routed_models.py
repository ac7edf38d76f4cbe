"""Models that know each other by name: some sort what people write, others answer. For tests of routing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from insika.ports import ModelEvent, ModelRequest
from insika.providers.offline import OfflineProvider
from insika.testing import Fail, Rule, Say, Script
from tests.actor_world import Gate, profile


class Models:
    """A provider of scripts by name. `requests` reached it, `gates` hold those for a model until they are opened."""

    def __init__(self, **scripts: Script) -> None:
        self._provider = OfflineProvider(scripts, self._before_chunk)
        self.requests: list[ModelRequest] = []
        self.gates: dict[str, Gate] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        async with aclosing(self._provider.stream(request)) as events:
            async for event in events:
                yield event

    def asked(self, model: str) -> int:
        return sum(1 for request in self.requests if request.model == model)

    async def _before_chunk(self, request: ModelRequest, chunk: int, /) -> None:
        if (gate := self.gates.get(request.model)) is not None:
            await gate()


def sorter(**routes: str) -> Script:
    """Says the route whose pattern is found in what was written; "dunno" where none is."""
    return Script(
        rules=[Rule([Say(name)], when=pattern) for name, pattern in routes.items()],
        afterwards=Say("dunno"),
    )


FAILING = Script(afterwards=Fail("the sorter is away"))

ROUTES: Mapping[str, Any] = {
    "shopping": "wants to browse",
    "order": {"description": "asks about an order", "delegate": "orders"},
    "human": {"description": "asks for a person", "stuck": True, "message": "A person will help you."},
    "default": "shopping",
    "model": "offline/sorter",
}


def front(**values: Any) -> dict[str, Any]:
    return profile(model="offline/front", instructions="You keep the door.", **{"routes": dict(ROUTES), **values})


def orders(**values: Any) -> dict[str, Any]:
    return profile(**{"id": "orders", "model": "offline/orders", "instructions": "You know orders.", **values})


def models(**more: Script) -> Models:
    """`front` and `orders` answer, `sorter` sorts by a word."""
    return Models(
        **{
            "sorter": sorter(order="order", human="person", shopping="book"),
            "front": Script(afterwards=Say("Look around.")),
            "orders": Script(afterwards=Say("It is on its way.")),
            **more,
        }
    )
