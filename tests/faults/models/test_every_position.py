"""Faults 1 and 2: whatever comes between calls and results, or behind them, is taken by both vendors: steers, notices
of the engine, calls that were never run, a synthesized end; also by another process, and by another vendor's model."""

from __future__ import annotations

import pytest

from insika.providers.script import Call, Calls, Rule, Say, Script
from insika.storage.rows import TurnState, Verdict
from tests.actor_world import Gate, profile
from tests.faults.hosted import ANTHROPIC, DEEPSEEK, OPENAI, trading
from tests.vendors.steps import Think

PAIRS = [(ANTHROPIC, DEEPSEEK), (DEEPSEEK, ANTHROPIC), (OPENAI, ANTHROPIC)]
SIZES = [1, 2, 8]


def batch(size, first=0):
    return Think(f"{size} at once", Calls([Call("look", {"n": first + at}) for at in range(size)], text="Let me look."))


def told(size):
    return Script(
        rules=[
            Rule([batch(size), batch(size, 10), batch(size, 20), Say("First.")], when="^first", restarts=True),
            Rule([batch(size, 50), Think("well", Say("Other."))], when="^no,|^newer", restarts=True),
            Rule([batch(2, 70), Say("Ok.")], when="^second|^third", restarts=True),
        ],
        afterwards=Say("Good day."),
    )


def agent(trade, name, **limits):
    thinks = {} if name == OPENAI else {"thinking": "low"}
    return profile(model=trade.reference(name), params=thinks, limits={"queue_mode": "steer", **limits})


async def two_more_turns(place, trade, name):
    """In another process, and with another vendor's model."""
    another = await place.process(agent(trade, name), models=trade.models, settings=trade.settings)
    for text in ("second", "third"):
        await another.send(text)
        await another.idle()
    trade.nothing_was_refused()
    assert (await another.answers())[-2:] == ["Ok.", "Ok."]
    return another


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("first", "then"), PAIRS)
@pytest.mark.parametrize("boundary", [0, 20])
async def test_steers_at_every_boundary(place_for, first, then, size, boundary):
    async with trading(told(size), first, then) as trade:
        place = place_for(trade.script)
        process = await place.process(
            agent(trade, first, tool_concurrency=4), models=trade.models, settings=trade.settings
        )
        place.shop.gates["look", boundary] = gate = Gate()
        await process.send("first")
        await gate.reached()
        verdicts = [(await process.send(text)).verdict for text in ("oh, and", "no, the other one")]
        gate.open()
        await process.idle()
        assert verdicts == [Verdict.STEERED] * 2
        assert await process.answers() == ["Other."]
        another = await two_more_turns(place, trade, then)
        assert await another.said() == ["first", "oh, and", "no, the other one", "second", "third"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("first", "then"), PAIRS)
async def test_a_batch_that_was_interrupted(place_for, first, then, size):
    """The calls behind the one that runs are answered without having run."""
    async with trading(told(size), first, then) as trade:
        place = place_for(trade.script)
        process = await place.process(agent(trade, first), models=trade.models, settings=trade.settings)
        place.shop.gates["look", 10] = gate = Gate()
        accepted = await process.send("first")
        await gate.reached()
        await process.send("newer", queue_mode="interrupt")
        gate.open()
        await process.idle()
        assert (await process.turn(accepted.turn_id)).state is TurnState.CANCELLED
        assert await process.answers() == ["Other."]
        await two_more_turns(place, trade, then)


@pytest.mark.parametrize("steered", [False, True])
@pytest.mark.parametrize(("first", "then"), PAIRS)
async def test_notices_and_a_synthesized_end(place_for, first, then, steered):
    """The budget is told of behind the results; and behind its last call comes a steer, in front of the end."""
    async with trading(told(3), first, then) as trade:
        place = place_for(trade.script)
        limits = {"max_tool_calls": 8, "on_exhausted": "synthesize"}
        process = await place.process(agent(trade, first, **limits), models=trade.models, settings=trade.settings)
        place.shop.gates["look", 20] = gate = Gate()
        await process.send("first")
        await gate.reached()
        if steered:
            await process.send("oh, and")
        gate.open()
        await process.idle()
        (ended, *_) = process.events.of("turn_completed")
        assert ended.data["synthesized"]
        last = trade.seen(first)[3]
        assert last.body["tools"] == trade.seen(first)[0].body["tools"]
        assert last.body["tool_choice"] in ("none", {"type": "none"})
        assert [text for text in ("5 tool calls left", "2 tool calls left") if text not in last.raw.decode()] == []
        await two_more_turns(place, trade, then)
