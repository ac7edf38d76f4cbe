"""What becomes of an answer: a result, words that end the turn, or an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from insika.http_tools.description import HttpTool
from insika.messages import Halt
from insika.tools.http.answer import EXCERPT_BYTES, AnswerReader
from insika.tools.http.sending import Incoming
from insika.tools.tool import ToolError
from insika.turn import sentences

ORDER = {"order": {"id": 7, "status": "on its way", "lines": [{"title": "A"}, {"title": "B"}], "gift": True}}


def read(
    body: Any = ORDER,
    *,
    status: int = 200,
    content_type: str = "application/json",
    charset: str = "",
    cut: bool = False,
    extract: str | None = None,
    halt_when: Any = (),
    hide: Any = lambda text: text,
) -> str | Halt:
    described = {
        "name": "t",
        "description": "d",
        "request": {"url": "https://a.example"},
        "response": {"extract": extract},
        "halt_when": list(halt_when),
    }
    tool = HttpTool.model_validate_json(json.dumps(described))
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return AnswerReader(tool.response, tool.halt_when).read(Incoming(status, content_type, charset, raw, cut), hide)


@pytest.mark.parametrize(
    ("extract", "result"),
    [
        (None, '{"a":["ä",1]}'),
        ("$.a", '["ä",1]'),
        ("$.a[0]", "ä"),
        ("$.a[1]", "1"),
        ("$.a[*]", '["ä",1]'),
        ("$..nothing", "[]"),
    ],
)
def test_a_result_is_the_json_or_a_part_of_it(extract: str | None, result: str) -> None:
    assert read({"a": ["ä", 1]}, extract=extract) == result


@pytest.mark.parametrize("content_type", ["application/json", "application/problem+json", "text/json"])
def test_what_says_that_it_is_json_is_read_as_such(content_type: str) -> None:
    assert read(b' { "a" : 1 } ', content_type=content_type) == '{"a":1}'


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "application/xml", ""])
def test_text_is_text(content_type: str) -> None:
    assert read(b' { "a" : 1 } ', content_type=content_type) == ' { "a" : 1 } '


def test_json_that_calls_itself_text_is_found_where_it_is_looked_for() -> None:
    assert read(b'{"a": 1}', content_type="text/plain", extract="$.a") == "1"


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        ("für".encode(), "", "für"),
        ("für".encode(), "utf-8", "für"),
        ("für".encode("latin-1"), "iso-8859-1", "für"),
        ("für".encode("cp1252"), "windows-1252", "für"),
        ("\ufefffür".encode(), "utf8", "für"),
        (b"f\xfcr", "", "f\ufffdr"),
        (b"f\xfcr", "no-such-thing", "f\ufffdr"),
        (b"a-b", "punycode", "a-b"),
        (b"616263", "hex", "616263"),
    ],
)
def test_text_is_read_as_it_says_it_is_written(raw: bytes, charset: str, text: str) -> None:
    assert read(raw, content_type="text/plain", charset=charset) == text


def test_an_empty_answer_says_that_it_went_well() -> None:
    assert read(b"", status=204, content_type="") == sentences.answered_without_a_body(204)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"body": b"{", "content_type": "application/json"}, "not the JSON that it says it is"),
        ({"body": b'{"a": NaN}'}, "not the JSON that it says it is"),
        ({"body": b"[" * 100_000}, "not the JSON that it says it is"),
        ({"body": b"\x89PNG", "content_type": "image/png"}, "neither JSON nor text"),
        ({"cut": True}, "more than the 262144 bytes"),
        ({"cut": True, "extract": "$.order"}, "more than the 262144 bytes"),
        ({"extract": "$.nothing"}, r"nothing at \$.nothing"),
        ({"body": b"", "extract": "$.a"}, "without any JSON"),
        ({"body": b"<p>", "content_type": "text/html", "extract": "$.a"}, "without any JSON"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_still_says_it_was_answered(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match=why) as error:
        read(**given)
    assert str(error.value).startswith("it was answered with 200")


def test_an_error_answer_is_an_error_with_its_status_and_the_beginning_of_its_body() -> None:
    with pytest.raises(ToolError) as error:
        read({"message": "no such order"}, status=404)
    assert str(error.value) == 'it was answered with 404: {"message": "no such order"}'
    with pytest.raises(ToolError) as error:
        read(b"x" * 5_000, status=500, content_type="text/html")
    assert str(error.value) == "it was answered with 500: " + "x" * EXCERPT_BYTES
    for hidden in ({"content_type": "image/png"}, {"cut": True}, {"body": b""}):
        with pytest.raises(ToolError) as error:
            read(status=503, **hidden)
        assert str(error.value) == "it was answered with 503"


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_a_redirect_is_an_error(status: int) -> None:
    with pytest.raises(ToolError, match="redirects are not followed"):
        read(b"", status=status)


# --- the end of a turn


@pytest.mark.parametrize(
    ("condition", "halts"),
    [
        ({"path": "$.order.status", "equals": "on its way"}, True),
        ({"path": "$.order.status", "equals": "lost"}, False),
        ({"path": "$.order.id", "equals": 7}, True),
        ({"path": "$.order.id", "equals": 7.0}, True),
        ({"path": "$.order.id", "equals": "7"}, False),
        ({"path": "$.order.gift", "equals": True}, True),
        ({"path": "$.order.gift", "equals": 1}, False),
        ({"path": "$.order.nothing", "equals": None}, False),
        ({"path": "$..title", "equals": "B"}, True),
        ({"path": "$.order.lines", "equals": [{"title": "A"}, {"title": "B"}]}, True),
        ({"path": "$.order.id"}, True),
        ({"path": "$.order.id", "exists": True}, True),
        ({"path": "$.order.id", "exists": False}, False),
        ({"path": "$.nothing", "exists": False}, True),
        ({"path": "$.nothing"}, False),
        ({"status": 200}, True),
        ({"status": [201, 202]}, False),
        ({"status": 200, "path": "$.nothing"}, False),
    ],
)
def test_a_turn_ends_when_all_that_is_asked_holds(condition: dict[str, Any], halts: bool) -> None:
    result = read(halt_when=[{**condition, "say": "That is all."}])
    assert isinstance(result, Halt) is halts
    assert result == Halt("That is all.") or result == json.dumps(ORDER, separators=(",", ":"))


def test_the_first_condition_that_holds_has_the_word() -> None:
    conditions = [{"status": 404, "say": "a"}, {"path": "$.order", "say": "b"}, {"status": 200, "say": "c"}]
    assert read(halt_when=conditions) == Halt("b")


def test_words_are_filled_from_the_result() -> None:
    say = "Order %{result.id} is %{result.status}; first %{result.lines.0}. %{result.none}%{result.lines.9}"
    halt = {"path": "$.order", "say": say}
    assert read(extract="$.order", halt_when=[halt]) == Halt('Order 7 is on its way; first {"title":"A"}. ')
    whole = {"status": 200, "say": "It says: %{result}"}
    assert read(b"hello", content_type="text/plain", halt_when=[whole]) == Halt("It says: hello")
    assert read(b"", status=200, halt_when=[whole]) == Halt("It says: ")


def test_without_words_the_turn_ends_all_the_same() -> None:
    assert read(halt_when=[{"status": 200}]) == Halt("")


def test_only_a_condition_that_names_the_status_is_about_an_error() -> None:
    with pytest.raises(ToolError):
        read(status=404, halt_when=[{"path": "$.order", "say": "x"}])
    assert read({"why": "none left"}, status=409, halt_when=[{"status": 409, "say": "Sorry: %{result.why}"}]) == Halt(
        "Sorry: none left"
    )


def test_words_are_not_filled_twice() -> None:
    halt = {"status": 200, "say": "%{result.a}"}
    assert read({"a": "%{result.b}", "b": "never"}, halt_when=[halt]) == Halt("%{result.b}")


def test_secrets_are_hidden_in_every_kind_of_result() -> None:
    def hide(text: str) -> str:
        return text.replace("s3cret", "***")

    assert read({"s3cret": ["s3cret"]}, hide=hide) == '{"***":["***"]}'
    assert read(b"a s3cret", content_type="text/plain", hide=hide) == "a ***"
    assert read({"a": "s3cret"}, halt_when=[{"status": 200, "say": "%{result.a}"}], hide=hide) == Halt("***")
    with pytest.raises(ToolError) as error:
        read(b"x" * (EXCERPT_BYTES - 3) + b"s3cret", content_type="text/plain", status=500, hide=hide)
    assert "s3" not in str(error.value)
