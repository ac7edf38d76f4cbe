"""The chunks of one stream, read into events: text, thinking, calls, usage, and why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from insika.messages import NOTHING_VERBATIM, ToolCall, Usage, Verbatim
from insika.ports import Finished, ModelEvent, ModelRequest, Stop, TextDelta, ThinkingDelta, UsageSoFar
from insika.providers.openai.stream import Answer
from insika.providers.openai.wording import BrokenOff, Failed, Halves, Unreadable
from tests.unit.providers.openai.chat_cases import HOUSE, Fake, asked, call_piece, chunk, said, thought

USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
COUNTED = Usage(input=20, output=5)
CALL = call_piece('{"n": 1}', index=0, id="call_1", name="refund")


def read(
    *chunks: object, fake: Fake = Fake.OPENAI, request: ModelRequest | None = None
) -> tuple[list[ModelEvent], Finished]:
    answer = Answer(request or asked(fake=fake), HOUSE[fake])
    events = [event for one in chunks for event in answer.read(one)]
    return [*events, *answer.rest()], answer.finished()


def ended(*deltas: dict[str, Any], finish: str = "stop", **more: Any) -> Finished:
    return read(*[chunk(delta) for delta in deltas], chunk(finish=finish, usage=USAGE), **more)[1]


def test_text_comes_as_it_is_said_and_is_the_message_in_the_end() -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo. "})]
    events, finished = read(*chunks, chunk(finish="stop", usage=USAGE))
    assert events == [TextDelta("Hel"), TextDelta("lo. "), UsageSoFar(COUNTED)]
    assert finished.message.content == "Hello. "
    assert (finished.usage, finished.measured, finished.stop) == (COUNTED, True, Stop.END)


def test_text_and_calls_may_stand_in_one_message() -> None:
    finished = ended({"content": "Let me see."}, CALL, {"content": " Wait."}, finish="tool_calls")
    assert finished.message.content == "Let me see. Wait."
    assert finished.message.tool_calls == (ToolCall("call_1", "refund", {"n": 1}),)
    assert finished.stop is Stop.CALLS


@pytest.mark.parametrize(
    ("finish", "calls", "stop"),
    [
        ("stop", False, Stop.END),
        ("stop", True, Stop.CALLS),
        ("tool_calls", True, Stop.CALLS),
        ("tool_calls", False, Stop.END),
        ("function_call", True, Stop.CALLS),
        ("length", False, Stop.LENGTH),
        ("length", True, Stop.LENGTH),
        ("content_filter", False, Stop.REFUSAL),
        ("content_filter", True, Stop.REFUSAL),
        ("eos_token", False, Stop.END),
        ("eos_token", True, Stop.CALLS),
    ],
)
def test_why_it_stopped(finish: str, calls: bool, stop: Stop) -> None:
    finished = ended({"content": "Well."}, *([CALL] if calls else []), finish=finish)
    assert finished.stop is stop
    expected = {Stop.CALLS: [False], Stop.LENGTH: [True] if calls else []}.get(stop, [])
    assert [call.cut_off for call in finished.message.tool_calls] == expected


def test_a_call_that_fills_the_limit_is_cut_off_whatever_the_server_calls_it() -> None:
    """Fault 41: vLLM says `tool_calls` of a stream that hit the limit (vllm-project/vllm 53269)."""
    for limit, cut in ((4, True), (5, True), (6, False), (None, False)):
        finished = ended(CALL, finish="tool_calls", request=asked(max_tokens=limit))
        assert [call.cut_off for call in finished.message.tool_calls] == [cut]
        assert finished.stop is (Stop.LENGTH if cut else Stop.CALLS)
    assert ended({"content": "Hi"}, request=asked(max_tokens=5)).stop is Stop.END, "a text may end there"


def test_a_call_of_half_a_json_is_never_one_to_run() -> None:
    half = call_piece('{"n": ', index=0, id="call_1", name="refund")
    for finish in ("length", "tool_calls", "stop", "eos_token"):
        (call,) = ended(half, finish=finish).message.tool_calls
        assert call.cut_off or call.malformed == '{"n": '


def test_a_refusal_is_text_and_calls_nothing() -> None:
    chunks = [chunk({"refusal": "I cannot "}), chunk({"refusal": "do that."}), chunk(CALL), chunk(finish="stop")]
    events, finished = read(*chunks)
    assert said(events) == finished.message.content == "I cannot do that."
    assert finished.stop is Stop.REFUSAL
    assert finished.message.tool_calls == ()


# --- thinking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("fake", list(Fake))
def test_thinking_is_shown_and_never_part_of_the_answer(field: str, fake: Fake) -> None:
    chunks = [chunk({"content": None, field: "They want "}), chunk({field: "it."}), chunk({"content": "Yes."})]
    events, finished = read(*chunks, chunk(finish="stop"), fake=fake)
    assert [event for event in events if isinstance(event, ThinkingDelta)] == [
        ThinkingDelta("They want "),
        ThinkingDelta("it."),
    ]
    assert (said(events), finished.message.content) == ("Yes.", "Yes.")


def test_a_server_that_shows_it_twice_is_heard_once() -> None:
    events, _ = read(chunk({"reasoning_content": "Hm.", "reasoning": "Hm."}), chunk(finish="stop"))
    assert thought(events) == "Hm."


def test_deepseeks_reasoning_is_kept_with_calls_alone() -> None:
    thinks = [{"reasoning_content": "They "}, {"reasoning_content": "want it."}]
    kept = Verbatim("there/deepseek-v4-pro", ({"reasoning_content": "They want it."},))
    called = ended(*thinks, CALL, fake=Fake.DEEPSEEK, finish="tool_calls")
    assert called.message.verbatim == kept
    assert ended(*thinks, {"content": "Yes."}, fake=Fake.DEEPSEEK).message.verbatim == NOTHING_VERBATIM
    assert ended(CALL, fake=Fake.DEEPSEEK, finish="tool_calls").message.verbatim == NOTHING_VERBATIM


def test_openrouters_details_are_put_together_before_they_are_kept() -> None:
    """By type and index, the signature last (agno-agi/agno 8794)."""
    shape = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    details = [
        [{**shape, "text": "Let", "signature": None}],
        [{**shape, "text": " me see."}],
        [{**shape, "signature": "s1"}, {"type": "reasoning.text", "index": 1, "text": "And"}],
        [{"type": "reasoning.encrypted", "index": 0, "id": "call_1", "data": "AAA="}],
        [{"type": "reasoning.encrypted", "index": 0, "id": "call_2", "data": "BBB="}],
        [{"type": "reasoning.summary", "summary": "Look"}, {"type": "reasoning.summary", "summary": "Again"}],
        ["what is this", None],
    ]
    deltas = [{"reasoning": "x", "reasoning_details": one} for one in details]
    finished = ended(*deltas, CALL, fake=Fake.OPENROUTER, finish="tool_calls")
    assert finished.message.verbatim == Verbatim(
        "there/anthropic/claude-opus-5",
        (
            {**shape, "text": "Let me see.", "signature": "s1"},
            {"type": "reasoning.text", "index": 1, "text": "And"},
            {"type": "reasoning.encrypted", "index": 0, "id": "call_1", "data": "AAA="},
            {"type": "reasoning.encrypted", "index": 0, "id": "call_2", "data": "BBB="},
            {"type": "reasoning.summary", "summary": "Look"},
            {"type": "reasoning.summary", "summary": "Again"},
        ),
    )


@pytest.mark.parametrize("fake", [Fake.OPENAI, Fake.VLLM, Fake.OLLAMA])
def test_nothing_is_kept_for_those_who_want_nothing_back(fake: Fake) -> None:
    delta = {"reasoning": "Hm.", "reasoning_content": "Hm.", "reasoning_details": [{"type": "reasoning.text"}]}
    assert ended(delta, CALL, fake=fake, finish="tool_calls").message.verbatim == NOTHING_VERBATIM


# --- usage ------------------------------------------------------------------------------------------------------------


def usages(events: Sequence[ModelEvent]) -> list[Usage]:
    return [event.usage for event in events if isinstance(event, UsageSoFar)]


def test_usage_is_taken_from_wherever_it_stands_and_once() -> None:
    """Fault 37: in a chunk of its own, beside the finish reason, in the choice, and in both of two places."""
    alone = {"choices": [], "usage": USAGE}
    in_choice = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}
    for chunks in (
        [chunk({"content": "Hi"}), chunk(finish="stop"), alone],
        [chunk({"content": "Hi"}), chunk(finish="stop", usage=USAGE)],
        [chunk({"content": "Hi"}), chunk(finish="stop", usage=USAGE), alone],
        [chunk({"content": "Hi"}), in_choice],
        [chunk({"content": "Hi"}), in_choice, {"usage": USAGE}],
        [alone, chunk({"content": "Hi"}), chunk(finish="stop")],
    ):
        events, finished = read(*chunks)
        assert (finished.usage, finished.measured) == (COUNTED, True)
        assert usages(events) == [COUNTED]


def test_usage_on_every_chunk_is_that_of_the_whole_so_far() -> None:
    """Fault 37: vLLM's `continuous_usage_stats`."""
    grown = [{"prompt_tokens": 20, "completion_tokens": n, "total_tokens": 20 + n} for n in range(4)]
    events, finished = read(*[chunk({"content": "x"}, usage=usage) for usage in grown], chunk(finish="stop"))
    assert finished.usage == Usage(input=20, output=3)
    assert usages(events) == [Usage(input=20, output=n) for n in range(4)]


