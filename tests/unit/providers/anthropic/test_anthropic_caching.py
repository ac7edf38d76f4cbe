"""The prompt cache: what each request reads of what the last one wrote, by the fake's own cache."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from insika.choices import Thinking
from insika.messages import Message, Usage, assistant, user
from insika.ports import ModelRequest
from insika.providers.script import Call, Calls, Say
from tests.unit.providers.anthropic.anthropic_talk import NOBODY, a_batch, a_request, answered, heard, judged
from tests.vendors import AnthropicVendor, Seen
from tests.vendors.steps import Think


def marks(body: Any) -> list[tuple[Any, ...]]:
    """Where breakpoints stand, with what stands there."""
    found: list[tuple[Any, ...]] = [("tool", tool["name"]) for tool in body.get("tools", ()) if "cache_control" in tool]
    found += [("system",) for block in body.get("system", ()) if "cache_control" in block]
    for at, message in enumerate(body["messages"]):
        found += [(at, block["type"]) for block in message["content"] if "cache_control" in block]
    return found


def usages(requests: Sequence[ModelRequest]) -> list[Usage]:
    vendor = AnthropicVendor(NOBODY, cache_minimum=0)
    return [heard(request, Say("Yes."), vendor)[0].usage for request in requests]


def reads_all_that_was_written(before: Usage, after: Usage) -> bool:
    return after.cache_read == before.cache_read + before.cache_write > 0


def test_breakpoints_stand_where_the_page_wants_them() -> None:
    first, second = [user("One")], [assistant("Yes."), user("Two"), *a_batch("a"), *a_batch("b"), user("hurry")]
    assert marks(judged(a_request(*first)).body) == [("system",), (0, "text")]
    assert marks(judged(a_request(*first, *second)).body) == [("system",), (0, "text"), (4, "tool_result"), (6, "text")]
    bare = a_request(*first, *second, instructions="")
    assert marks(judged(bare).body)[0] == ("tool", "refund")
    assert len(marks(judged(a_request(*first, instructions="", tools=())).body)) == 1


@pytest.mark.parametrize("calls", [1, 3, 12, 60])
def test_each_step_of_a_turn_reads_what_the_last_one_wrote_however_large_its_batch(calls: int) -> None:
    messages: list[Message] = [user("Go!")]
    requests = [a_request(*messages)]
    for step in range(4):
        messages += [*a_batch(*[f"c{step}-{n}" for n in range(calls)], text="Next."), *[user("go on")] * (step % 2)]
        requests.append(a_request(*messages))
    found = usages(requests)
    for before, after in itertools.pairwise(found):
        assert reads_all_that_was_written(before, after)
        assert after.input == 0


def test_each_turn_reads_what_the_last_one_wrote() -> None:
    messages: list[Message] = []
    requests = []
    for turn in range(6):
        messages.append(user(f"Question {turn}"))
        for step in range(turn * 6 % 13):
            requests.append(a_request(*messages))
            messages += a_batch(f"{turn}-{step}")
        requests.append(a_request(*messages))
        messages.append(assistant("Here."))
    found = usages(requests)
    assert all(reads_all_that_was_written(*pair) for pair in itertools.pairwise(found))


def test_a_note_costs_itself_alone() -> None:
    messages = [user("Go!"), *a_batch("a"), *a_batch("b")]
    noted = [a_request(*messages[:end], note="The budget is nearly used up." * (end != 3)) for end in (1, 3, 5)]
    found = usages(noted)
    assert all(reads_all_that_was_written(*pair) for pair in itertools.pairwise(found))
    assert [usage.input > 0 for usage in found] == [True, False, True]


def test_sessions_of_one_agent_share_its_tools_and_instructions() -> None:
    vendor = AnthropicVendor(NOBODY, cache_minimum=0)
    heard(a_request(user("One")), Say("Yes."), vendor)
    seen, _ = heard(a_request(user("Another")), Say("Yes."), vendor)
    assert seen.usage.cache_read > 0
    assert seen.usage.input == 0


@pytest.mark.parametrize("steps", [2, 15])
@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5-5"])
def test_a_turn_that_has_been_thought_is_read_up_to_where_it_began(model: str, steps: int) -> None:
    """Its thinking is sent no more when it has ended, so that all behind its first words is another prompt."""
    vendor = AnthropicVendor(NOBODY, cache_minimum=0)
    request = a_request(user("Hi"), assistant("Yes?"), user("Go!"), model=model, thinking=Thinking.LOW, turn_from=2)
    opening, said = heard(request, Think("Hm.", Call("order_lookup", {})), vendor)
    for _ in range(steps):
        request = answered(request, said)
        _, said = heard(request, Think("Hm.", Calls([Call("order_lookup", {})])), vendor)
    ended = (*answered(request, said).messages, assistant("Done."), user("Thanks"))
    seen, _ = heard(replace(request, messages=ended, turn_from=len(ended) - 1), Say("Bye."), vendor)
    assert seen.usage.cache_read >= opening.usage.cache_read + opening.usage.cache_write


def shares_all_but_its_tail(before: Seen, after: Seen) -> bool:
    return before.starts(after)


def test_the_prompt_of_a_growing_conversation_only_grows() -> None:
    """Over many turns, with everything that can be in one (notes are not kept, and so not counted here)."""
    messages: list[Message] = []
    sent: list[Seen] = []
    for turn in range(20):
        messages += [user(f"Question {turn}"), *[user("and this")] * (turn % 3 == 1)]
        for step in range(turn % 4):
            sent.append(judged(a_request(*messages, may_call=step != 2, max_tokens=turn + 1)))
            messages += a_batch(*[f"{turn}-{step}-{n}" for n in range(1 + turn % 3)], text="Look." * (turn % 2))
            messages += [user("steered")] * (turn % 5 == 2)
        sent.append(judged(a_request(*messages)))
        messages += [assistant("Here.")] * (turn % 7 != 3)
    assert len(sent) > 40
    assert all(seen.refusals == () for seen in sent)
    assert all(shares_all_but_its_tail(*pair) for pair in itertools.pairwise(sent))


def test_nothing_but_the_note_parts_a_request_with_one_from_one_without() -> None:
    messages = [user("Go!"), *a_batch("a"), user("hurry")]
    plain, noted = judged(a_request(*messages)), judged(a_request(*messages, note="Soon over."))
    assert plain.starts(noted)
    assert len(noted.pieces) == len(plain.pieces) + 1
