"""The provider against fakes of all dialects, over real HTTP: conversations, limits, and one request for one stream."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Sequence

import pytest

from insika.choices import Thinking
from insika.messages import Message, Role, ToolCall, assistant, tool_result, user
from insika.ports import Finished, ModelRequest, Stop, TextDelta, UsageSoFar
from insika.providers.script import Call, Calls, Say, Script
from insika.turn.model_message import storable
from tests.unit.providers.openai.chat_cases import (
    MODELS,
    ORDER,
    Fake,
    all_of,
    answer_of,
    asked,
    batch,
    failure_of,
    said,
    speaking,
    thought,
)
from tests.unit.vendors.scripts_for_vendors import LOOKUP
from tests.vendors.steps import CutOff, Decline, Think
from tests.vendors.troubles import Refuses

each = pytest.mark.parametrize("fake", list(Fake))
MANY = Calls([LOOKUP, LOOKUP, LOOKUP], text="All of them.")


def never(name: str) -> bool:
    return False


def answered(message: Message) -> list[Message]:
    return [tool_result(call.id, "in the van") for call in message.tool_calls]


@each
@pytest.mark.parametrize("shred", [None, 1, 3], ids=["whole events", "one byte at a time", "three bytes at a time"])
async def test_a_conversation_with_a_tool_call(fake: Fake, shred: int | None) -> None:
    async with speaking(fake=fake, cache_minimum=0) as (vendor, provider):
        vendor.shred = shred
        request = asked(fake=fake, thinking=None if fake is Fake.OPENAI else Thinking.ON)
        events = await all_of(provider, request)
        called = events[-1]
        assert isinstance(called, Finished)
        assert said(events) == called.message.content == "Let me look."
        assert thought(events) == ("" if fake is Fake.OPENAI else "They want their order.")
        (call,) = called.message.tool_calls
        assert (call.name, call.arguments, call.malformed, call.cut_off) == (
            "order_lookup",
            dict(LOOKUP.arguments),
            None,
            False,
        )
        assert (called.stop, called.measured, called.usage) == (Stop.CALLS, True, vendor.requests[0].usage)
        assert UsageSoFar(called.usage) in events

        stored = storable(called.message, set(), 0, never)
        later = asked(
            user(ORDER), stored, *answered(stored), user("order, quick!"), fake=fake, thinking=request.thinking
        )
        answer = await answer_of(provider, later)
        assert answer.message == assistant("It left today. 😀")
        spent = vendor.requests[1].usage
        assert (answer.stop, answer.usage.total) == (Stop.END, spent.total)
        assert answer.usage == spent or fake is Fake.OLLAMA, "which says nothing of its cache"
        assert [seen.rules for seen in vendor.requests] == [frozenset(), frozenset()]
        assert vendor.requests[0].starts(vendor.requests[1])


@each
async def test_reasoning_goes_back_as_the_vendor_gave_it(fake: Fake) -> None:
    async with speaking(fake=fake) as (vendor, provider):
        message = (await answer_of(provider, asked(fake=fake, thinking=Thinking.ON))).message
        assert storable(message, set(), 0, never).verbatim == message.verbatim or fake is Fake.VLLM
        await answer_of(provider, asked(user(ORDER), message, *answered(message), fake=fake, thinking=Thinking.ON))
        again = vendor.requests[1].body["messages"][2]
        assert again.get("reasoning_content") == ("They want their order." if fake is Fake.DEEPSEEK else None)


@each
async def test_parallel_calls_have_ids_of_their_own_and_their_results_fit(fake: Fake) -> None:
    script = Script([MANY, Say("Done.")])
    async with speaking(script, fake) as (vendor, provider):
        message = (await answer_of(provider, asked(fake=fake))).message
        stored = storable(message, set(), 0, never)
        ids = [call.id for call in stored.tool_calls]
        assert len(set(ids)) == 3
        assert all(len(id) <= 40 for id in ids)
        for said_again in (message, stored):
            later = asked(user(ORDER), said_again, *answered(said_again), fake=fake)
            assert (await answer_of(provider, later)).message.content == "Done."
        assert {seen.rules for seen in vendor.requests} == {frozenset()}


@each
async def test_a_call_that_the_limit_fell_into_is_cut_off(fake: Fake) -> None:
    """Fault 41, and that the conversation goes on after it."""
    script = Script([CutOff(MANY), Say("Then not.")])  # type: ignore[list-item]
    async with speaking(script, fake) as (vendor, provider):
        cut = await answer_of(provider, asked(fake=fake))
        assert cut.stop is Stop.LENGTH
        assert [call.cut_off for call in cut.message.tool_calls] == [False, False, True]
        assert cut.message.tool_calls[2].arguments == {}
        stored = storable(cut.message, set(), 0, never)
        later = asked(user(ORDER), stored, *answered(stored), fake=fake)
        assert (await answer_of(provider, later)).message.content == "Then not."
        assert vendor.requests[1].rules == frozenset()


@each
async def test_a_text_that_the_limit_fell_into_is_said_so(fake: Fake) -> None:
    async with speaking(Script([CutOff(Say("a rather long text"))]), fake) as (_, provider):  # type: ignore[list-item]
        answer = await answer_of(provider, asked(fake=fake))
        assert (answer.message.content, answer.stop) == ("a rather ", Stop.LENGTH)


@each
async def test_a_refusal_is_said_so(fake: Fake) -> None:
    async with speaking(Script([Decline("I would rather")]), fake) as (_, provider):  # type: ignore[list-item]
        answer = await answer_of(provider, asked(fake=fake))
        assert (answer.message, answer.stop) == (assistant("I would rather"), Stop.REFUSAL)


@each
async def test_no_arguments_and_odd_ones_are_told_apart(fake: Fake) -> None:
    calls = [
        Call("refund", {}),
        Call("refund", {}, malformed=""),
        Call("refund", {}, malformed='{"a": '),
        Call("refund", {}, malformed="[1]"),
        Call("refund", {}, malformed="7"),
    ]
    async with speaking(Script([Calls(calls)]), fake) as (_, provider):
        found = (await answer_of(provider, asked(fake=fake))).message.tool_calls
    assert [call.malformed for call in found] == [None, None, '{"a": ', "[1]", "7"]
    assert all(call.arguments == {} for call in found)


async def test_one_stream_is_one_request_whatever_becomes_of_it() -> None:
    """Fault 40, the adapter's part: the SDK tries nothing again."""
    async with speaking() as (vendor, provider):
        for number, status in enumerate((200, 408, 409, 429, 500, 502, 503, 504, 529, 400), start=1):
            if status != 200:
                vendor.troubles.append(Refuses(status, headers={"retry-after": "0", "x-should-retry": "true"}))
                assert (await failure_of(provider, asked()))[0].status == status
            else:
                await all_of(provider, asked())
            assert len(vendor.requests) == number
        assert {(seen.method, seen.path) for seen in vendor.requests} == {("POST", "/v1/chat/completions")}
        assert {seen.streamed for seen in vendor.requests} == {True}


