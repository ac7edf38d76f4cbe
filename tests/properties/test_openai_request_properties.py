"""Any conversation of the house is one that every dialect of chat completions takes, and it grows at its tail alone."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from insika.choices import Thinking
from insika.messages import Message, Role, ToolCall, Verbatim, assistant, tool_result, user
from insika.ports import ModelRequest, ToolSpec
from insika.providers.openai.conversation import wire_id
from insika.providers.openai.dialects import REASONING_CONTENT
from tests.unit.providers.openai.chat_cases import MODELS, Fake, judged
from tests.vendors.openai.reading import as_house

NAMES = [
    "gpt-4o",
    "gpt-4.1-mini",
    "o3",
    "gpt-5",
    "gpt-5.1",
    "gpt-5.2",
    "gpt-5.4",
    "gpt-5.5",
    "gpt-5.6-terra",
    "gpt-6",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SAID = TEXT.filter(bool)
TOOL_NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
SCHEMA = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(TEXT, st.just({}), max_size=2)}
)


@st.composite
def call(draw: st.DrawFn, id: str) -> ToolCall:
    name = draw(TOOL_NAME)
    match draw(st.sampled_from(["read", "malformed", "cut off"])):
        case "malformed":
            return ToolCall(id, name, {}, draw(TEXT))
        case "cut off":
            return ToolCall(id, name, cut_off=True)
    return ToolCall(id, name, draw(st.dictionaries(TEXT, JSON, max_size=3)))


@st.composite
def step(draw: st.DrawFn, reference: str) -> list[Message]:
    """A batch with its results, and what people and the engine say at the boundary."""
    ids = draw(st.lists(TEXT, min_size=1, max_size=4, unique_by=wire_id))
    calls = tuple(draw(call(id)) for id in ids)
    own = draw(st.sampled_from([reference, "elsewhere/other"]))
    part = draw(st.sampled_from([{REASONING_CONTENT: "Hm."}, {REASONING_CONTENT: ""}, {"type": "reasoning.text"}, {}]))
    verbatim = draw(st.sampled_from([Verbatim(), Verbatim(own, (part,)), Verbatim(own, (part, part))]))
    results = [tool_result(id, draw(TEXT), is_error=draw(st.booleans())) for id in ids]
    joined = [user(text) for text in draw(st.lists(SAID, max_size=2))]
    return [Message(Role.ASSISTANT, draw(TEXT), calls, verbatim=verbatim), *results, *joined]


@st.composite
def turn(draw: st.DrawFn, reference: str, *, ended: bool) -> list[Message]:
    opening = [user(text) for text in draw(st.lists(SAID, min_size=1, max_size=3))]
    steps = [message for part in draw(st.lists(step(reference), max_size=3)) for message in part]
    return [*opening, *steps, *([assistant(draw(TEXT))] if ended else [])]


@st.composite
def requests(draw: st.DrawFn, fake: Fake) -> ModelRequest:
    """One of a running turn: it ends with what a person or a tool has said."""
    model = draw(st.sampled_from(NAMES)) if fake is Fake.OPENAI else MODELS[fake]
    past = [message for part in draw(st.lists(turn(f"there/{model}", ended=True), max_size=2)) for message in part]
    return ModelRequest(
        model,
        draw(TEXT),
        [*past, *draw(turn(f"there/{model}", ended=False))],
        draw(st.lists(st.builds(ToolSpec, TOOL_NAME, TEXT, SCHEMA), max_size=3, unique_by=lambda tool: tool.name)),
        provider="there",
        may_call=draw(st.booleans()),
        thinking=draw(st.none() | st.sampled_from(Thinking)),
        max_tokens=draw(st.none() | st.integers(1, 16384)),
        turn_from=len(past),
        note=draw(TEXT),
    )


FAKES = st.sampled_from(list(Fake)).flatmap(lambda fake: st.tuples(st.just(fake), requests(fake)))


@given(FAKES)
@settings(max_examples=2 * settings().max_examples)  # over five fakes
def test_every_conversation_is_taken_and_says_what_it_said(case: tuple[Fake, ModelRequest]) -> None:
    fake, request = case
    seen = judged(request, fake)
    assert seen.refusals == ()
    read = as_house(seen.body)
    assert read.instructions == request.instructions
    assert [tool.name for tool in read.tools] == ([tool.name for tool in request.tools] if request.may_call else [])
    spoken = [one for one in request.messages if one.role is not Role.ASSISTANT or one.content or one.tool_calls]
    expected = [*map(as_sent, spoken), *([("user", request.note, [], None)] if request.note else [])]
    assert [as_sent(message) for message in read.messages] == expected


def as_sent(message: Message) -> tuple[str, str, list[Any], str | None]:
    calls = [
        (wire_id(call.id), call.name, dict(call.arguments) if call.malformed is None and not call.cut_off else {})
        for call in message.tool_calls
    ]
    answered = None if message.tool_call_id is None else wire_id(message.tool_call_id)
    return (message.role.value, message.content, calls, answered)


@given(FAKES, st.data())
def test_what_was_sent_earlier_in_the_turn_stands_at_the_head(
    case: tuple[Fake, ModelRequest], data: st.DataObject
) -> None:
    """Fault 42."""
    fake, request = case
    ends = [
        at + 1
        for at, message in enumerate(request.messages)
        if at >= request.turn_from and message.role is not Role.ASSISTANT
    ]
    earlier = ModelRequest(
        request.model,
        request.instructions,
        request.messages[: data.draw(st.sampled_from(ends))],
        request.tools,
        request.provider,
        data.draw(st.booleans()),
        request.thinking,
        data.draw(st.none() | st.integers(1, 9)),
        request.turn_from,
    )
    assert judged(earlier, fake).starts(judged(request, fake))


@given(st.text(max_size=100))
def test_an_id_is_one_that_all_take_and_a_mended_one_is_left_alone(id: str) -> None:
    mended = wire_id(id)
    assert 0 < len(mended) <= 40
    assert wire_id(mended) == mended
    assert json.dumps(mended).encode().isascii()


@given(st.lists(st.text(max_size=60), unique=True, max_size=20))
def test_ids_stay_apart(ids: list[str]) -> None:
    foreign = [id for id in ids if not id.startswith("call_")]
    assert len({wire_id(id) for id in foreign}) == len(foreign)
