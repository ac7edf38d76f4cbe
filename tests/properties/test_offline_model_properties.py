"""The offline model is a pure function of the conversation, and what it says is always a valid next message."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from insika.messages import Message, tool_result, user
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta, ToolSpec
from insika.providers.demo_script import demo_script
from insika.providers.offline import OfflineProvider, split_text
from insika.providers.script import Call, Calls, Rule, Say, Script
from insika.turn import sentences
from tests.strict import check_anthropic, check_openai

TOOLS = tuple(ToolSpec(name, "", {}) for name in ("order_lookup", "refund", "stock_check"))
MOST_STEPS = 60

texts = st.sampled_from(["Fine.", "One moment, please.", "x"])
calls = st.builds(Call, st.sampled_from(["find", "pay"]), st.just({"n": 1}), st.sampled_from(["", "Looking."]))
steps = st.one_of(
    st.builds(Say, texts), calls, st.builds(Calls, st.lists(calls, min_size=1, max_size=4), st.just("Several."))
)
scripts = st.builds(
    lambda plain, ruled: Script(plain, rules=[Rule(ruled, when="7", restarts=True)]),
    st.lists(steps, max_size=5),
    st.lists(steps, max_size=3),
)

people = st.sampled_from(
    [
        "hello",
        "where is order 1234?",
        "no, 5678",
        "orders 1234, 77777 and 1200",
        "refund 1234",
        "refund",
        "do you have Evening Birds?",
        "do you have",
        "research the catalogue",
        "thanks",
    ]
)
notices = st.sampled_from([sentences.budget_converge(10, 20), sentences.budget_answer_now(2)])
boundaries = st.lists(st.lists(people | notices, max_size=2), max_size=6)
results = st.sampled_from(
    [
        ('{"order_id": "1234", "found": true, "title": "T", "status": "delivered"}', False),
        ('{"order_id": "1200", "found": false}', False),
        ('{"title": "T", "copies": 2}', False),
        ("", False),
        ("plain words", False),
        ("[1, 2]", False),
        (sentences.UNKNOWN_OUTCOME, True),
        (sentences.not_run("tool_limit"), True),
    ]
)


def ask(provider: OfflineProvider, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[ModelEvent]:
    async def read() -> list[ModelEvent]:
        return [event async for event in provider.stream(ModelRequest("m", "", tuple(messages), tools))]

    return asyncio.run(read())


def talk(
    script: Script,
    turns: Sequence[str],
    joining: Sequence[Sequence[str]],
    given_results: Iterator[tuple[str, bool]],
    tools_end_at: int,
) -> None:
    """Hold a whole conversation, and ask each question twice: of this provider, and of one that never saw the rest."""
    provider = OfflineProvider({"m": script})
    messages: list[Message] = []
    boundary = asked = 0
    for text in turns:
        messages.append(user(text))
        for _ in range(MOST_STEPS):
            check_anthropic(messages, sent=True)
            check_openai(messages, sent=True)
            tools = TOOLS if asked < tools_end_at else ()
            asked += 1
            events = ask(provider, messages, tools)
            assert events == ask(OfflineProvider({"m": script}), messages, tools)
            *deltas, last = events
            assert isinstance(last, Finished)
            assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == last.message.content
            messages.append(last.message)
            if not last.message.tool_calls:
                break
            assert tools
            for call in last.message.tool_calls:
                content, is_error = next(given_results)
                messages.append(tool_result(call.id, content, is_error=is_error))
            if boundary < len(joining):
                messages += [user(text) for text in joining[boundary]]
                boundary += 1
        else:
            raise AssertionError("the turn does not end")
    check_anthropic(messages)
    check_openai(messages)


def endless(found: list[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    while True:
        yield from found


@settings(deadline=None, max_examples=60)
@given(
    scripts,
    st.lists(people, min_size=1, max_size=3),
    boundaries,
    st.lists(results, min_size=1, max_size=5),
    st.integers(0, 20),
)
def test_any_script_answers_by_the_conversation_alone(
    script: Script, turns: list[str], joining: list[list[str]], given_results: list[tuple[str, bool]], ends_at: int
) -> None:
    talk(script, turns, joining, endless(given_results), ends_at)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(people, min_size=1, max_size=3),
    boundaries,
    st.lists(results, min_size=1, max_size=5),
    st.integers(0, 40),
)
def test_the_demo_always_comes_to_an_answer(
    turns: list[str], joining: list[list[str]], given_results: list[tuple[str, bool]], ends_at: int
) -> None:
    talk(demo_script(), turns, joining, endless(given_results), ends_at)


@given(st.text())
def test_the_chunks_make_up_the_text(text: str) -> None:
    chunks = split_text(text)
    assert "".join(chunks) == text
    assert all(chunks)
