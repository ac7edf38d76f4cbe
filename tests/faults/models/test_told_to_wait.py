"""Fault 40: a vendor that asks to wait is asked as often as the agent's policy says, counted at the vendor: without one
just once, and by no layer below it again. Between two requests lies the wait that was asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from insika.providers.script import Say, Script
from insika.reliability.classify import LONG_WAIT_S
from insika.storage.rows import TurnState
from tests.actor_world import profile
from tests.faults.hosted import ANTHROPIC, DEEPSEEK, OPENAI, trading
from tests.vendors.troubles import anthropic_resets, openai_resets, rate_limited, retry_after_values

SCRIPT = Script(afterwards=Say("At last."))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = tuple(retry_after_values(NOW))
LONG = frozenset({"just long", "very long", "beyond all bounds", "date long ahead"})
"""More than a turn spends waiting."""
LEAST = {"seconds": 7.0, "fraction": 0.5, "just short": LONG_WAIT_S, "date": 20.0}
"""What must have passed before the next request; of a date, less what this test may take."""
OWN_MOST = 4.0
"""More than the policy waits of its own accord before its first and its second retry together."""
VENDORS = (ANTHROPIC, OPENAI)


def waits_for(name, kind):
    """In every answer; the headers that a vendor sends along tell of something else."""
    value = retry_after_values(datetime.now(UTC))[kind]
    beside = anthropic_resets(datetime.now(UTC)) if name == ANTHROPIC else openai_resets()
    return lambda seen: rate_limited(value, **beside)


async def ended(place, trade, name, **reliability):
    agent = profile(model=trade.reference(name), **reliability)
    process = await place.process(agent, models=trade.models, settings=trade.settings)
    accepted = await process.send("hello")
    before = place.clock.now()
    await process.idle()
    waited_s = (place.clock.now() - before).total_seconds()
    return process, await process.turn(accepted.turn_id), waited_s


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("kind", KINDS)
async def test_without_a_policy_it_is_asked_once(place_for, name, kind):
    async with trading(SCRIPT, name) as trade:
        trade.vendors[name].choose = waits_for(name, kind)
        process, turn, waited_s = await ended(place_for(SCRIPT), trade, name)
        assert len(trade.seen(name)) == 1
        trade.nothing_was_refused()
    assert (turn.state, turn.error["type"]) == (TurnState.FAILED, "provider_unavailable")
    assert waited_s == 0
    assert (turn.error.get("retry_after") or 0.0) >= LEAST.get(kind, 0.0)
    assert (await process.store.real.model_calls(turn.id))[0].attempt == 1
    (told,) = process.events.of("provider_failure")
    assert told.data["action"] == ("rate_limited_long" if kind in LONG else "rate_limited_short")


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("kind", KINDS)
async def test_with_retries_it_is_asked_so_often_and_not_before_its_time(place_for, name, kind):
    tries = 1 if kind in LONG else 3
    async with trading(SCRIPT, name) as trade:
        trade.vendors[name].choose = waits_for(name, kind)
        process, turn, waited_s = await ended(place_for(SCRIPT), trade, name, reliability={"retries": 2})
        assert len(trade.seen(name)) == tries
    assert turn.state is TurnState.FAILED
    assert len(await process.store.real.model_calls(turn.id)) == tries
    least = LEAST.get(kind, 0.0)
    assert (tries - 1) * least <= waited_s <= (tries - 1) * max(least, 30.0 if kind == "date" else 0.0) + OWN_MOST


@pytest.mark.parametrize("name", [ANTHROPIC, DEEPSEEK])
@pytest.mark.parametrize("kind", ["zero", "very long", "rubbish"])
async def test_the_model_behind_it_is_asked_once_and_answers(place_for, name, kind):
    other = DEEPSEEK if name == ANTHROPIC else ANTHROPIC
    async with trading(SCRIPT, name, other) as trade:
        trade.vendors[name].choose = waits_for(name, kind)
        policy = {"retries": 1, "fallback": [trade.reference(other)]}
        process, turn, _ = await ended(place_for(SCRIPT), trade, name, reliability=policy)
        assert [len(trade.seen(each)) for each in (name, other)] == [1 if kind in LONG else 2, 1]
        trade.nothing_was_refused()
    assert turn.state is TurnState.COMPLETED
    assert await process.answers() == ["At last."]


@pytest.mark.parametrize("name", VENDORS)
async def test_a_vendor_that_answers_the_retry_is_asked_no_more(place_for, name):
    async with trading(SCRIPT, name) as trade:
        trade.vendors[name].troubles.append(rate_limited("7"))
        process, turn, waited_s = await ended(place_for(SCRIPT), trade, name, reliability={"retries": 2})
        assert len(trade.seen(name)) == 2
    assert await process.answers() == ["At last."]
    assert waited_s == 7
    rows = await process.store.real.model_calls(turn.id)
    assert [(row.attempt, row.state) for row in rows] == [(1, "estimated"), (2, "measured")]
