"""What a vendor says of a failure is shown as far as it tells nothing of what it was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.messages import ToolCall, assistant, tool_result, user
from insika.ports import ModelRequest, ToolSpec
from insika.providers.vendor_words import LONGEST, VendorWords

CARD = "4111111111111111"
PERSON = f"My name is Anna Schmidt, my card is {CARD}, and I am at anna.schmidt@example.com"
REQUEST = ModelRequest(
    "gpt-4o",
    "Speak to the customers of a bookshop in Lyon.",
    [
        user(PERSON),
        assistant("Let me see.", ToolCall("call_1", "order_lookup", {"street": "Rue Mercière 12"})),
        tool_result("call_1", "The parcel waits in the cellar."),
        user("Jürgen sagt, es ist schon da. お元気ですか"),
    ],
    [ToolSpec("order_lookup", "Finds an order.", {"type": "object"})],
    note="[insika] the budget is nearly spent",
)


def shown(text: str, request: ModelRequest, key: str) -> str:
    return VendorWords(request, key).shown(text)


USEFUL = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9377 tokens. Please reduce "
    "the length of the messages.",
    'model "llama9" not found, try pulling it first',
    "registry.ollama.ai/library/gemma3:latest does not support tools",
    "The model `gpt-4o` does not exist or you do not have access to it.",
    "Invalid schema for function 'order_lookup': schema must be a JSON Schema of 'type: \"object\"'.",
    "Rate limit reached for gpt-4o in organization org-1a2b on tokens per min (TPM): Limit 30000, Requested 35000.",
    "Provider returned error: upstream overloaded",
    "Insufficient Balance",
]


@pytest.mark.parametrize("text", USEFUL)
def test_what_helps_an_operator_is_shown(text: str) -> None:
    assert shown(text, REQUEST, "sk-secret") == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Invalid value: 'Anna'.", "Invalid value: '…'."),
        (f"Could not parse the number {CARD} in messages[0]", "Could not parse the number … in messages[0]"),
        (
            "Invalid type for messages[0]: a string of Anna was given",
            "Invalid type for messages[0]: a string of … was given",
        ),
        ("Unknown parameter: schmidt in request", "Unknown parameter: … in request"),
        ("Unknown parameter: Schmi in request", "Unknown parameter: … in request"),
        ("Unknown parameter: Rue Merci\\u00e8re in the request", "Unknown parameter: … in the request"),
        (
            "Failed to parse the JSON of the\\ncellar\\nin function call",
            "Failed to parse the JSON of the … in function call",
        ),
        ("Invalid input in request: お元気ですか", "Invalid input in request: …"),
        ("Invalid prompt: let me see", "Invalid prompt: … see"),
        ("The provided prompt names Lyon", "The provided prompt names …"),
    ],
)
def test_no_word_of_the_request_is_shown_but_those_of_the_trade(text: str, left: str) -> None:
    assert shown(text, REQUEST, "") == left


@pytest.mark.parametrize(
    "text",
    [
        PERSON,
        f"Invalid: {PERSON}",
        "Jürgen sagt",
        "[{'type': 'string_type', 'loc': ('messages', 0), 'input': 'My name is Anna Schmidt, my card'}]",
        "",
        " ",
    ],
)
def test_of_what_is_mostly_quotation_nothing_is_shown(text: str) -> None:
    assert shown(text, REQUEST, "") == ""


def test_a_quotation_of_plain_words_is_one_too() -> None:
    request = ModelRequest("m", "", [user("could you check this for me")])
    assert shown("Invalid value in request: could you check this", request, "") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: top-secret. See the organization.",
        "Incorrect API key provided: sk-proj-********************abcd. See the organization.",
        "Incorrect API key provided: Bearer eyJhbGciOi.x. See the organization.",
    ],
)
def test_no_key_is_shown(text: str) -> None:
    told = shown(text, REQUEST, "top-secret")
    assert told.startswith("Incorrect API key provided: …")
    assert not any(piece in told for piece in ("secret", "abcd", "eyJ"))


def test_it_is_one_short_line() -> None:
    told = shown("no\nsuch\tmodel \u202e\0\x1b[31m " + "model " * 500, REQUEST, "")
    assert len(told) == LONGEST
    assert told.isprintable()
    assert told.startswith("no such model")


WORDS = ["Anna", "Schmidt", CARD, "cellar", "Rue", "Mercière", "Jürgen", "parcel", "bookshop", "Lyon", "budget"]
FRAMES = ["Invalid value: {!r} in request", "messages[0]: {} is not supported", "could not parse {}", "{}"]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.sampled_from(FRAMES), st.booleans(), st.integers())
def test_whatever_a_vendor_quotes_is_not_shown(words: list[str], frame: str, escaped: bool, cut: int) -> None:
    quoted = " ".join(words)
    quoted = json.dumps(quoted) if escaped else quoted
    told = shown(frame.format(quoted), REQUEST, "").casefold()
    assert not any(word.casefold() in told for word in words)


@given(st.text(max_size=400), st.text(max_size=50))
def test_it_never_fails_and_is_always_one_line(text: str, key: str) -> None:
    told = shown(text, REQUEST, key)
    assert len(told) <= LONGEST
    assert told.isprintable()


def test_arguments_that_are_no_json_are_looked_at_too() -> None:
    odd: Any = {"street": {"unwritable": object()}}
    request = ModelRequest(
        "m", "", [assistant("", ToolCall("1", "t", odd), ToolCall("2", "t", {}, "malformed Zanzibar"))]
    )
    assert shown("Unknown value Zanzibar in request", request, "") == "Unknown value … in request"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rate_limit_exceeded", "rate_limit_exceeded"),
        ("req_0f1e2d-3", "req_0f1e2d-3"),
        ("gen-1764480000-aBc", "gen-1764480000-aBc"),
        ("two words", ""),
        ("", ""),
        ("x" * 81, ""),
        ("sk-proj-abcd", ""),
        ("top-secret", ""),
        ("Anna", ""),
        ("Anna.Schmidt", ""),
        (f"req_{CARD}", ""),
        ("<b>", ""),
    ],
)
def test_a_word_is_a_name_or_an_id_and_nothing_that_was_sent(text: str, told: str) -> None:
    assert VendorWords(REQUEST, "top-secret").word(text) == told
