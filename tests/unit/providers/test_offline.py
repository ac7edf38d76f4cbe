from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from insika.errors import ProviderError, ProviderFatal
from insika.messages import Message, ToolCall, Usage, assistant, tool_result, user
from insika.ports import Finished, ModelEvent, ModelProvider, ModelRequest, TextDelta, ToolSpec
from insika.providers.offline import OfflineProvider, notice, split_text
from insika.providers.script import Call, Calls, Cut, Fail, Say, Script, Step

TOOLS = (ToolSpec("find", "", {}),)


def request(*messages: Message, model: str = "s", tools: Sequence[ToolSpec] = TOOLS) -> ModelRequest:
    return ModelRequest(model, "be kind", messages or (user("hi"),), tools)


async def stream(step: Step, asked: ModelRequest | None = None) -> list[ModelEvent]:
    provider: ModelProvider = OfflineProvider({"s": Script([step])})
    return [event async for event in provider.stream(asked or request())]


async def broken(provider: OfflineProvider) -> tuple[list[ModelEvent], ProviderError]:
    seen: list[ModelEvent] = []
    try:
        async for event in provider.stream(request()):
            seen.append(event)
    except ProviderError as error:
        return seen, error
    pytest.fail("the stream did not break")


async def test_text_comes_word_by_word_and_then_whole() -> None:
    events = await stream(Say("Good  morning,\nall. "))
    assert events == [
        TextDelta("Good"),
        TextDelta("  morning,"),
        TextDelta("\nall."),
        TextDelta(" "),
        Finished(assistant("Good  morning,\nall. "), Usage(input=3, output=5)),
    ]


@pytest.mark.parametrize("text", ["", " ", "a", " a", "a ", "a\n\n b\t", "😀 e\u0301 x"])
def test_chunks_make_up_the_text(text: str) -> None:
    assert "".join(split_text(text)) == text


async def test_calls_come_with_the_message() -> None:
    *deltas, finished = await stream(Call("find", {"n": 1}, "One moment."))
    assert deltas == [TextDelta("One"), TextDelta(" moment.")]
    assert isinstance(finished, Finished)
    (call,) = finished.message.tool_calls
    assert (call.name, call.arguments, call.malformed) == ("find", {"n": 1}, None)
    assert finished.message.content == "One moment."


async def test_several_calls_have_ids_of_their_own() -> None:
    (finished,) = await stream(Calls([Call("find"), Call("find"), Call("find", id="mine")]))
    assert isinstance(finished, Finished)
    ids = [call.id for call in finished.message.tool_calls]
    assert len(set(ids)) == 3
    assert ids[2] == "mine"


async def test_a_malformed_call_carries_its_raw_text() -> None:
    (finished,) = await stream(Call("find", {"n": 1}, malformed='{"n":'))
    assert isinstance(finished, Finished)
    (call,) = finished.message.tool_calls
    assert call == ToolCall(call.id, "find", {}, '{"n":')


async def test_the_same_request_gives_the_same_answer() -> None:
    provider = OfflineProvider({"s": Script([Say("one"), Calls([Call("find"), Call("find")])])})
    asked = request(user("hi"), assistant("", ToolCall("x", "find")), tool_result("x", "r"))
    first = [event async for event in provider.stream(asked)]
    await anext(aiter(provider.stream(request())))
    again = [event async for event in OfflineProvider({"s": provider._scripts["s"]}).stream(asked)]
    assert first == [event async for event in provider.stream(asked)] == again


async def test_usage_counts_four_characters_a_token_of_all_that_is_sent() -> None:
    (finished,) = await stream(Call("find", {"n": 1}), request(user("12345"), user("123456789")))
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(input=6, output=3)  # 7 + 5 + 9 characters; "find" and "{'n': 1}"


async def test_a_failure_comes_before_anything_else() -> None:
    seen, error = await broken(OfflineProvider({"s": Script([Fail("overloaded", retry_after=7)])}))
    assert seen == []
    assert (type(error), error.message, error.retry_after) == (ProviderError, "overloaded", 7)


async def test_a_fatal_failure_is_fatal() -> None:
    _, error = await broken(OfflineProvider({"s": Script([Fail(fatal=True)])}))
    assert type(error) is ProviderFatal


@pytest.mark.parametrize(("after", "given"), [(0, 0), (1, 1), (2, 2), (99, 3)])
async def test_a_cut_stream_never_finishes(after: int, given: int) -> None:
    seen, error = await broken(OfflineProvider({"s": Script([Cut(Say("one two three"), after)])}))
    assert len(seen) == given
    assert all(isinstance(event, TextDelta) for event in seen)
    assert type(error) is ProviderError
    assert f"after {given} chunks" in error.message


async def test_a_call_that_is_cut_is_never_announced() -> None:
    seen, _ = await broken(OfflineProvider({"s": Script([Cut(Call("find", text="wait"), 1)])}))
    assert seen == [TextDelta("wait")]


async def test_an_unknown_script_is_fatal_and_named() -> None:
    provider = OfflineProvider({"s": Script()})
    with pytest.raises(ProviderFatal, match="no script 'other' for the offline provider; there are: s"):
        await anext(aiter(provider.stream(request(model="other"))))


async def test_a_hook_is_asked_before_each_chunk_and_before_the_end() -> None:
    asked: list[int] = []

    async def note(request: ModelRequest, chunk: int, /) -> None:
        asked.append(chunk)

    provider = OfflineProvider({"s": Script([Say("a b")])}, note)
    assert len([event async for event in provider.stream(request())]) == 3
    assert asked == [0, 1, 2]


@pytest.mark.parametrize("breaks_at", [0, 1, 2])
async def test_a_hook_can_break_the_stream(breaks_at: int) -> None:
    async def break_off(request: ModelRequest, chunk: int, /) -> None:
        if chunk == breaks_at:
            raise ProviderError("by the hook")

    seen, error = await broken(OfflineProvider({"s": Script([Say("a b")])}, break_off))
    assert len(seen) == breaks_at
    assert error.message == "by the hook"


async def test_a_held_stream_can_be_abandoned() -> None:
    reached = asyncio.Event()

    async def hold(request: ModelRequest, chunk: int, /) -> None:
        if chunk == 1:
            reached.set()
            await asyncio.Event().wait()

    provider = OfflineProvider({"s": Script([Say("a b")])}, hold)

    async def read() -> None:
        async with aclosing(provider.stream(request())) as events:
            async for _ in events:
                pass

    reading = asyncio.create_task(read())
    await reached.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


def test_the_notice_says_what_it_is_not() -> None:
    assert notice("offline/down") == "offline/down is a scripted stand-in, not a language model."
