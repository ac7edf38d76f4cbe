"""Tool calls put together from their pieces, in every way in which they have been seen to be streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from insika.messages import ToolCall
from insika.providers.openai.calls import StreamedCalls
from insika.providers.openai.wording import Unreadable

ARGUMENTS = '{"order": "A-17", "why": "he said \\"now\\" 😀"}'
LOOKUP = ToolCall("call_1", "order_lookup", json.loads(ARGUMENTS))
TWO = (ToolCall("call_1", "order_lookup", {"n": 1}), ToolCall("call_2", "refund", {"n": 2}))


def piece(arguments: Any = None, name: Any = None, **more: Any) -> dict[str, Any]:
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    return {**more, "function": function}


def read(*pieces: object, cut: bool = False) -> tuple[ToolCall, ...]:
    calls = StreamedCalls()
    for one in pieces:
        calls.add(one)
    assert bool(calls) == bool(pieces)
    return calls.whole(cut=cut)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_call_comes_in_pieces_of_any_size(size: int) -> None:
    parts = [piece(ARGUMENTS[at : at + size], index=0) for at in range(0, len(ARGUMENTS), size)]
    assert read(piece("", "order_lookup", index=0, id="call_1", type="function"), *parts) == (LOOKUP,)


def test_pieces_of_two_calls_may_be_mixed() -> None:
    pieces = [
        piece("", "order_lookup", index=0, id="call_1"),
        piece("", "refund", index=1, id="call_2"),
        piece('{"n"', index=1),
        piece('{"n": 1', index=0),
        piece(": 2}", index=1),
        piece("}", index=0),
    ]
    assert read(*pieces) == TWO


SEEN: dict[str, list[dict[str, Any]]] = {
    "by the book": [
        piece("", "order_lookup", index=0, id="call_1"),
        piece('{"n": 1}', index=0),
        piece("", "refund", index=1, id="call_2"),
        piece('{"n": 2}', index=1),
    ],
    "whole calls": [
        piece('{"n": 1}', "order_lookup", index=0, id="call_1"),
        piece('{"n": 2}', "refund", index=1, id="call_2"),
    ],
    "ids and names with every piece": [
        piece('{"n"', "order_lookup", index=0, id="call_1"),
        piece(": 1}", "order_lookup", index=0, id="call_1"),
        piece('{"n"', "refund", index=1, id="call_2"),
        piece(": 2}", "refund", index=1, id="call_2"),
    ],
    "all at index 0, whole": [
        piece('{"n": 1}', "order_lookup", index=0, id="call_1"),
        piece('{"n": 2}', "refund", index=0, id="call_2"),
    ],
    "all at index 0, in pieces": [
        piece("", "order_lookup", index=0, id="call_1"),
        piece('{"n": 1}', index=0),
        piece("", "refund", index=0, id="call_2"),
        piece('{"n"', index=0),
        piece(": 2}", index=0),
    ],
    "no index, whole": [
        piece('{"n": 1}', "order_lookup", id="call_1"),
        piece('{"n": 2}', "refund", id="call_2"),
    ],
    "no index, in pieces": [
        piece("", "order_lookup", id="call_1"),
        piece('{"n": 1}'),
        piece('{"n"', "refund", id="call_2"),
        piece(": 2}"),
    ],
    "no index, ids with every piece": [
        piece('{"n"', "order_lookup", id="call_1"),
        piece(": 1}", id="call_1"),
        piece('{"n"', "refund", id="call_2"),
        piece(": 2}", id="call_2"),
    ],
    "null for an index": [
        piece('{"n": 1}', "order_lookup", index=None, id="call_1"),
        piece('{"n": 2}', "refund", index=None, id="call_2"),
    ],
    "an index that changes after the first piece": [
        piece("", "order_lookup", index=3, id="call_1"),
        piece('{"n": 1}', index=0),
        piece("", "refund", index=4, id="call_2"),
        piece('{"n": 2}', index=1),
    ],
    "another id with every piece": [
        piece("", "order_lookup", index=0, id="call_1"),
        piece('{"n": 1}', index=0, id="call_x"),
        piece("", "refund", index=1, id="call_2"),
        piece('{"n": 2}', index=1, id="call_y"),
    ],
    "an id that comes late": [
        piece("", "order_lookup", index=0),
        piece('{"n": 1}', index=0, id="call_1"),
        piece('{"n": 2}', "refund", index=1, id="call_2"),
    ],
    "arguments that are an object": [
        piece({"n": 1}, "order_lookup", index=0, id="call_1"),
        piece({"n": 2}, "refund", index=1, id="call_2"),
    ],
    "nulls for what is not said": [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "order_lookup", "arguments": None}},
        {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"n": 1}'}},
        {"index": 1, "id": "call_2", "function": {"name": "refund", "arguments": '{"n": 2}'}},
        {"index": 1, "id": None, "function": None},
    ],
}


@pytest.mark.parametrize("pieces", SEEN.values(), ids=SEEN)
def test_two_calls_are_told_apart_however_they_come(pieces: list[dict[str, Any]]) -> None:
    assert read(*pieces) == TWO


def test_calls_without_ids_are_told_apart_by_their_names() -> None:
    for pieces in (
        [piece('{"n": 1}', "refund"), piece('{"n": 2}', "refund")],
        [piece('{"n": 1}', "refund", index=0), piece('{"n": 2}', "refund", index=1)],
    ):
        assert read(*pieces) == (ToolCall("", "refund", {"n": 1}), ToolCall("", "refund", {"n": 2}))


def test_the_single_call_of_old_is_one_call() -> None:
    calls = StreamedCalls()
    calls.add_legacy({"name": "refund", "arguments": ""})
    calls.add_legacy({"arguments": '{"n"'})
    calls.add_legacy({"arguments": ": 2}"})
    assert calls.whole(cut=False) == (ToolCall("", "refund", {"n": 2}),)


@pytest.mark.parametrize("raw", ["", " ", "\n", "{}", " {} "])
def test_no_arguments_are_an_empty_object(raw: str) -> None:
    assert read(piece(raw, "refund", index=0, id="call_1")) == (ToolCall("call_1", "refund", {}),)


@pytest.mark.parametrize(
    "raw",
    ['{"order": "A-1', "[]", '["a"]', "null", "7", '"text"', "true", "{'n': 1}", '{"n": NaN}', "[" * 5000, "{}{}"],
)
def test_what_is_no_json_object_is_malformed(raw: str) -> None:
    assert read(piece(raw, "refund", index=0, id="call_1")) == (ToolCall("call_1", "refund", {}, raw),)


def test_the_last_call_is_cut_off_where_the_limit_was_reached() -> None:
    """Fault 41: also where the arguments can be read, for servers close what a model had left open."""
    first = piece('{"n": 1}', "order_lookup", index=0, id="call_1")
    for raw in ("", '{"n": 2', '{"n": 2}', "{}"):
        calls = read(first, piece(raw, "refund", index=1, id="call_2"), cut=True)
        assert calls == (TWO[0], ToolCall("call_2", "refund", cut_off=True))
    broken = piece('{"n": 1', "order_lookup", index=0, id="call_1")
    assert read(broken, piece("", "refund", index=1, id="call_2"), cut=True)[0].malformed == '{"n": 1'


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        "call",
        None,
        [],
        {"index": 0, "function": "refund"},
        {"index": 0, "function": []},
        {"index": 0, "id": 7, "function": {}},
        {"index": 0, "function": {"name": {}}},
        {"index": 0, "function": {"name": "refund", "arguments": 7}},
    ],
)
def test_what_has_not_the_shape_of_a_call_is_unreadable(wrong: object) -> None:
    with pytest.raises(Unreadable):
        read(wrong)


def test_characters_are_counted_once() -> None:
    calls = StreamedCalls()
    for one in (piece("{}", "refund", index=0), piece("", "refund", index=0), piece("", index=0)):
        calls.add(one)
    assert calls.characters == len("refund{}")
