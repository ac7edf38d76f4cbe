"""With INSIKA_TURN_TIMING the time of a turn is told step by step: as it comes, in the log, and in the turn's row."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from insika.clock import ManualClock
from insika.errors import ProviderError
from insika.messages import Usage, assistant
from insika.ports import Finished, TextDelta
from insika.testing import Call, Fail, Rule, Say, Script, ScriptedModel
from tests.actor_world import Gate


class Slow:
    """A model that takes a second to begin and another to end."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def stream(self, request):
        self._clock.advance(1)
        yield TextDelta("Done.")
        self._clock.advance(1)
        yield Finished(assistant("Done."), Usage(3, 1))


def slow_commits(process, seconds: float):
    async def hook(when: str, operation: str) -> None:
        if when == "before" and operation in ("commit", "end"):
            process.clock.advance(seconds)

    process.store.hook = hook


async def test_a_turn_s_time_is_told_step_by_step(place_for):
    place = place_for(Script())
    process = await place.process(model=Slow(place.clock), timing=True)
    process.deaf = True
    accepted = await process.send("hello")
    place.clock.advance(7)
    process.deaf = False
    slow_commits(process, 0.25)
    with capture_logs() as logs:
        await process.sweep()
        await process.idle()

    of_turn = {
        "queued_ms": 7000.0,
        "prepare_ms": 0.0,
        "model": [{"step": 1, "attempts": 1, "ms": 2000.0, "ttft_ms": 1000.0}],
        "total_ms": 2000.0,
        "model_ms": 2000.0,
        "tools_ms": 0.0,
    }
    assert (await process.turn(accepted.turn_id)).timing == of_turn
    (completed,) = process.events.of("turn_completed")
    assert completed.data["timing"] == {**of_turn, "commit_ms": 250.0}
    (line,) = [line for line in logs if line["event"] == "turn_completed"]
    assert line["timing"] == completed.data["timing"]
    (ttft,) = process.events.of("ttft")
    assert (ttft.data["ttft_ms"], ttft.step, ttft.attempt) == (1000.0, 1, 1)
    types = process.events.types
    assert types.index("turn_started") < types.index("ttft") < types.index("content")


async def test_a_turn_that_fails_tells_its_time_too(place_for):
    process = await place_for(Script([Fail("down")])).process(timing=True)
    slow_commits(process, 0.5)
    accepted = await process.send("hello")
    await process.idle()

    (failed,) = process.events.of("turn_failed")
    assert failed.data["timing"]["commit_ms"] == 500.0
    assert failed.data["timing"]["model"] == [{"step": 1, "attempts": 1, "ms": 0.0, "ttft_ms": None}]
    assert "commit_ms" not in (await process.turn(accepted.turn_id)).timing


async def test_a_turn_that_is_taken_up_again_knows_how_long_its_message_had_waited(place_for):
    place = place_for(Script(rules=[Rule([Call("look", {"n": 1}), Say("Done.")])]))
    place.shop.gates["look", 1] = gate = Gate()
    dying = await place.process(timing=True)
    dying.deaf = True
    accepted = await dying.send("hello")
    place.clock.advance(3)
    dying.deaf = False
    await dying.sweep()
    await gate.reached()
    await dying.die()
    del place.shop.gates["look", 1]

    heir = await place.process(timing=True)
    await heir.finish()
    timing = (await heir.turn(accepted.turn_id)).timing
    assert timing["queued_ms"] == 3000.0
    assert [step["step"] for step in timing["model"]] == [2]
    assert heir.events.of("ttft") == []


async def test_how_long_the_first_of_merged_messages_had_waited_counts(place_for):
    place = place_for(Script([Say("Done.")]))
    process = await place.process(timing=True)
    process.deaf = True
    await process.send("one", queue_mode="collect")
    place.clock.advance(2)
    await process.send("two", queue_mode="collect")
    place.clock.advance(2)
    process.deaf = False
    await process.sweep()
    await process.idle()

    (completed,) = process.events.of("turn_completed")
    assert completed.data["timing"]["queued_ms"] == 4000.0


async def test_without_the_switch_nothing_is_told_or_read_that_was_not_before(place_for):
    place = place_for(Script([Say("Done.")]))
    process = await place.process()
    accepted = await process.send("hello")
    await process.idle()

    assert set((await process.turn(accepted.turn_id)).timing) == {"total_ms", "model_ms", "tools_ms"}
    assert set(process.events.of("turn_completed")[0].data["timing"]) == {"total_ms", "model_ms", "tools_ms"}
    assert "ttft" not in process.events.types
    assert process.store.operations.count("load") == 1


# --- the place of an event --------------------------------------------------------------------------------------------


class FailsToConnect(ScriptedModel):
    """A model whose first `times` connections fail before anything is sent."""

    def __init__(self, script: Script, times: int) -> None:
        super().__init__(script)
        self._times = times

    async def stream(self, request):
        if self._times:
            self._times -= 1
            raise ProviderError("cannot connect", sent=False)
        async for event in super().stream(request):
            yield event


async def test_each_event_of_a_step_names_the_attempt_it_belongs_to(place_for):
    script = Script(rules=[Rule([Call("look", {"n": 1}, text="Let me see."), Say("Done.")])])
    process = await place_for(script).process(model=FailsToConnect(script, 2))
    with capture_logs() as logs:
        await process.send("hello")
        await process.idle()

    places = {
        (type, event.step, event.attempt)
        for type, event in zip(process.events.types, process.events.events, strict=True)
    }
    assert {
        ("provider_failure", 1, 1),
        ("provider_failure", 1, 2),
        ("content", 1, 3),
        ("intermediate", 1, 3),
        ("tool_called", 1, 3),
        ("tool_returned", 1, 3),
        ("content", 2, 1),
        ("turn_completed", 2, 1),
    } <= places
    told = [(event.epoch, event.step, event.attempt) for event in process.events.events if event.step]
    assert told == sorted(told)
    (line,) = [line for line in logs if line["event"] == "turn_completed"]
    assert (line["attempt"], line["steps"]) == (1, 2)
    rows = await process.select("SELECT step, attempt, state, input FROM model_calls ORDER BY step, attempt")
    assert [(row["step"], row["attempt"], row["state"]) for row in rows] == [
        (1, 1, "estimated"),
        (1, 2, "estimated"),
        (1, 3, "measured"),
        (2, 1, "measured"),
    ]
    assert [row["input"] for row in rows[:2]] == [0, 0]


@pytest.mark.parametrize("times", [3, 9])
async def test_a_model_that_cannot_be_reached_fails_the_turn_after_three_tries(place_for, times):
    script = Script([Say("Done.")])
    process = await place_for(script).process(model=FailsToConnect(script, times))
    accepted = await process.send("hello")
    await process.idle()

    turn = await process.turn(accepted.turn_id)
    assert turn.error["type"] == "provider_unavailable"
    assert process.events.types.count("provider_failure") == 3
