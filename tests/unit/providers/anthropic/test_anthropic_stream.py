"""What the events of a stream come to: pieces, counts, the whole, and the reasons to stop."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from insika.messages import NO_USAGE, ToolCall, Usage, user
from insika.ports import Finished, ModelEvent, Stop, TextDelta, ThinkingDelta, UsageSoFar
from insika.providers.anthropic.blocks import Malformed
from insika.providers.anthropic.request import wire_request
from insika.providers.anthropic.stream import Reading, read_event
from insika.turn.model_message import storable
from tests.unit.providers.anthropic.anthropic_talk import a_request
from tests.vendors.recordings import recordings
from tests.vendors.spoken import pieces

Event = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": "", "signature": ""}


def reading() -> Reading:
    return Reading("anthropic/claude-opus-5", wire_request(a_request(user("Hi"))))


def read(*events: Event, into: Reading | None = None) -> tuple[Finished, list[ModelEvent]]:
    into = into or reading()
    found = [one for event in events for one in into.take(event)]
    assert into.done
    return into.finished(), found


def start(**usage: object) -> Event:
    return {"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}}


def block(index: int, opened: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": opened},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *said: str) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, *[{"type": "text_delta", "text": piece} for piece in said])


def call(index: int, raw: str, id: str = "c", **opened: object) -> list[Event]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(raw)]]
    return block(index, {"type": "tool_use", "id": id, "name": "refund", "input": {}, **opened}, *deltas)


def end(reason: str | None = "end_turn", **usage: object) -> list[Event]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    return [delta, {"type": "message_stop"}]


def said(*events: Event, reason: str = "end_turn") -> Finished:
    return read(start(input_tokens=1), *events, *end(reason, output_tokens=1))[0]


def test_text_comes_in_pieces_and_whole() -> None:
    finished, found = read(start(input_tokens=5), *text(0, "Hel", "lo."), *end(output_tokens=2))
    assert [one.text for one in found if isinstance(one, TextDelta)] == ["Hel", "lo."]
    assert (finished.message.content, finished.stop, finished.measured) == ("Hello.", Stop.END, True)
    assert [one.usage for one in found if isinstance(one, UsageSoFar)] == [Usage(5), Usage(5, 2)]


def test_thinking_is_told_apart_and_kept_with_its_signature() -> None:
    deltas = [{"type": "thinking_delta", "thinking": "Hm"}, {"type": "signature_delta", "signature": "sig"}]
    finished, found = read(
        start(input_tokens=1), *block(0, {**THOUGHT, "new": 1}, *deltas), *call(1, "{}"), *end("tool_use")
    )
    assert [one.text for one in found if isinstance(one, ThinkingDelta)] == ["Hm"]
    kept = finished.message.verbatim.parts
    assert kept[0] == {"type": "thinking", "thinking": "Hm", "signature": "sig", "new": 1}
    assert kept[1] == {"type": "tool_use", "id": "c", "name": "refund", "input": {}}


@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_a_character_torn_in_two_is_shown_whole(kind: str) -> None:
    opened = {"text": {"type": "text", "text": ""}, "thinking": THOUGHT}[kind]
    halves = [{"type": f"{kind}_delta", kind: piece} for piece in ("a\ud83d", "\ude00b", "\ud83d")]
    signed = [{"type": "signature_delta", "signature": "s"}] * (kind == "thinking")
    finished, found = read(start(), *block(0, opened, *halves, *signed), *call(1, "{}"), *end("tool_use"))
    assert [one.text for one in found if isinstance(one, TextDelta | ThinkingDelta)] == ["a", "😀b", "\ufffd"]
    if kind == "text":
        assert finished.message.content == "a😀b\ufffd"
    else:
        assert storable(finished.message, frozenset(), 0, lambda name: True).verbatim.parts == ()


def test_torn_thinking_that_is_whole_again_can_be_kept() -> None:
    halves = [{"type": "thinking_delta", "thinking": piece} for piece in ("\ud83d", "\ude00")]
    signed = {"type": "signature_delta", "signature": "s"}
    finished = said(*block(0, THOUGHT, *halves, signed), *call(1, "{}"))
    assert storable(finished.message, frozenset(), 0, lambda name: True).verbatim.parts[0]["thinking"] == "😀"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"order": "A-17", "why": "\\ud83d\\ude00"}', ToolCall("c", "refund", {"order": "A-17", "why": "😀"})),
        ("", ToolCall("c", "refund", {})),
        ('{"order": ', ToolCall("c", "refund", malformed='{"order": ')),
        ("[1]", ToolCall("c", "refund", malformed="[1]")),
        ("NaN", ToolCall("c", "refund", malformed="NaN")),
        ("[" * 100_000, ToolCall("c", "refund", malformed="[" * 100_000)),
    ],
    ids=["an object", "nothing", "half", "a list", "no JSON", "too deep"],
)
def test_arguments_are_an_object_or_malformed(raw: str, expected: ToolCall) -> None:
    assert said(*call(0, raw), reason="tool_use").message.tool_calls == (expected,)


def test_arguments_that_came_with_the_announcement_count() -> None:
    events = block(0, {"type": "tool_use", "id": "c", "name": "refund", "input": {"order": "1"}})
    assert said(*events).message.tool_calls == (ToolCall("c", "refund", {"order": "1"}),)


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "pause_turn"])
def test_the_call_into_which_the_limit_fell_is_cut_off(reason: str) -> None:
    finished = said(*call(0, '{"order": "1"}', "one"), *call(1, '{"order": "A-', "two"), reason=reason)
    assert finished.stop is Stop.LENGTH
    assert finished.message.tool_calls == (
        ToolCall("one", "refund", {"order": "1"}),
        ToolCall("two", "refund", cut_off=True),
    )


@pytest.mark.parametrize("cut", range(14))
def test_no_beginning_of_arguments_is_ever_taken_for_the_whole(cut: int) -> None:
    raw = '{"order": "1"}'
    (one,) = said(*call(0, raw[:cut]), reason="max_tokens").message.tool_calls
    assert one == ToolCall("c", "refund", cut_off=True)


def test_a_limit_behind_a_whole_call_cuts_nothing() -> None:
    (one,) = said(*call(0, '{"order": "1"}'), reason="max_tokens").message.tool_calls
    assert one.arguments == {"order": "1"}
    finished = said(*call(0, '{"a'), *text(1, "And so"), reason="max_tokens")
    assert finished.message.tool_calls[0].malformed == '{"a'


def test_nothing_that_was_announced_is_left_when_the_model_would_not_go_on() -> None:
    finished = said(*text(0, "I would"), *call(1, "{}"), reason="refusal")
    assert finished.stop is Stop.REFUSAL
    assert finished.message.tool_calls == ()
    assert finished.message.content == "I would"


@pytest.mark.parametrize(
    ("reason", "calls", "stop"),
    [
        ("end_turn", 0, Stop.END),
        ("stop_sequence", 0, Stop.END),
        ("tool_use", 1, Stop.CALLS),
        ("tool_use", 0, Stop.END),
        ("end_turn", 1, Stop.CALLS),
        ("something_new", 0, Stop.END),
        ("something_new", 1, Stop.CALLS),
        ("max_tokens", 0, Stop.LENGTH),
        ("refusal", 0, Stop.REFUSAL),
    ],
)
def test_the_reasons_to_stop(reason: str, calls: int, stop: Stop) -> None:
    assert said(*text(0, "Well."), *call(1, "{}") * calls, reason=reason).stop is stop


def test_what_is_new_is_let_pass() -> None:
    weather = {"type": "weather", "sky": "blue"}
    odd = {"type": "content_block_delta", "index": 0, "delta": {"type": "scent_delta", "scent": "rose"}}
    events = text(0, "Hello.")
    finished, _ = read(start(), weather, events[0], odd, *events[1:], {"type": "ping"}, *end(), weather)
    assert finished.message.content == "Hello."


def test_a_message_with_pieces_that_nobody_knows_is_not_sent_back_as_if_it_were_whole() -> None:
    signed = {"type": "signature_delta", "signature": "s"}
    odd = {"type": "scent_delta", "scent": "rose"}
    thought = block(0, THOUGHT, {"type": "thinking_delta", "thinking": "Hm"}, odd, signed)
    unsigned = block(0, THOUGHT, {"type": "thinking_delta", "thinking": "Hm"})
    for events in (thought, unsigned):
        assert not said(*events, *call(1, "{}")).message.verbatim
    whole = said(*block(0, {"type": "novel_block", "content": [1]}), *call(1, "{}"))
    assert whole.message.verbatim.parts[0] == {"type": "novel_block", "content": [1]}


def test_a_message_of_white_space_is_empty() -> None:
    assert said(*text(0, "\n", " ")).message.content == ""


WHOLE = [
    start(input_tokens=1),
    *text(0, "Hello."),
    *call(1, "{}"),
    *end("tool_use", output_tokens=3),
]


@pytest.mark.parametrize("missing", [at for at, event in enumerate(WHOLE) if event["type"] != "content_block_delta"])
def test_a_message_of_which_an_event_is_missing_is_never_taken_for_whole(missing: int) -> None:
    """Of pieces within a block nobody can tell."""
    kept = [event for at, event in enumerate(WHOLE) if at != missing]
    into = reading()
    with pytest.raises((Malformed, AssertionError)):
        read(*kept, into=into)
    assert not into.done


@pytest.mark.parametrize("end", range(len(WHOLE)))
def test_a_message_is_not_done_before_the_vendor_says_so(end: int) -> None:
    into = reading()
    list(itertools.chain.from_iterable(map(into.take, WHOLE[:end])))
    assert not into.done


MALFORMED: Sequence[Event] = [
    {},
    {"type": 3},
    {"type": "message_start"},
    start(),
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
    {"type": "content_block_start", "index": 2},
    {"type": "content_block_start", "index": 2, "content_block": {}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": 3, "name": "x"}},
    {"type": "content_block_start", "index": "x", "content_block": {"type": "text"}},
    {"type": "content_block_delta", "index": "x", "delta": 3},
    {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "late"}},
    {"type": "content_block_delta", "index": 1, "delta": 3},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "of a call"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": None}},
    {"type": "content_block_stop", "index": [1]},
    {"type": "message_delta"},
    {"type": "message_delta", "delta": {"stop_reason": 3}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("event", MALFORMED, ids=str)
def test_an_event_of_a_wrong_shape_is_refused(event: Event) -> None:
    into = reading()
    list(itertools.chain.from_iterable(map(into.take, WHOLE[:6])))
    with pytest.raises(Malformed):
        list(into.take(event))


@pytest.mark.parametrize("data", ["", "{", "[]", "null", "7", '"x"', "<html>", "[" * 100_000])
def test_data_that_is_no_object_is_no_event(data: str) -> None:
    with pytest.raises(Malformed):
        read_event("content_block_delta", data)


def test_an_event_without_name_and_data_is_none() -> None:
    assert read_event(None, "") == {"type": "ping"}
    assert read_event("ping", "") == {"type": "ping"}


# --- what it costs ---

ALL = [one for one in recordings() if one.vendor == "anthropic"]


@pytest.mark.parametrize("recording", ALL, ids=[one.name for one in ALL])
def test_recorded_usage_comes_to_the_four_numbers(recording: Any) -> None:
    """What a whole answer tells at once, a stream may tell at its start, at its end, or in part at each."""
    told = recording.usage
    streams = [(told.get("start", {}), told["end"])] if recording.streamed else whole_as_streams(told["whole"])
    for first, last in streams:
        finished, found = read(start(**first), *text(0, "Hello."), *end(**last))
        assert finished.usage == recording.expected
        assert finished.measured
        assert [one.usage for one in found if isinstance(one, UsageSoFar)][-1] == recording.expected


def whole_as_streams(told: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    output = {"output_tokens": told["output_tokens"]}
    inputs = {key: value for key, value in told.items() if key != "output_tokens"}
    return [({**inputs, "output_tokens": 1}, output), ({}, told), (inputs, told)]


def test_what_the_input_costs_is_told_at_once() -> None:
    into = reading()
    first = start(input_tokens=3, cache_read_input_tokens=40, cache_creation_input_tokens=5, output_tokens=1)
    assert list(into.take(first)) == [UsageSoFar(Usage(3, 1, 40, 5))]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ({}, {}),
        ({"input_tokens": 7}, {}),
        ({"input_tokens": 7, "output_tokens": 1}, {}),
        ({"input_tokens": 7, "output_tokens": 1}, {"output_tokens": None}),
        ({"input_tokens": None}, {"output_tokens": 9}),
        ({"input_tokens": -1}, {"output_tokens": "9"}),
        ({"input_tokens": True}, {"output_tokens": 1.5}),
    ],
)
def test_what_the_vendor_does_not_say_is_estimated_and_marked(first: Event, last: Event) -> None:
    finished, _ = read(start(**first), *text(0, "Hello there, old friend."), *end(**last))
    assert not finished.measured
    assert finished.usage.input == 7 if first.get("input_tokens") == 7 else finished.usage.input > 20
    assert finished.usage.output >= 6
    assert finished.usage != NO_USAGE


def test_usage_that_is_no_usage_is_none() -> None:
    event = {"type": "message_start", "message": {"usage": "much"}}
    finished, found = read(event, *text(0, "Hello."), *end())
    assert not finished.measured
    assert not [one for one in found if isinstance(one, UsageSoFar)]
