"""What a provider wants back verbatim, and calls that the output limit cut off: kept as they were said."""

from __future__ import annotations

import json

import pytest

from insika.messages import NOTHING_VERBATIM, ToolCall, Verbatim, assistant
from insika.storage.operations import AnnouncedCall, AppendStep
from insika.storage.rows import LogEntry
from tests.store_world import Owner, World, done, measured

SIGNED = Verbatim(
    "anthropic/claude",
    (
        {"type": "thinking", "thinking": "hm, 100 % … 😀", "signature": "c2ln=="},
        {"type": "tool_use", "id": "a", "name": "look_up", "input": {"z": 1, "a": [None, True, 1e300, {}]}},
    ),
)


async def said(world: World, verbatim: Verbatim = SIGNED) -> Owner:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    await owner.append("a", verbatim=verbatim)
    return await owner.look()


def kept(log: tuple[LogEntry, ...] | list[LogEntry]) -> list[Verbatim]:
    return [entry.message.verbatim for entry in log]


async def test_what_a_provider_wants_back_comes_back_as_it_was(world: World) -> None:
    """To the order of its names: a request begins with the same bytes each time."""
    owner = await said(world)
    for log in (owner.loaded.log, await world.store.messages(owner.fence.session_id)):
        assert kept(list(log)) == [NOTHING_VERBATIM, SIGNED]
        assert json.dumps(log[1].message.verbatim.parts) == json.dumps(SIGNED.parts)


async def test_nothing_is_kept_of_a_message_that_has_nothing_verbatim(world: World) -> None:
    owner = await said(world, NOTHING_VERBATIM)
    assert kept(list(owner.loaded.log)) == [NOTHING_VERBATIM, NOTHING_VERBATIM]
    assert [row["verbatim"] for row in await world.peek("SELECT verbatim FROM messages")] == [None, None]


async def test_an_owner_loads_it_only_with_the_messages_of_the_running_turn(world: World) -> None:
    owner = await said(world)
    await owner.cross(done(0, "a"))
    assert kept(list(owner.loaded.log)) == [NOTHING_VERBATIM, SIGNED, NOTHING_VERBATIM]
    await owner.commit(2)
    await owner.look()
    assert not any(kept(list(owner.loaded.log))), "no turn runs"
    await world.say("two")
    await owner.look()
    await owner.start()
    other = Verbatim("openai/gpt", ({"reasoning": "again"},))
    await owner.append("b", verbatim=other)
    await owner.look()
    assert [each for each in kept(list(owner.loaded.log)) if each] == [other]
    log = await world.store.messages(owner.fence.session_id)
    assert [each for each in kept(list(log)) if each] == [SIGNED, other], "people may look at all of it"


async def test_a_turn_that_is_taken_over_has_it_still(world: World) -> None:
    owner = await said(world)
    taken = await world.take_over(owner.fence.session_id)
    assert kept(list(taken.loaded.log)) == [NOTHING_VERBATIM, SIGNED]


@pytest.mark.parametrize("text", ["\0", "a\x00b", "\ud83d", "x\udc00y", "\\u0000", "\x7f\x1b\u2028"])
async def test_no_text_in_it_breaks_the_store(world: World, text: str) -> None:
    """What enters the log is clean; but what comes so far must do no harm."""
    broken = Verbatim("anthropic/claude", ({text: text, "signature": [text]},))
    owner = await said(world, broken)
    assert kept(list(owner.loaded.log))[1] == broken
    assert kept(list(await world.store.messages(owner.fence.session_id)))[1] == broken


async def test_a_call_that_was_cut_off_is_known_as_such(world: World) -> None:
    owner = await world.own((await world.say()).session_id)
    await owner.start()
    calls = (ToolCall("a", "look_up", {"n": 1}), ToolCall("b", "refund", cut_off=True))
    announced = tuple(AnnouncedCall(call.id, call.name, call.arguments, side_effect=False) for call in calls)
    step = AppendStep(owner.turn_id, 1, assistant("", *calls), announced, measured(1))
    assert await world.store.append(owner.fence, step) == 2
    await owner.look()
    assert owner.loaded.log[1].message.tool_calls == calls
    assert (await world.store.messages(owner.fence.session_id))[1].message.tool_calls == calls
