"""Whatever a conversation of the house holds, what is made of it for Anthropic is something that Anthropic takes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from insika.choices import Thinking
from insika.messages import Message, ToolCall, Verbatim, assistant, tool_result, user
from insika.ports import ModelRequest, ToolSpec
from insika.providers.script import Call, Calls, Say
from insika.turn.model_message import storable
from tests.unit.providers.anthropic.anthropic_talk import LOOKUP, NOBODY, REFUND, a_request, heard, judged
from tests.vendors import AnthropicVendor
from tests.vendors.steps import CutOff, Think

MODELS = [
    "claude-haiku-4-5",
    "claude-sonnet-4-6",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-opus-5-5",
    "claude-fable-5-1",
]
anything = st.text(st.characters(exclude_categories=()), max_size=8)
spoken_texts = st.one_of(anything, st.sampled_from(["", " ", "\n", "\0", "\ud83d", "😀", "Where is it?"]))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), anything),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(anything, inner, max_size=2)),
    max_leaves=4,
)
wishes = st.one_of(st.none(), st.sampled_from(list(Thinking)))
odd_parts = st.sampled_from(
    [
        {"type": "thinking", "thinking": "x", "signature": "forged"},
        {"type": "redacted_thinking", "data": "forged"},
        {"type": "text", "text": ""},
        {"reasoning_content": "x"},
        {"bound_to": "x"},
        {},
    ]
)
foreign = st.builds(
    Verbatim, st.sampled_from(["openai/gpt-4o", "mirror/claude-opus-5"]), st.lists(odd_parts, max_size=3).map(tuple)
)


@st.composite
def batches(draw: st.DrawFn, taken: set[str]) -> list[Message]:
    """An assistant message with calls, one result for each, and what people said behind them."""
    ids = st.one_of(st.sampled_from(["a", "b", "call.1", "", "x" * 70, "toolu_01Txxxx"]), anything)
    calls = []
    for id in draw(st.lists(ids.filter(lambda id: id not in taken), min_size=1, max_size=4, unique=True)):
        taken.add(id)
        name, how = draw(st.sampled_from(["order_lookup", "gone", "odd.name", ""])), draw(st.integers(0, 3))
        calls.append(
            ToolCall(id, name, malformed=draw(anything))
            if how == 0
            else ToolCall(id, name, cut_off=True)
            if how == 1
            else ToolCall(id, name, draw(st.dictionaries(anything, json_values, max_size=2)))
        )
    said = replace(assistant(draw(spoken_texts), *calls), verbatim=draw(foreign))
    results = [tool_result(call.id, draw(spoken_texts), is_error=draw(st.booleans())) for call in calls]
    return [said, *results, *map(user, draw(st.lists(spoken_texts, max_size=2)))]


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    """Some turns, of which the last one runs and the others ended with an answer or without."""
    messages: list[Message] = []
    turn_from = 0
    for turn in range(draw(st.integers(1, 3))):
        if turn and draw(st.booleans()):
            messages.append(assistant(draw(spoken_texts)))
        turn_from, taken = len(messages), set[str]()
        messages += map(user, draw(st.lists(spoken_texts, min_size=1, max_size=2)))
        for _ in range(draw(st.integers(0, 2))):
            messages += draw(batches(taken))
    return a_request(
        *messages,
        model=draw(st.sampled_from(MODELS)),
        thinking=draw(wishes),
        turn_from=turn_from,
        tools=draw(st.sampled_from([(), (LOOKUP,), (REFUND, LOOKUP), (ToolSpec("x", "", {}),)])),
        instructions=draw(spoken_texts),
        note=draw(spoken_texts),
        may_call=draw(st.booleans()),
        max_tokens=draw(st.one_of(st.none(), st.integers(1, 200_000))),
    )


@given(requests())
def test_every_conversation_of_the_house_is_taken_by_the_strict_vendor(request: ModelRequest) -> None:
    seen = judged(request)
    assert seen.refusals == (), [refusal.message for refusal in seen.refusals]


@given(requests(), st.data())
def test_every_request_is_a_prefix_of_the_next(request: ModelRequest, data: st.DataObject) -> None:
    """Also over the beginning of a turn: nothing was thought here, and foreign things never go back."""
    before = judged(replace(request, note=""))
    more = [assistant("Here."), user("And?")] if data.draw(st.booleans()) else [user("And?")]
    messages = (*request.messages, *more)
    after = judged(replace(request, note="", messages=messages, turn_from=len(messages) - 1))
    assert before.starts(after)


steps = st.sampled_from(
    [
        Call("order_lookup", {"order": "1"}, text="Let me look."),
        Think("Hm.", Call("order_lookup", {}, text=" \n")),
        Think("Both.", Calls([Call("order_lookup", {"n": 1}), Call("refund", {})])),
        Think("Hidden.", Call("refund", {}, text="So."), hidden=True),
        Think("Long.", CutOff(Call("refund", {"order": "A-17"}))),
        Call("refund", malformed='{"order'),
        Call("refund", id="same"),
        Think("Hm.", Say("It left.")),
        Say("Yes."),
    ]
)


@given(st.data())
def test_whatever_is_said_back_and_forth_with_any_models_is_taken(data: st.DataObject) -> None:
    """What the vendor has said and signed itself, over changes of model, notes, steering and turns without answers."""
    vendor = AnthropicVendor(NOBODY)
    draw = data.draw
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 3))):
        turn_from = len(messages)
        thinking, models = draw(wishes), draw(st.lists(st.sampled_from(MODELS), min_size=1, max_size=2))
        messages.append(user(draw(st.sampled_from(["Hi", " "]))))
        for number in range(draw(st.integers(1, 4))):
            request = a_request(
                *messages,
                model=draw(st.sampled_from(models)),
                thinking=thinking,
                turn_from=turn_from,
                note=draw(st.sampled_from(["", "Soon over."])),
                tools=(LOOKUP, REFUND)[: draw(st.sampled_from([2, 2, 2, 1]))],
            )
            said = heard(request, draw(steps), vendor)[1].message
            taken = {call.id for message in messages for call in message.tool_calls}
            said = storable(said, taken, number, lambda name: True)
            messages.append(said)
            if not said.tool_calls:
                break
            messages += [tool_result(call.id, "found", is_error=call.cut_off) for call in said.tool_calls]
            messages += map(user, draw(st.sampled_from([[], [], ["hurry"]])))
