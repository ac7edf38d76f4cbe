"""The request that a description and a call make: what a model writes stays where it was put."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from insika.http_tools.description import Request
from insika.tools.egress import EgressGuard, Target
from insika.tools.http.request import Outgoing, RequestTemplate
from insika.tools.tool import ToolContext, ToolError

CONTEXT = ToolContext("acme", "s 1", "shop", "turn-1", "call-1")
OPEN = EgressGuard(allow_http=True, allow_private=True)


def made(request: dict[str, Any], *, context: ToolContext = CONTEXT, **arguments: Any) -> Outgoing:
    template = RequestTemplate(Request.model_validate_json(json.dumps(request)))
    assert list(template.problems(arguments)) == []
    return template.filled(arguments, context, {})


def refused(request: dict[str, Any], **arguments: Any) -> dict[str, str]:
    return dict(RequestTemplate(Request.model_validate_json(json.dumps(request))).problems(arguments))


def judged(url: str) -> URL:
    target = OPEN.check_url(url)
    assert isinstance(target, Target)
    return target.url


PATH = {"url": "https://shop.example/orders/%{arguments.id}/lines"}


@given(st.text(min_size=1))
def test_an_argument_is_one_segment_of_a_path_or_is_refused(value: str) -> None:
    if refused(PATH, id=value):
        return
    url = judged(made(PATH, id=value).url)
    assert (url.scheme, url.host, url.query_string, url.fragment) == ("https", "shop.example", "", "")
    empty, orders, segment, lines = url.raw_path.split("/")
    assert (empty, orders, unquote(segment), lines) == ("", "orders", value, "lines")


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        ".",
        "..",
        "...",
        "a/../b",
        "../..",
        "..\\..",
        "%2e%2e",
        "%2E.",
        "a%2f..%2fb",
        "a%5c..",
        "a\nb",
        "\x7f",
        "\0",
    ],
)
def test_what_a_server_could_take_for_another_path_is_refused_by_name(value: str) -> None:
    assert list(refused(PATH, id=value)) == ["id"]


@pytest.mark.parametrize(
    "value", ["a/b", "a.b", ".env", "ä", "a b", "50%", "a?b#c", "a:b@c", "日本", "a+b&c=d", "%2ea"]
)
def test_what_is_harmless_goes_through_as_it_is(value: str) -> None:
    assert unquote(judged(made(PATH, id=value).url).raw_path.split("/")[2]) == value


def test_null_and_absence_are_refused_in_a_path() -> None:
    assert list(refused(PATH)) == ["id"]
    assert list(refused(PATH, id=None)) == ["id"]
    assert judged(made(PATH, id=7).url).raw_path == "/orders/7/lines"


def test_the_turns_own_context_is_held_to_the_same_rules() -> None:
    request = {"url": "https://shop.example/s/%{context.session}"}
    assert made(request).url == "https://shop.example/s/s%201"
    with pytest.raises(ToolError, match=r"context\.session"):
        made(request, context=ToolContext("", "..", "shop", "t", "c"))


@given(st.text(), st.text())
def test_an_argument_is_one_value_of_a_query(one: str, other: str) -> None:
    request = {
        "url": "https://shop.example/?first=%{arguments.one}",
        "query": {"sec ond": "%{arguments.other}", "third": "<%{arguments.one}>", "n": 3, "yes": True},
    }
    url = judged(made(request, one=one, other=other).url)
    assert list(url.query.items()) == [
        ("first", one),
        ("sec ond", other),
        ("third", f"<{one}>"),
        ("n", "3"),
        ("yes", "true"),
    ]
    assert (url.host, url.fragment) == ("shop.example", "")


def test_a_list_in_a_query_is_several_values_and_what_is_absent_is_none() -> None:
    request = {"url": "https://shop.example", "query": {"t": "%{arguments.tags}", "x": "a%{arguments.x}", "k": "v"}}
    assert made(request, tags=["a", 1, None]).url == "https://shop.example?t=a&t=1&k=v"
    assert made(request).url == "https://shop.example?k=v"


def test_a_field_that_is_all_placeholder_keeps_its_type() -> None:
    request = {
        "method": "POST",
        "url": "https://shop.example",
        "body": {
            "n": "%{arguments.n}",
            "list": ["%{arguments.items}", 1, None, "%{arguments.absent}"],
            "text": "n is %{arguments.n}, %{arguments.on}",
            "session": "%{context.session}",
            "absent": "%{arguments.absent}",
            "partly": "x %{arguments.absent}",
            "null": "%{arguments.nothing}",
            "all": "%{arguments}",
            "fixed": {"a": 1.5},
        },
    }
    arguments = {"n": 3, "items": [{"a": True}], "on": False, "nothing": None}
    sent = made(request, **arguments)
    assert sent.body is not None
    assert json.loads(sent.body) == {
        "n": 3,
        "list": [[{"a": True}], 1, None],
        "text": "n is 3, false",
        "session": "s 1",
        "null": None,
        "all": arguments,
        "fixed": {"a": 1.5},
    }
    assert sent.headers["Content-Type"] == "application/json"


def test_what_looks_like_a_placeholder_in_an_argument_is_text() -> None:
    request = {"method": "POST", "url": "https://shop.example", "body": {"a": "%{arguments.a} %{arguments.b}"}}
    sent = made(request, a="%{context.session}", b="%{arguments.a}")
    assert json.loads(sent.body or b"") == {"a": "%{context.session} %{arguments.a}"}


def test_without_a_body_none_is_announced() -> None:
    sent = made({"method": "DELETE", "url": "https://shop.example"})
    assert (sent.body, "Content-Type" in sent.headers) == (None, False)
    sent = made({"method": "POST", "url": "https://shop.example", "body": "%{arguments.absent}"})
    assert (sent.body, "Content-Type" in sent.headers) == (None, False)


HEADER = {"url": "https://shop.example", "headers": {"X-Note": "%{arguments.note}", "accept": "text/csv"}}


def test_headers_are_filled_and_come_before_our_own() -> None:
    headers = made(HEADER, note="für Ann").headers
    assert headers["X-Note"] == "für Ann"
    assert [name for name in headers if name.lower() == "accept"] == ["accept"]
    assert "X-Note" not in made(HEADER).headers


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "a\rb", "\0", ["a\x01"], {"a\n": 1}])
def test_a_line_break_cannot_enter_a_header(value: Any) -> None:
    if isinstance(value, list | dict):  # JSON writes it as an escape
        assert "\n" not in made(HEADER, note=value).headers["X-Note"]
        return
    assert list(refused(HEADER, note=value)) == ["note"]


def test_the_idempotency_key_is_the_calls_own() -> None:
    request = {
        "method": "POST",
        "url": "https://a.example",
        "headers": {"Idempotency-Key": "%{context.idempotency_key}"},
    }
    assert made(request).headers["Idempotency-Key"] == CONTEXT.idempotency_key
