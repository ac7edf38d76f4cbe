"""Signed thinking goes back complete and in order while its turn runs, to the model that thought it, and never else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from insika.choices import Thinking
from insika.messages import NOTHING_VERBATIM, Message, assistant, user
from insika.ports import Finished, ModelRequest, ToolSpec
from insika.providers.anthropic.kept import prefix_digests
from insika.providers.anthropic.request import BINDING_BETA
from insika.providers.script import Call, Calls, Say
from insika.turn.model_message import storable
from tests.unit.providers.anthropic.anthropic_talk import NOBODY, a_request, answered, heard, judged, taken
from tests.vendors import AnthropicVendor
from tests.vendors.steps import CutOff, Think

HM = Think("Let me think about it.", Call("order_lookup", {"order": "A-17"}, text="Let me look."))
TWICE = Think("Both.", Calls([Call("order_lookup", {"order": "1"}), Call("refund", {})]))
THINKERS = ["claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-5", "claude-haiku-5-5", "claude-sonnet-5-5"]
ALWAYS = ["claude-opus-5-5", "claude-fable-5-1"]
BINDING = ["claude-opus-5-5", "claude-fable-5-1", "claude-sonnet-5-5", "claude-haiku-5-5"]


def stored(said: Finished) -> Finished:
    """As it comes back out of the log."""
    message = storable(said.message, frozenset(), 0, lambda name: True)
    parts = json.loads(json.dumps(message.verbatim.parts))
    return replace(said, message=replace(message, verbatim=replace(message.verbatim, parts=tuple(parts))))


def opened(model: str, step: object = HM, **fields: Any) -> tuple[AnthropicVendor, ModelRequest, Finished]:
    vendor = AnthropicVendor(NOBODY, cache_minimum=0)
    given = {"thinking": Thinking.MEDIUM, "turn_from": 2, **fields}
    request = a_request(user("Hi"), assistant("Yes?"), user("Where is it?"), model=model, **given)
    _, said = heard(request, step, vendor)
    return vendor, request, stored(said)


def thoughts(body: dict[str, Any]) -> list[str]:
    kinds = ("thinking", "redacted_thinking")
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block.get("thinking", "?") for block in blocks if block["type"] in kinds]


@pytest.mark.parametrize("model", [*THINKERS, *ALWAYS])
@pytest.mark.parametrize("step", [HM, TWICE, replace(HM, hidden=True)], ids=["one", "two", "redacted"])
def test_it_goes_back_as_it_came_for_as_long_as_the_turn_runs(model: str, step: object) -> None:
    vendor, request, said = opened(model, step)
    for count in (1, 2, 3):
        request = answered(request, said, *[user("hurry")] * (count == 2))
        body = taken(request, vendor)
        assert len(thoughts(body)) == count
        first = next(message for message in body["messages"][3:] if message["role"] == "assistant")
        assert first["content"][0] == said.message.verbatim.parts[-len(first["content"])] or count > 1
        assert vendor.requests[-1].headers.get("anthropic-beta") is None
        _, said = heard(request, step, vendor)
        said = stored(said)


@pytest.mark.parametrize("model", [*THINKERS, *ALWAYS])
def test_it_stays_behind_when_its_turn_has_ended(model: str) -> None:
    vendor, request, said = opened(model)
    messages = (*answered(request, said).messages, assistant("It left."), user("Thanks"))
    assert thoughts(taken(replace(request, messages=messages, turn_from=len(messages) - 1), vendor)) == []


@pytest.mark.parametrize("model", [*THINKERS, *ALWAYS])
def test_a_turn_that_ended_without_an_answer_leaves_nothing_that_is_missed(model: str) -> None:
    vendor, request, said = opened(model)
    messages = (*answered(request, said).messages, user("Are you there?"))
    following = replace(request, messages=messages, turn_from=len(messages) - 1)
    body = taken(following, vendor)
    assert thoughts(body) == []
    assert (body.get("thinking", {}).get("type") == "enabled") is False
    _, again = heard(following, HM, vendor)
    taken(answered(following, stored(again)), vendor)


@pytest.mark.parametrize("other", ["claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5", *ALWAYS])
@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5", "claude-sonnet-5-5"])
def test_another_model_never_gets_it_and_the_first_one_gets_it_again(model: str, other: str) -> None:
    vendor, request, said = opened(model)
    following = replace(answered(request, said), model=other)
    body = taken(following, vendor)
    assert thoughts(body) == []
    assert body.get("thinking", {}).get("type") != "enabled"
    _, others = heard(following, HM, vendor)
    back = replace(answered(following, stored(others)), model=model)
    body = taken(back, vendor)
    assert len(thoughts(body)) == (0 if model == "claude-haiku-4-5" else 1)


@pytest.mark.parametrize("provider", ["anthropic", "mirror"])
def test_the_same_name_at_another_provider_is_another_model(provider: str) -> None:
    vendor, request, said = opened("claude-opus-5")
    seen = judged(replace(answered(request, said), provider=provider), vendor)
    assert len(thoughts(dict(seen.body))) == (provider == "anthropic")


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5", "claude-haiku-5-5"])
def test_it_stays_behind_when_the_model_is_not_to_think_any_more(model: str) -> None:
    vendor, request, said = opened(model)
    body = taken(replace(answered(request, said), thinking=Thinking.OFF), vendor)
    assert thoughts(body) == []


@pytest.mark.parametrize("model", BINDING)
def test_behind_a_note_that_is_gone_the_vendor_is_told_to_drop_it(model: str) -> None:
    vendor, request, said = opened(model, note="The budget is nearly used up.")
    following = answered(replace(request, note=""), said)
    body = taken(following, vendor)
    assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert vendor.requests[-1].headers["anthropic-beta"] == BINDING_BETA
    _, again = heard(following, HM, vendor)
    taken(answered(following, stored(again)), vendor)


@pytest.mark.parametrize("model", BINDING)
def test_a_note_in_this_request_moves_nothing_that_came_before(model: str) -> None:
    vendor, request, said = opened(model)
    body = taken(replace(answered(request, said), note="Soon over."), vendor)
    assert len(thoughts(body)) == 1
    assert "anthropic-beta" not in vendor.requests[-1].headers


@pytest.mark.parametrize(
    "change",
    [
        {"tools": (ToolSpec("order_lookup", "Anew.", {"type": "object"}),)},
        {"instructions": "Be brief."},
    ],
    ids=["tools", "instructions"],
)
@pytest.mark.parametrize("model", BINDING)
def test_behind_another_prompt_the_vendor_is_told_to_drop_it(model: str, change: dict[str, Any]) -> None:
    vendor, request, said = opened(model)
    taken(replace(answered(request, said), **change), vendor)
    assert vendor.requests[-1].headers["anthropic-beta"] == BINDING_BETA


def test_a_model_that_says_nothing_of_thinking_is_told_to_drop_it_as_well() -> None:
    vendor, request, said = opened("claude-opus-5-5", thinking=None, note="Soon over.")
    body = taken(replace(answered(request, said), note=""), vendor)
    assert body["thinking"] == {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


@pytest.mark.parametrize("note", ["", "Soon over."])
def test_where_the_vendor_has_no_such_switch_it_is_left_out_when_the_prompt_has_changed(note: str) -> None:
    """Sonnet 5.5 that thinks between its calls only."""
    vendor, request, said = opened("claude-sonnet-5-5", note=note)
    body = taken(replace(answered(request, said), note="", thinking=Thinking.OFF), vendor)
    assert body["thinking"] == {"type": "between_tools"}
    assert len(thoughts(body)) == (not note)


def test_what_was_kept_by_hand_is_not_changed_by_what_is_sent() -> None:
    vendor, request, said = opened("claude-opus-5-5")
    before = json.dumps(said.message.verbatim.parts)
    following = answered(request, said)
    taken(following, vendor)
    taken(replace(following, thinking=Thinking.OFF, instructions="x"), vendor)
    assert json.dumps(said.message.verbatim.parts) == before


def test_only_what_the_message_does_not_say_itself_is_kept() -> None:
    _, _, plain = opened("claude-opus-5-5", Call("order_lookup", {}, text="Let me look."))
    assert plain.message.verbatim == NOTHING_VERBATIM
    _, _, answer = opened("claude-opus-5-5", Think("Hm.", Say("It left.")))
    assert answer.message.verbatim == NOTHING_VERBATIM
    _, _, called = opened("claude-opus-5-5")
    assert called.message.verbatim.model == "anthropic/claude-opus-5-5"


def test_a_blank_text_beside_the_thinking_is_not_kept_for_it_would_be_refused() -> None:
    step = Think("Hm.", Call("order_lookup", {"order": "1"}, text="\n\n"))
    vendor, request, said = opened("claude-haiku-4-5", step)
    assert said.message.content == ""
    body = taken(answered(request, said), vendor)
    assert [block["type"] for block in body["messages"][3]["content"]] == ["thinking", "tool_use"]


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5-5"])
def test_thinking_before_a_call_that_was_cut_off_goes_back_too(model: str) -> None:
    step = Think("Hm.", CutOff(Calls([Call("refund", {}), Call("order_lookup", {"order": "A-17"})])))
    vendor, request, said = opened(model, step)
    assert [call.cut_off for call in said.message.tool_calls] == [False, True]
    body = taken(answered(request, said), vendor)
    assert len(thoughts(body)) == 1
    assert body["messages"][3]["content"][-1]["input"] == {}


def test_kept_blocks_whose_calls_were_mended_are_of_no_use() -> None:
    vendor, request, said = opened("claude-opus-5")
    twin = Message(said.message.role, "", said.message.tool_calls)
    messages = [user("Hi"), twin, *answered(request, said).messages[4:5], user("And?"), said.message]
    following = a_request(*messages, *answered(request, said).messages[4:5], model="claude-opus-5", turn_from=3)
    body = judged(following, vendor).body
    assert thoughts(dict(body)) == []
    called = [
        block["id"] for message in body["messages"] for block in message["content"] if block["type"] == "tool_use"
    ]
    assert len(set(called)) == 2


def test_earlier_thinking_is_no_part_of_what_later_thinking_is_bound_to() -> None:
    said = [{"type": "text", "text": "Hi"}]
    thought = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, *said]
    assert prefix_digests("head", [said, said]) == prefix_digests("head", [thought, said])
    assert len(set(prefix_digests("head", [said, said]))) == 3
