"""Fault 37: the recorded usage of each vendor comes to the four numbers that it means, read alone or from a stream."""

from __future__ import annotations

from typing import Any

import pytest

from insika.messages import Usage
from insika.ports import UsageSoFar
from insika.providers.openai.usage import usage_of
from insika.providers.script import Say, Script
from tests.unit.providers.openai.chat_cases import Fake, all_of, asked, speaking
from tests.vendors.recordings import Recording, recordings
from tests.vendors.steps import Charge

ALL = [one for one in recordings() if one.vendor != "anthropic"]
each = pytest.mark.parametrize("recording", ALL, ids=[f"{one.vendor}: {one.name}" for one in ALL])


@each
def test_a_recording_means_these_four_numbers(recording: Recording) -> None:
    assert usage_of(recording.usage) == recording.expected


@each
async def test_a_recording_means_the_same_at_the_end_of_a_stream(recording: Recording) -> None:
    fake = Fake(recording.vendor)
    async with speaking(Script([Charge(Say("Hello."), recording.usage)]), fake) as (_, provider):  # type: ignore[list-item]
        events = await all_of(provider, asked(fake=fake))
    finished = events[-1]
    assert (finished.usage, finished.measured) == (recording.expected, True)  # type: ignore[union-attr]
    assert [event.usage for event in events if isinstance(event, UsageSoFar)] == [recording.expected]


def counted(**more: Any) -> Usage | None:
    return usage_of({"prompt_tokens": 100, "completion_tokens": 10, **more})


def test_the_parts_are_disjoint_whatever_a_vendor_says() -> None:
    for details, expected in (
        ({"cached_tokens": 60}, Usage(40, 10, 60, 0)),
        ({"cached_tokens": 60, "cache_write_tokens": 30}, Usage(10, 10, 60, 30)),
        ({"cached_tokens": 160}, Usage(0, 10, 100, 0)),
        ({"cached_tokens": 60, "cache_write_tokens": 70}, Usage(0, 10, 60, 40)),
        ({"cached_tokens": -5, "cache_write_tokens": "7"}, Usage(100, 10, 0, 0)),
        (None, Usage(100, 10, 0, 0)),
        ("none", Usage(100, 10, 0, 0)),
    ):
        found = counted(prompt_tokens_details=details)
        assert found == expected
        assert found.input + found.cache_read + found.cache_write == 100


def test_what_is_read_from_the_cache_is_said_in_two_ways_and_counted_once() -> None:
    hit = {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}
    assert counted(**hit) == counted(**hit, prompt_tokens_details={"cached_tokens": 60}) == Usage(40, 10, 60, 0)


def test_what_was_reasoned_is_output_and_counted_once() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 6}}
    assert counted(**details, total_tokens=110) == Usage(100, 10), "it is among the ten"
    assert counted(**details, total_tokens=116) == Usage(100, 16), "it stands beside them"
    assert counted(**details) == Usage(100, 10)
    assert counted(**details, total_tokens=999) == Usage(100, 10)


@pytest.mark.parametrize(
    "wrong",
    [None, 7, "usage", [], {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}, {"total": 3}],
)
def test_what_counts_nothing_is_no_usage(wrong: object) -> None:
    assert usage_of(wrong) is None
