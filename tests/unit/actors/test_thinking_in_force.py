"""How much the model reasons, from the job that says so to the request: for the session's next turns, until cleared."""

from __future__ import annotations

import pytest

from insika.agents.profile import load_profile
from insika.choices import Thinking
from insika.settings import load_settings
from insika.storage.rows import Verdict
from insika.testing import Call, Rule, Say, Script
from tests.actor_world import Gate, Process, profile

AGENT = profile(params={"thinking": "low", "max_tokens": 700})


def asked(process: Process) -> list[Thinking | None]:
    return [request.thinking for request in process.model.requests]  # type: ignore[attr-defined]


async def said(process: Process, **fields) -> Thinking | None:
    """The word in force for the turn of one more message."""
    await process.send("hello", **fields)
    await process.idle()
    return asked(process)[-1]


@pytest.mark.parametrize("clearing", [{"thinking": None}, {"thinking": " "}, {"__llm__": {"thinking": None}}])
async def test_a_session_keeps_its_word_until_a_later_job_changes_or_clears_it(place_for, clearing):
    process = await place_for(Script([Say("Done.")])).process(AGENT)

    assert await said(process) is Thinking.LOW
    assert await said(process, vars={"thinking": "high"}) is Thinking.HIGH
    assert await said(process) is Thinking.HIGH
    assert await said(process, vars={"__llm__": {"thinking": False}}) is Thinking.OFF
    assert await said(process, vars={"name": "Ana"}) is Thinking.OFF
    assert await said(process, vars=clearing) is Thinking.LOW
    assert await said(process) is Thinking.LOW


async def test_one_session_s_word_is_not_another_s(place_for):
    process = await place_for(Script([Say("Done.")])).process(AGENT)

    assert await said(process, session="a", vars={"thinking": "high"}) is Thinking.HIGH
    assert await said(process, session="b") is Thinking.LOW


async def test_what_the_first_job_says_counts_for_its_own_turn(place_for):
    process = await place_for(Script([Say("Done.")])).process(AGENT)
    assert await said(process, vars={"__llm__": {"thinking": "medium"}}) is Thinking.MEDIUM


async def test_where_session_and_agent_say_nothing_the_settings_do(place_for):
    place = place_for(Script([Say("Done.")]))
    settings = {"thinking": "medium", "model_params": {"offline/script": {"thinking": "on", "max_tokens": 90}}}
    process = await place.process(profile(), profile(id="other", model="offline/else"), settings=settings)

    assert await said(process) is Thinking.ON
    assert process.model.requests[-1].max_tokens == 90
    assert await said(process, agent="other", session="o") is Thinking.MEDIUM
    assert process.model.requests[-1].max_tokens is None


async def test_a_turn_keeps_the_word_it_began_with(place_for):
    place = place_for(Script(rules=[Rule([Call("look", {"n": 1}), Say("Done.")])]))
    place.shop.gates["look", 1] = gate = Gate()
    process = await place.process(AGENT)
    first = await process.send("hello", vars={"thinking": "high"})
    await gate.reached()
    later = await process.send("and this", vars={"thinking": "off"})
    assert later.verdict is Verdict.ACCEPTED
    await process.configuration.apply_profiles(
        [load_profile(profile(params={"thinking": "medium", "max_tokens": 5}), "test")], from_file=False
    )
    other = load_settings({"thinking": "on"}, "test")
    await process.store.apply_settings(other.revision(), other.document(), "operator")
    await process.configuration.refresh()
    gate.open()
    await process.idle()

    assert asked(process) == [Thinking.HIGH, Thinking.HIGH, Thinking.OFF, Thinking.OFF]
    assert [request.max_tokens for request in process.model.requests] == [700, 700, 5, 5]
    turn = await process.turn(first.turn_id)
    assert turn.limits["thinking"] == "high"


async def test_a_turn_that_another_process_takes_up_keeps_it_too(place_for):
    place = place_for(Script(rules=[Rule([Call("look", {"n": 1}), Say("Done.")])]))
    place.shop.gates["look", 1] = gate = Gate()
    dying = await place.process(AGENT)
    await dying.send("hello", vars={"thinking": "high"})
    await gate.reached()
    await dying.die()
    del place.shop.gates["look", 1]

    heir = await place.process(AGENT)
    await heir.finish()
    assert set(asked(heir)) == {Thinking.HIGH}
