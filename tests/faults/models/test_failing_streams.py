"""Fault 39: a stream fails, as its first event or in the midst, and the model behind it answers: whole, and once. Both
vendors' usage counts, and of what failed there is nothing in the log, on its way out, or before a client's eyes."""

from __future__ import annotations

import json

import pytest

from insika.agents.profile import EdgeStream
from insika.messages import Usage
from insika.providers.script import Call, Say, Script
from insika.turn.edge_frames import ANSWER, COMPLETED, NARRATION, REASONING, EdgeFrames
from tests.actor_world import CHANNEL, profile
from tests.faults.hosted import ANTHROPIC, DEEPSEEK, event_with, trading
from tests.vendors.steps import Think
from tests.vendors.troubles import Breaks, Cuts, Ending, Refuses

NARRATED, SAID = "Let me see to that first.", "All of it is paid now, thank you."
FIRST, SECOND = "They want to pay, and it is a lot.", "It went through, so I can tell them."
N = 123_456_789_012
SCRIPT = Script([Think(FIRST, Call("pay", {"n": N}, text=NARRATED)), Think(SECOND, Say(SAID))])
MARKS = {
    ANTHROPIC: {"thinking": "thinking_delta", "text": "text_delta", "arguments": "input_json_delta"},
    DEEPSEEK: {"thinking": '"reasoning_content": "', "text": '"content": "', "arguments": '"arguments"'},
}
WAYS = {
    "refused": lambda at: Refuses(529),
    "with its first event": lambda at: Breaks(0),
    "cut before its first event": lambda at: Cuts(0),
    "after one token": lambda at: Cuts(at("thinking") + 1, ending=Ending.CLOSE),
    "in the midst of a token": lambda at: Cuts(at("thinking") + 1, bytes=20),
    "in the midst of the text": lambda at: Breaks(at("text", 2)),
    "in the midst of the arguments": lambda at: Cuts(at("arguments", 2), ending=Ending.DONE),
    "by its vendor's word in the midst of the arguments": lambda at: Breaks(at("arguments", 2)),
}
BEGUN = ("after one token", "in the midst of a token", "in the midst of the text", "in the midst of the arguments")


def fails(trade, name, way, *, step):
    """Every request of that step that this vendor gets fails in one way."""

    def choose(seen):
        if _step(seen) != step:
            return None
        return WAYS[way](lambda kind, nth=0: event_with(name, trade.script, seen, MARKS[name][kind], nth))

    trade.vendors[name].choose = choose


def _step(seen):
    return 1 + sum(1 for message in seen.body["messages"] if message["role"] == "assistant")


SHOWN = (REASONING, NARRATION, ANSWER)


def shown(process):
    """What a client who may see everything got to see, put together."""
    edge = EdgeFrames(EdgeStream(thinking=True, intermediate=True))
    frames = [frame for event in process.events.events for frame in edge.read(event)]
    assert frames[-1].type == COMPLETED
    return ["".join(frame.data["delta"] for frame in frames if frame.type == kind) for kind in SHOWN]


async def nothing_is_left_of_what_failed(process, thought):
    said = [(message.role, message.content, len(message.tool_calls)) for message in await process.messages()]
    assert said == [
        ("user", "pay all", 0),
        ("assistant", NARRATED, 1),
        ("tool", f"pay {N} done", 0),
        ("assistant", SAID, 0),
    ]
    assert [(name, n) for name, n, _ in process.place.shop.ran] == [("pay", N)]
    assert shown(process) == [thought, NARRATED, SAID]
    (row,) = await process.select("SELECT payload FROM outbox")
    assert json.loads(row["payload"])["content"] == SAID


async def paid(place, trade, first, second, retries):
    agent = profile(
        model=trade.reference(first),
        params={"thinking": "low"},
        reliability={"retries": retries, "fallback": [trade.reference(second)]},
    )
    process = await place.process(agent, models=trade.models, settings=trade.settings)
    accepted = await process.send("pay all", channel=CHANNEL)
    await process.idle()
    return process, await process.store.real.model_calls(accepted.turn_id)


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize(("first", "second"), [(ANTHROPIC, DEEPSEEK), (DEEPSEEK, ANTHROPIC)])
@pytest.mark.parametrize(
    ("step", "way"), [(1, way) for way in WAYS] + [(2, way) for way in WAYS if "arguments" not in way]
)
async def test_the_answer_is_whole_and_once_and_both_are_booked(place_for, first, second, retries, step, way):
    async with trading(SCRIPT, first, second) as trade:
        fails(trade, first, way, step=step)
        process, rows = await paid(place_for(SCRIPT), trade, first, second, retries)
        trade.nothing_was_refused()

    tries = retries + 1
    assert [len(trade.seen(name)) for name in (first, second)] == [tries + step - 1, 3 - step]
    # Within a batch that another vendor's model began, Anthropic's of this age cannot be asked to think.
    await nothing_is_left_of_what_failed(process, FIRST if step == 2 and second == ANTHROPIC else FIRST + SECOND)

    asked = [trade.reference(first)] * (step - 1 + tries) + [trade.reference(second)] * (3 - step)
    assert [row.model for row in rows] == asked
    failed = rows[step - 1 : step - 1 + tries]
    assert {row.state for row in failed} == {"estimated"}
    # A vendor that refuses outright bills nothing; one that had begun may.
    assert all((row.usage.total == 0) is (way == "refused") for row in failed), "a request was booked wrongly"
    whole = [row for row in rows if row not in failed]
    assert {row.state for row in whole} == {"measured"}
    charged = [seen.usage for name in (first, second) for seen in trade.seen(name) if seen.trouble is None]
    assert [row.usage for row in whole] == charged
    (ended,) = process.events.of("turn_completed")
    assert Usage(**ended.data["usage"]) == sum((row.usage for row in rows), Usage())
    assert (ended.data["model"], ended.data["model_source"]) == (trade.reference(second), "fallback")
    if first == ANTHROPIC and way in BEGUN:
        told = [seen.usage for seen in trade.seen(first)[step - 1 :]]
        assert [input_of(row.usage) for row in failed] == [input_of(usage) for usage in told]


def input_of(usage):
    """What a vendor tells as soon as it begins."""
    return usage.input, usage.cache_read, usage.cache_write