def test_the_input_is_told_as_soon_as_it_is_known() -> None:
    answer = Answer(asked(), HOUSE[Fake.OPENAI])
    first = list(answer.read(chunk({"content": "x"}, usage={"prompt_tokens": 20, "completion_tokens": 0})))
    assert UsageSoFar(Usage(input=20)) in first


def test_zeros_at_the_end_take_nothing_back() -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    _, finished = read(chunk({"content": "x"}, usage=USAGE), chunk(finish="stop", usage=zeros))
    assert finished.usage == COUNTED


@pytest.mark.parametrize("usage", [None, {}, [], "20", {"prompt_tokens": "20"}, {"prompt_tokens": True}])
def test_without_usage_there_is_an_estimate_that_says_so(usage: object) -> None:
    request = asked(note="[insika] a note")
    chunks = [chunk({"reasoning": "x" * 40}), chunk({"content": "y" * 40}), chunk(CALL), chunk(finish="stop")]
    _, finished = read(*chunks, {"choices": [], "usage": usage}, request=request)
    assert not finished.measured
    assert finished.usage.output == (40 + 40 + len('refund{"n": 1}') + 3) // 4
    _, bare = read(chunk(finish="stop"), request=asked(tools=(), instructions=""))
    assert bare.usage.output == 0
    assert finished.usage.input > bare.usage.input > 0


