"""HTTP tools as the settings hold them: what is read, what is refused and where, and what is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from insika.errors import InvalidConfiguration
from insika.http_tools.checks import CONTEXT_NAMES
from insika.http_tools.description import HttpTool
from insika.settings import Settings, load_settings
from insika.tools.tool import NAME_PATTERN, ToolContext

LOOKUP: dict[str, Any] = {
    "name": "order_lookup",
    "description": "Look an order up.",
    "parameters": {
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "note": {"type": "string"}},
        "required": ["order_id"],
    },
    "request": {"url": "https://shop.example/orders/%{arguments.order_id}"},
}


def loaded(**changes: Any) -> HttpTool:
    return load_settings({"http_tools": [{**LOOKUP, **changes}]}, "x").http_tools[0]


def problems(*tools: dict[str, Any]) -> dict[str, str]:
    """By path below `http_tools`."""
    with pytest.raises(InvalidConfiguration) as caught:
        load_settings({"http_tools": list(tools)}, "settings.yaml")
    return {path.removeprefix("http_tools."): why for path, why in caught.value.problems}


def request(**changes: Any) -> dict[str, Any]:
    return {**LOOKUP, "request": {"url": "https://shop.example/", **changes}}


def test_a_tool_has_sensible_defaults() -> None:
    tool = loaded()
    assert (tool.request.method, tool.request.timeout, tool.response.max_bytes) == ("GET", None, 256 * 1024)
    assert (tool.idempotent, tool.repeatable, tool.group, tool.halt_when) == (False, False, None, ())
    bare = {"name": "ping", "description": "Ping.", "request": {"url": "https://a.example"}}
    assert load_settings({"http_tools": [bare]}, "x").http_tools[0].parameters == {"type": "object"}


@pytest.mark.parametrize(
    ("method", "said", "effects"),
    [
        ("GET", {}, False),
        ("HEAD", {}, False),
        ("POST", {}, True),
        ("PUT", {}, True),
        ("PATCH", {}, True),
        ("DELETE", {}, True),
        ("POST", {"side_effect": False}, False),
        ("GET", {"side_effect": True}, True),
    ],
)
def test_what_does_more_than_read_changes_the_world_unless_it_says_otherwise(
    method: str, said: dict[str, bool], effects: bool
) -> None:
    assert loaded(request={**LOOKUP["request"], "method": method}, **said).changes_the_world is effects


def test_one_condition_may_stand_without_a_list() -> None:
    one = {"path": "$.status", "equals": None, "say": "%{result.text}"}
    assert loaded(halt_when=one).halt_when == loaded(halt_when=[one]).halt_when
    assert loaded(halt_when={"status": 404}).halt_when[0].status == (404,)
    assert loaded(halt_when=[{"status": [404, 410]}]).halt_when[0].status == (404, 410)


def test_the_stored_document_makes_the_same_settings_again() -> None:
    settings = load_settings(
        {
            "http_tools": [
                {
                    **LOOKUP,
                    "request": {
                        "method": "POST",
                        "url": "https://shop.example/orders/%{arguments.order_id}?key=k3y",
                        "query": {"lang": "de", "page": 2},
                        "body": {"note": "%{arguments.note}", "items": [1, None, "%{context.session}"]},
                        "timeout": 5,
                    },
                    "halt_when": {"path": "$.done", "equals": None},
                    "secret_headers": {"Authorization": "Bearer %{env.SHOP_TOKEN}"},
                }
            ]
        },
        "x",
    )
    again = load_settings(json.loads(json.dumps(settings.document())), "y")
    assert again == settings
    assert again.revision() == settings.revision()
    assert again.http_tools[0].halt_when[0].compares


def test_what_is_shown_names_variables_and_hides_the_query_of_urls() -> None:
    tool = loaded(
        request={"url": "https://shop.example/o?key=k3y", "method": "POST"},
        secret_headers={"Authorization": "Bearer %{env.SHOP_TOKEN}"},
    )
    shown = Settings(http_tools=(tool,)).redacted()["http_tools"][0]
    assert shown["request"]["url"] == "https://shop.example/o?***"
    assert shown["secret_headers"] == {"Authorization": "Bearer %{env.SHOP_TOKEN}"}
    assert shown["side_effect"] is True


def test_a_name_means_one_tool_letter_for_letter() -> None:
    names = ["lookup", "Lookup", "look_up", "look-up", "LOOKUP"]
    tools = load_settings({"http_tools": [{**LOOKUP, "name": name} for name in names]}, "x").http_tools
    assert [tool.name for tool in tools] == names
    assert problems(LOOKUP, {**LOOKUP, "name": "other"}, LOOKUP) == {
        "2.name": "is the name of http_tools.0 already; rename one of them"
    }


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "ä", "a\n"])
def test_a_name_that_vendors_refuse_is_refused(name: str) -> None:
    assert not NAME_PATTERN.fullmatch(name)
    assert list(problems({**LOOKUP, "name": name})) == ["0.name"]


def test_the_context_that_may_be_told_is_what_a_call_knows() -> None:
    context = ToolContext("t", "s", "a", "turn", "call")
    assert all(isinstance(getattr(context, name), str) for name in CONTEXT_NAMES)


@pytest.mark.parametrize(
    ("tool", "path", "why"),
    [
        (request(url="ftp://shop.example/"), "request.url", "begins with https"),
        (request(url="shop.example"), "request.url", "begins with https"),
        (request(url="%{arguments.order_id}"), "request.url", "begins with https"),
        (request(url="https://%{arguments.order_id}/"), "request.url", "its host as it is"),
        (request(url="https://shop.example%{arguments.order_id}/"), "request.url", "its host as it is"),
        (request(url="https://shop.example:%{arguments.order_id}/"), "request.url", "its host as it is"),
        (request(url="https://%{arguments.order_id}@shop.example/"), "request.url", "its host as it is"),
        (request(url="https://me:pw@shop.example/"), "request.url", "no user or password"),
        (request(url="https://shop.example/#a"), "request.url", "before the #"),
        (request(url="https:///a"), "request.url", "with a host"),
        (request(url="https://shop.example/a b"), "request.url", "with a host"),
        (request(url="https://shop.example/a\\b"), "request.url", "backslash"),
        (request(url="https://shop.example/../a"), "request.url", ". or .."),
        (request(url="https://shop.example/%2e%2E/a"), "request.url", ". or .."),
        (request(url="https://shop.example/%{arguments.note}"), "request.url", "required, or give it a default"),
        (request(url="https://shop.example/%{arguments.ordr_id}"), "request.url", "did you mean order_id"),
        (request(url="https://shop.example/%{arguments}"), "request.url", "must name an argument"),
        (request(url="https://shop.example/%{oder}"), "request.url", "not known here"),
        (request(url="https://shop.example/%{a b}"), "request.url", "no placeholder"),
        (request(url="https://shop.example/%{context.secret}"), "request.url", "knows tenant, session"),
        (request(url="https://shop.example/%{context}"), "request.url", "knows tenant, session"),
        (request(url="https://shop.example/?k=%{env.KEY}"), "request.url", "secret_headers, and nowhere else"),
        (request(query={"k": "%{env.KEY}"}), "request.query.k", "secret_headers, and nowhere else"),
        (request(query={"k": None}), "request.query.k", "a text, a number"),
        (request(headers={"X-K": "%{env.KEY}"}), "request.headers.X-K", "secret_headers, and nowhere else"),
        (request(headers={"Authorization": "Bearer s3cret"}), "request.headers.Authorization", "secret_headers"),
        (request(headers={"cookie": "s3cret"}), "request.headers.cookie", "secret_headers"),
        (request(headers={"Host": "a.example"}), "request.headers.Host", "not a tool's to set"),
        (request(headers={"Content-Length": "1"}), "request.headers.Content-Length", "not a tool's to set"),
        (request(headers={"X:Y": "1"}), "request.headers.X:Y", "not the name of a header"),
        (request(headers={"X-A": "a\r\nX-B: b"}), "request.headers.X-A", "no line break"),
        (request(headers={"X-A": "1", "x-a": "2"}), "request.headers.x-a", "is given already"),
        (request(body={}), "request.body", "sends none"),
        (request(method="HEAD", body="x"), "request.body", "a HEAD sends none"),
        (request(method="POST", body={"a": ["%{env.KEY}"]}), "request.body.a.0", "nowhere else"),
        (request(method="POST", body={"%{arguments.note}": 1}), "request.body.%{arguments.note}", "in its name"),
        (request(method="POST", body={"a": "b %{arguments}"}), "request.body.a", "must name an argument"),
        (request(method="TRACE"), "request.method", "must be one of"),
        (request(timeout=0), "request.timeout", "greater than 0"),
        ({**LOOKUP, "description": ""}, "description", "not be empty"),
        ({**LOOKUP, "group": ""}, "group", "not be empty"),
        ({**LOOKUP, "parameters": {"type": "objekt"}}, "parameters.type", "must be one of"),
        ({**LOOKUP, "parameters": None}, "parameters", "must be a mapping"),
        ({**LOOKUP, "response": {"extract": "order"}}, "response.extract", "JSON path"),
        ({**LOOKUP, "response": {"max_bytes": 2_000_000}}, "response.max_bytes", "at most 1048576"),
        ({**LOOKUP, "halt_when": [{"say": "x"}]}, "halt_when.0", "must say when"),
        ({**LOOKUP, "halt_when": [{"status": 200, "equals": 1}]}, "halt_when.0", "by path"),
        ({**LOOKUP, "halt_when": [{"path": "$.a", "equals": 1, "exists": True}]}, "halt_when.0", "not both"),
        ({**LOOKUP, "halt_when": [{"status": 99}]}, "halt_when.0.status.0", "at least 200"),
        ({**LOOKUP, "halt_when": [{"path": "a"}]}, "halt_when.0.path", "JSON path"),
        ({**LOOKUP, "halt_when": {"status": 200, "say": "%{arguments.note}"}}, "halt_when.say", "%{result.NAME}"),
        ({**LOOKUP, "secret_headers": {"X-K": "s3cret"}}, "secret_headers.X-K", "from a variable"),
        ({**LOOKUP, "secret_headers": {"X-K": "%{env}"}}, "secret_headers.X-K", "name a variable"),
        ({**LOOKUP, "secret_headers": {"X-K": "%{env.a-b}"}}, "secret_headers.X-K", "name a variable"),
        ({**LOOKUP, "secret_headers": {"X-K": "%{env.INSIKA_API_TOKEN}"}}, "secret_headers.X-K", "not sent"),
        ({**LOOKUP, "secret_headers": {"X-K": "%{arguments.note}"}}, "secret_headers.X-K", "use %{env.NAME}"),
        ({**LOOKUP, "secret_headers": {"Host": "%{env.K}"}}, "secret_headers.Host", "not a tool's to set"),
        ({**LOOKUP, "halt_wen": []}, "halt_wen", "did you mean halt_when"),
        ({**LOOKUP, "side_effect": "yes"}, "side_effect", "true or false"),
    ],
)
def test_a_mistake_is_told_at_its_path_and_shows_no_secret(tool: dict[str, Any], path: str, why: str) -> None:
    found = problems(tool)
    assert list(found) == [f"0.{path}"]
    assert "s3cret" not in str(found)
    assert why in found[f"0.{path}"]