async def test_many_streams_go_on_at_once() -> None:
    async with speaking(Script([lambda scene: Say(scene.text)])) as (vendor, provider):
        texts = [f"number {n}" for n in range(40)]
        answers = await asyncio.gather(*[answer_of(provider, asked(user(text))) for text in texts])
        assert [answer.message.content for answer in answers] == texts
        assert len(vendor.requests) == 40


async def test_nothing_is_asked_before_the_first_event_is_wanted() -> None:
    async with speaking() as (vendor, provider):
        stream = provider.stream(asked())
        assert vendor.requests == []
        await anext(stream)
        assert len(vendor.requests) == 1
        await stream.aclose()


@each
async def test_a_conversation_grows_at_its_tail_alone(fake: Fake) -> None:
    """Fault 42: the hash of what was sent stands in what is sent next, over turns with batches, steers and notes."""
    script = Script([Calls([LOOKUP], text="Look."), Calls([LOOKUP, LOOKUP]), Say("There it is.")])
    thinking = Thinking.OFF if fake is Fake.DEEPSEEK else None  # kept reasoning ends with its turn: see `conversation`
    async with speaking(script, fake, cache_minimum=0) as (vendor, provider):
        log: list[Message] = []
        ids: set[str] = set()
        for turn in range(5):
            begins = len(log)
            log.append(user(f"turn {turn}"))
            for step in range(3):
                note = f"[insika] note {turn}.{step}" if turn % 2 else ""
                request = asked(*log, fake=fake, turn_from=begins, note=note, thinking=thinking)
                message = storable((await answer_of(provider, request)).message, ids, step, never)
                ids |= {call.id for call in message.tool_calls}
                log += [message, *answered(message)]
                if message.tool_calls and turn == 2:
                    log.append(user("and hurry"))
            assert log[-1].role is Role.ASSISTANT
        assert {seen.rules for seen in vendor.requests} == {frozenset()}
        stable = [_without_note(seen.pieces) for seen in vendor.requests]
        for before, after in itertools.pairwise(stable):
            assert _hash(after[: len(before)]) == _hash(before)
        assert all(seen.usage.cache_read > 0 for seen in vendor.requests[1:])


def _without_note(pieces: Sequence[bytes]) -> list[bytes]:
    return [piece for piece in pieces if b"[insika] note" not in piece]


def _hash(pieces: list[bytes]) -> str:
    return hashlib.sha256(b"\0".join(pieces)).hexdigest()


async def test_a_foreign_conversation_is_taken_over() -> None:
    """What another vendor's model said, with its ids, goes to each of them."""
    calls = (ToolCall("toolu_01A09q90qw90lq917835lq9", "order_lookup", {"order": "1"}), ToolCall("x" * 60, "refund"))
    for fake in Fake:
        async with speaking(fake=fake) as (vendor, provider):
            await answer_of(provider, asked(user("Hi"), *batch(*calls), user("so?"), fake=fake))
            assert vendor.requests[0].rules == frozenset()


async def test_a_model_that_is_not_there_is_fatal() -> None:
    async with speaking() as (vendor, provider):
        failure, events = await failure_of(provider, asked(model="gpt-7-imagined", thinking=Thinking.HIGH))
        assert (failure.status, failure.type, events) == (404, "provider_fatal", [])
        assert "model_not_found" in str(failure)
        assert len(vendor.requests) == 1


@each
async def test_a_thinking_model_that_answers_at_once(fake: Fake) -> None:
    script = Script([Think("Hm. " * 20, Say("Yes."))])  # type: ignore[list-item]
    async with speaking(script, fake) as (_, provider):
        request: ModelRequest = asked(fake=fake, thinking=Thinking.HIGH, model=MODELS[fake])
        events = await all_of(provider, request)
    assert said(events) == "Yes."
    assert thought(events) == ("" if fake is Fake.OPENAI else "Hm. " * 20)
    assert [type(event) for event in events].count(TextDelta) == 1
