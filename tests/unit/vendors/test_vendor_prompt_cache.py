"""The caches of the fakes: what they say of a prefix that is stable, and of one that is not."""

from __future__ import annotations

import copy
from typing import Any

from insika.messages import Usage
from insika.providers.script import Say
from tests.unit.vendors import test_vendor_rules_of_anthropic as anthropic_case
from tests.unit.vendors import test_vendor_rules_of_openai as openai_case
from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, Seen, Vendor
from tests.vendors.cache import AutomaticCache, MarkedCache
from tests.vendors.spoken import spoken

MARK = {"type": "ephemeral"}


def usage_of(vendor: Vendor, body: dict[str, Any]) -> tuple[Seen, Usage]:
    if isinstance(vendor, AnthropicVendor):
        seen = anthropic_case.judged(body, vendor)
    else:
        assert isinstance(vendor, OpenAIVendor)
        seen = openai_case.judged(body, vendor.dialect)
    assert seen.refusals == ()
    return seen, vendor.speak(seen, spoken(Say("Yes."))).usage


def growing() -> list[dict[str, Any]]:
    """Three requests, each the one before and more, with a breakpoint that moves along."""
    bodies = []
    body = anthropic_case.conversation()
    for text in ("And then?", "And now?", "Well?"):
        body = copy.deepcopy(body)
        body["messages"][-1]["content"][-1].pop("cache_control", None)
        body["messages"] += [
            {"role": "assistant", "content": [{"type": "text", "text": "Soon."}]},
            {"role": "user", "content": [{"type": "text", "text": text, "cache_control": MARK}]},
        ]
        bodies.append(body)
    return bodies


def test_a_stable_prefix_is_read_and_only_the_tail_is_written() -> None:
    vendor = AnthropicVendor(SCRIPT, cache_minimum=0)
    found = [usage_of(vendor, body) for body in growing()]
    usages = [usage for _, usage in found]
    assert usages[0].cache_read == 0
    assert usages[1].cache_read == usages[0].cache_write
    assert usages[2].cache_read == usages[1].cache_read + usages[1].cache_write
    assert [usage.input for usage in usages] == [0, 0, 0]
    seen = [one for one, _ in found]
    assert seen[0].starts(seen[1])
    assert seen[1].starts(seen[2])
    assert seen[1].prefix_hash(len(seen[0].pieces)) == seen[0].prefix_hash()


def test_a_changed_tool_costs_the_whole_prefix() -> None:
    vendor = AnthropicVendor(SCRIPT, cache_minimum=0)
    first, second, _ = growing()
    one, before = usage_of(vendor, first)
    second["tools"][0]["description"] = "another"
    other, after = usage_of(vendor, second)
    assert after.cache_read == 0
    assert after.cache_write > before.cache_write
    assert one.shares_with(other) == 0


def test_the_order_of_keys_is_part_of_the_prefix() -> None:
    vendor = AnthropicVendor(SCRIPT, cache_minimum=0)
    first = anthropic_case.conversation()
    second = copy.deepcopy(first)
    second["tools"][0] = dict(reversed(list(second["tools"][0].items())))
    assert not usage_of(vendor, first)[0].starts(usage_of(vendor, second)[0])


def test_small_prompts_are_not_cached_unless_a_test_says_so() -> None:
    first, second, _ = growing()
    vendor = AnthropicVendor(SCRIPT)
    usages = [usage_of(vendor, body)[1] for body in (first, second)]
    assert [(usage.cache_read, usage.cache_write) for usage in usages] == [(0, 0), (0, 0)]


def test_an_automatic_cache_reads_the_longest_prefix() -> None:
    vendor = OpenAIVendor(SCRIPT, Dialect.OPENAI, cache_minimum=0)
    body = openai_case.conversation()
    assert usage_of(vendor, body)[1].cache_read == 0
    longer = copy.deepcopy(body)
    longer["messages"] += [{"role": "assistant", "content": "Soon."}, {"role": "user", "content": "And?"}]
    _, usage = usage_of(vendor, longer)
    assert usage.cache_read > usage.input > 0
    longer["messages"][0]["content"] = "Be brief."
    again = usage_of(vendor, longer)[1]
    assert 0 < again.cache_read < usage.cache_read, "the tools stand before the system prompt"


def test_a_marked_cache_looks_back_twenty_pieces_and_no_further() -> None:
    pieces = [bytes([65 + n]) * 40 for n in range(30)]
    cache = MarkedCache()
    cache.look("m", pieces[:5], [4], 0)
    assert cache.look("m", pieces[:25], [24], 0).read == 50
    cache = MarkedCache()
    cache.look("m", pieces[:4], [3], 0)
    assert cache.look("m", pieces[:25], [24], 0).read == 0


def test_an_automatic_cache_reads_in_steps_from_a_minimum_on() -> None:
    cache = AutomaticCache()
    pieces = [b"x" * 4 * 1000, b"y" * 4 * 100, b"z" * 4]
    cache.look("m", pieces[:2], 1024, 128)
    found = cache.look("m", pieces, 1024, 128)
    assert (found.read, found.fresh) == (1024, 77)
    assert cache.look("another model", pieces, 1024, 128).read == 0
