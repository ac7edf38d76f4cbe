"""The tools of a process follow the settings in force, and a name means one of them."""

from __future__ import annotations

from typing import Any

from actors.environment import Environment
from actors.parts import Parts
from actors.samples.demo_agent import offline_models
from actors.tool_set import ToolSet, tool_set
from insika.settings import Settings, load_settings
from insika.tools.python_tools import tool
from insika.tools.registry import ToolRegistry


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool(name="Look")
def another() -> str:
    """Look otherwise."""
    return "seen"


@tool(name="sample")
def sample() -> str:
    """A sample."""
    return "only a sample"


def described(*names: str, **more: Any) -> Settings:
    tools = [{"name": name, "description": "d", "request": {"url": "https://a.example"}, **more} for name in names]
    return load_settings({"http_tools": tools}, "x")


def tools_of(*own: Any, variables: dict[str, str] | None = None) -> ToolSet:
    parts = Parts(offline_models(), ToolRegistry(own), samples=ToolRegistry([sample]), variables=variables or {})
    assert "hush" not in repr(parts)
    return tool_set(Environment(), parts)


def test_the_tools_of_the_settings_stand_beside_the_processs_own() -> None:
    tools = tools_of(look)
    assert tools.under(Settings()).names == ("look",)
    assert tools.under(described("order", "Order", "or_der")).names == ("Order", "look", "or_der", "order")
    assert tools.under(Settings()).names == ("look",)


def test_a_name_in_other_letters_is_not_taken() -> None:
    tools = tools_of(another)
    assert tools.problems(described("look")) == []
    assert tools.under(described("look")).names == ("Look", "look")


def test_the_same_settings_give_the_same_tools_and_others_give_others() -> None:
    tools = tools_of(look)
    settings = described("order", halt_when={"path": "$.done", "equals": 1})
    first = tools.under(settings)
    assert tools.under(settings) is first
    assert tools.under(described("order", halt_when={"path": "$.done", "equals": True})) is not first


def test_samples_make_way_for_any_other_tool() -> None:
    assert tools_of().under(Settings()).names == ("sample",)
    assert tools_of(look).under(Settings()).names == ("look",)
    assert tools_of().under(described("sample", "order")).names == ("order", "sample")
    assert tools_of().problems(described("sample")) == []


def test_a_name_that_is_taken_is_a_problem_that_names_both_places_and_the_process_keeps_its_own() -> None:
    tools = tools_of(look)
    ((path, why),) = tools.problems(described("order", "look", "Look"))
    assert path == "http_tools.1.name"
    assert "test_tool_set.look, " in why
    assert tools.under(described("look")).get("look") is look
    assert tools.under(described("LOOK", "Look")).names == ("LOOK", "Look", "look")


def test_a_variable_that_is_not_set_is_told_by_its_name() -> None:
    secret = {"secret_headers": {"Authorization": "Bearer %{env.A}", "X-B": "%{env.B}:%{env.A}"}}
    tools = tools_of(variables={"A": "hush", "B": " "})
    assert tools.unset_variables(described("order", **secret)) == [
        ("http_tools.0.secret_headers", "the environment variable B is not set here")
    ]
    assert tools.unset_variables(described("order")) == []
