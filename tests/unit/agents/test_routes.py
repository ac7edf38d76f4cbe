from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from insika.agents.routes import Routes


def read(document: object) -> Routes:
    return Routes.model_validate_json(json.dumps(document))


def test_a_route_is_its_description_or_what_is_done_about_it() -> None:
    written = {
        "shopping": "wants to browse",
        "order": {"description": "asks about an order", "delegate": "order-agent"},
        "human": {"description": "asks for a person", "stuck": True, "message": "A person will help you."},
        "lost": {"description": "is lost", "stuck": True},
        "default": "shopping",
        "model": "openai/gpt-4o-mini",
    }
    routes = read(written)
    assert list(routes.routes) == ["shopping", "order", "human", "lost"]
    assert routes.routes["order"].delegate == "order-agent"
    assert routes.routes["human"].lead_in == "A person will help you."
    assert routes.routes["lost"].lead_in == "is lost"
    assert (routes.default, routes.model) == ("shopping", "openai/gpt-4o-mini")
    assert read(routes.model_dump(mode="json")) == routes


@pytest.mark.parametrize(
    "document",
    [
        {"shopping": "x"},
        {"shopping": "x", "default": "other"},
        {"default": "default"},
        {"default": "model", "model": "a/b"},
        {"a": {"description": "x", "stuck": True, "delegate": "b"}, "default": "a"},
        {"a": {"description": "x", "message": "hello"}, "default": "a"},
        {"a": {"description": " "}, "default": "a"},
        {"a": {"delegate": "b"}, "default": "a"},
        {"a b": "x", "default": "a b"},
        {"a": "x", "default": "a", "model": "gpt"},
        {"a": 5, "default": "a"},
        [],
    ],
)
def test_what_is_no_route_is_refused(document: object) -> None:
    with pytest.raises(ValidationError):
        read(document)