# --- what is no answer ------------------------------------------------------------------------------------------------


def test_a_stream_without_a_finish_reason_is_none() -> None:
    for chunks in ([], [chunk({"content": "Hel"})], [chunk(CALL)], [{"choices": [], "usage": USAGE}]):
        with pytest.raises(BrokenOff):
            read(*chunks)


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_server_that_gave_up_has_not_answered(reason: str) -> None:
    with pytest.raises(Failed) as caught:
        ended({"content": "Hel"}, finish=reason)
    assert caught.value.error == {"type": "server_error", "code": reason}


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "no", "code": 502}, "choices": [chunk()["choices"][0]]},
        {"object": "error", "message": "no", "code": 502},
        {"choices": [{"index": 0, "error": {"message": "no", "code": 502}, "delta": {}}]},
    ],
    ids=["beside a choice", "the event itself", "in a choice"],
)
def test_an_error_object_is_a_failure_wherever_it_stands(event: dict[str, Any]) -> None:
    with pytest.raises(Failed) as caught:
        read(chunk({"content": "Hel"}), event)
    assert (caught.value.error["message"], caught.value.error["code"]) == ("no", 502)


@pytest.mark.parametrize(
    "event",
    [
        [],
        7,
        None,
        "text",
        {"choices": {}},
        {"choices": [7]},
        {"choices": [{"delta": 3}]},
        {"choices": [{"delta": {"content": 3}}]},
        {"choices": [{"delta": {"content": ["x"]}}]},
        {"choices": [{"delta": {"reasoning": {}}}]},
        {"choices": [{"delta": {"tool_calls": 3}}]},
        {"choices": [{"delta": {"tool_calls": [3]}}]},
        {"choices": [{"delta": {"function_call": "x"}}]},
        {"choices": [{"delta": {}, "finish_reason": 3}]},
    ],
)
def test_what_is_no_chunk_is_unreadable(event: object) -> None:
    with pytest.raises(Unreadable):
        read(event)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "weather", "sky": "blue"},
        {"choices": None},
        {"choices": []},
        {"choices": [], "prompt_filter_results": []},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": None, "refusal": None}}]},
        {"error": None, "choices": []},
    ],
)
def test_what_says_nothing_is_passed_over(event: object) -> None:
    events, finished = read(event, chunk({"content": "Hi"}), event, chunk(finish="stop"))
    assert said(events) == finished.message.content == "Hi"


# --- characters -------------------------------------------------------------------------------------------------------


def test_an_emoji_in_two_halves_is_one_again() -> None:
    """Fault 43, as a stream brings it."""
    chunks = [chunk({"content": "a\ud83d"}), chunk({"content": "\ude00b"}), chunk({"reasoning": "\ud83d"})]
    events, finished = read(*chunks, chunk({"reasoning": "\ude00"}), chunk(finish="stop"))
    assert said(events) == finished.message.content == "a😀b"
    assert thought(events) == "😀"


def test_half_a_character_that_stays_alone_is_replaced() -> None:
    events, finished = read(chunk({"content": "a\ud83d"}), chunk({"reasoning": "\ud83d"}), chunk(finish="stop"))
    assert said(events) == finished.message.content == "a\ufffd"
    assert thought(events) == "\ufffd"


def test_halves_hold_back_no_more_than_one() -> None:
    halves = Halves()
    assert halves.join("x\ud83d") == "x"
    assert halves.join("") == ""
    assert halves.join("\ud83d") == "\ufffd"
    assert halves.join("\ude00\0y\ude00") == "😀\ufffdy\ufffd"
    assert halves.rest() == ""
