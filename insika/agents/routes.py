"""The routes between which an agent's turns are told apart, as a profile says them.

Written as one mapping in which two words are reserved: `default` names the route of whatever fits none, `model` the
model that tells them apart. Every other key is a route: its description, or what is to be done about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from insika.agents.names import Id, ModelRef
from insika.documents import Path
from insika.parsing import Document, did_you_mean, shown

RESERVED = ("default", "model")
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _is_route_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a route's name must have 1 to 64 letters, digits, dots, hyphens and underscores")
    return name


RouteName = Annotated[str, AfterValidator(_is_route_name)]


class Route(Document):
    """`description` tells the classifier what belongs here. `delegate`: the agent that takes the turn over. `stuck`:
    the turn ends here, and `message` (else the description) is its answer. Neither: the route is only a label."""

    description: _Words
    delegate: Id | None = None
    stuck: bool = False
    message: _Words | None = None

    @model_validator(mode="after")
    def _does_one_thing(self) -> Self:
        if self.stuck and self.delegate is not None:
            raise ValueError("a route either delegates or is stuck, not both")
        if self.message is not None and not self.stuck:
            raise ValueError("a message is said only by a route that is stuck: true")
        return self

    @property
    def lead_in(self) -> str:
        """What a stuck turn answers."""
        return self.message or self.description


class Routes(Document):
    """`routes` by name, in the order in which they were written: the classifier's prompt is made of them in it."""

    routes: Annotated[dict[RouteName, Route], Field(max_length=100)]
    default: str
    model: ModelRef | None = None

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, written: Any) -> Any:
        if not isinstance(written, Mapping):
            return written
        routes = {
            name: {"description": route} if isinstance(route, str) else route
            for name, route in written.items()
            if name not in RESERVED
        }
        return {"routes": routes, **{name: written[name] for name in RESERVED if name in written}}

    @field_validator("routes")
    @classmethod
    def _some(cls, routes: dict[str, Route]) -> dict[str, Route]:
        if not routes:
            raise ValueError(f"must hold at least one route beside {' and '.join(RESERVED)}, which are reserved")
        return routes

    @field_validator("default")
    @classmethod
    def _is_a_route(cls, default: str, info: ValidationInfo) -> str:
        routes = info.data.get("routes")  # those that are wrong themselves have their own errors
        if routes is not None and default not in routes:
            raise ValueError(f"must name one of the routes, got {shown(default)}{did_you_mean(default, routes)}")
        return default

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        written: dict[str, Any] = {
            name: route.model_dump(mode="json", exclude_unset=True) for name, route in self.routes.items()
        }
        written["default"] = self.default
        if self.model is not None:
            written["model"] = self.model
        return written


def as_written(path: Path) -> Path:
    """Where the mapping holds what stands at `path` of a `Routes`: in it, routes stand beside the reserved words."""
    return path[1:] if path[:1] == ("routes",) else path
