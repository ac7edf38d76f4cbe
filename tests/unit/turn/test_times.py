"""Where a turn's time goes: in all, and step by step where that is asked for."""

from __future__ import annotations

import pytest

from insika.clock import ManualClock
from insika.errors import ProviderError
from insika.messages import ToolCall, assistant
from insika.ports import TextDelta, ThinkingDelta, UsageSoFar
from insika.reliability.attempts import GiveUp, OneAttempt, TryAgain
from insika.turn.times import DetailedTimes
from tests.loop_doubles import Turn
from tests.spoken_models import SpokenModel, finished, unsent

QUEUED_MS = 1234.5


class Timed:
    """A turn on a clock that moves only where the model or a tool says so."""

    def __init__(self, *streams, time_s: float = 300.0) -> None:
        self.clock = ManualClock()
        self.turn = Turn(SpokenModel(*streams), clock=self.clock, time_s=time_s)
        self.turn.times = lambda clock, emit: DetailedTimes(clock, emit, QUEUED_MS)
        self.turn.sleep = self._sleeps

        async def takes_two_seconds(call: ToolCall) -> None:
            self.clock.advance(2)

        self.turn.tools.gate = takes_two_seconds

    async def run(self, **how):
        await self.turn.run(**how)
        return self.turn.log.ended.timing

    async def _sleeps(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @property
    def first_tokens(self):
        return [data for kind, data in self.turn.emit.events if kind == "ttft"]


def passes(clock_of: list[Timed], seconds: float):
    async def passing() -> None:
        clock_of[0].clock.advance(seconds)

    return passing


def timed(make) -> Timed:
    """`make(p)` gives the streams; `p(s)` in one of them lets seconds pass."""
    own: list[Timed] = []
    own.append(Timed(*make(lambda seconds: passes(own, seconds))))
    return own[0]


CALL = assistant("", ToolCall("a", "look", {"n": 1}))


async def test_a_turn_is_told_step_by_step():
    it = timed(lambda p: [[p(0.5), TextDelta("I look"), p(1), finished(CALL)], [p(3), TextDelta("Done"), finished()]])
    assert await it.run() == {
        "queued_ms": QUEUED_MS,
        "prepare_ms": 0.0,
        "model": [
            {"step": 1, "attempts": 1, "ms": 1500.0, "ttft_ms": 500.0},
            {"step": 2, "attempts": 1, "ms": 3000.0, "ttft_ms": 3000.0},
        ],
        "total_ms": 6500.0,
        "model_ms": 4500.0,
        "tools_ms": 2000.0,
    }


async def test_the_first_token_of_the_first_request_is_told_at_once_and_once():
    heard: list[int] = []

    def streams(p):
        async def look() -> None:
            heard.append(len(it.first_tokens))

        return [[p(0.25), look, TextDelta("I"), look, TextDelta(" look"), finished(CALL)], [TextDelta("x"), finished()]]

    it = timed(streams)
    await it.run()
    assert it.first_tokens == [{"step": 1, "attempt": 1, "ttft_ms": 250.0}]
    assert heard == [0, 1]
    kinds = it.turn.events
    assert kinds.index("ttft") < kinds.index("content")


@pytest.mark.parametrize("first", [ThinkingDelta("hm"), TextDelta("I")])
async def test_reasoning_counts_as_a_first_token_and_what_only_counts_tokens_does_not(first):
    it = timed(lambda p: [[UsageSoFar(finished().usage), p(1), first, p(1), TextDelta("x"), finished()]])
    await it.run()
    assert [told["ttft_ms"] for told in it.first_tokens] == [1000.0]


async def test_a_message_that_comes_in_one_piece_is_its_own_first_token():
    it = timed(lambda p: [[p(2), finished(CALL)], [finished()]])
    timing = await it.run()
    assert it.first_tokens == [{"step": 1, "attempt": 1, "ttft_ms": 2000.0}]
    assert timing["model"][0]["ttft_ms"] == 2000.0


async def test_a_request_that_is_made_again_has_its_own_first_token_and_its_time_is_added():
    it = timed(lambda p: [[p(1), unsent()], [p(2), unsent()], [p(4), TextDelta("x"), finished()]])
    timing = await it.run()
    assert timing["model"] == [{"step": 1, "attempts": 3, "ms": 7000.0, "ttft_ms": 4000.0}]
    assert it.first_tokens == [{"step": 1, "attempt": 3, "ttft_ms": 4000.0}]
    assert timing["total_ms"] == 7500.0


async def test_a_first_token_of_an_attempt_is_not_that_of_the_next():
    class Again(OneAttempt):
        async def after(self, failed, left_s):
            return TryAgain(0.0, "m/m") if len(failed) == 1 else GiveUp(failed[-1].error)

    it = timed(lambda p: [[p(1), TextDelta("x"), ProviderError("cut")], [p(1), ProviderError("down")]])
    it.turn.attempts = Again()
    timing = await it.run()
    assert timing["model"] == [{"step": 1, "attempts": 2, "ms": 2000.0, "ttft_ms": None}]
    assert it.first_tokens == [{"step": 1, "attempt": 1, "ttft_ms": 1000.0}]


async def test_an_empty_piece_is_told_of_once():
    it = timed(lambda p: [[TextDelta(""), p(1), TextDelta("x"), finished()]])
    await it.run()
    assert [told["ttft_ms"] for told in it.first_tokens] == [0.0]


async def test_an_attempt_that_said_nothing_has_no_first_token():
    it = timed(lambda p: [[TextDelta("x"), finished(CALL)], [p(1), ProviderError("down")]])
    timing = await it.run()
    assert timing["model"][1] == {"step": 2, "attempts": 1, "ms": 1000.0, "ttft_ms": None}


async def test_a_turn_that_is_taken_up_in_a_batch_tells_its_own_part():
    it = timed(lambda p: [[p(5), TextDelta("x"), finished(CALL)], [p(1), TextDelta("x"), finished()]])

    class Died(BaseException):
        pass

    def die(point):
        if point == "step_appended":
            raise Died

    with pytest.raises(Died):
        await it.run(crash=die)
    it.turn.emit.events.clear()
    timing = await it.run(fresh=False)
    assert timing["prepare_ms"] == 0.0
    assert timing["model"] == [{"step": 2, "attempts": 1, "ms": 1000.0, "ttft_ms": 1000.0}]
    assert (timing["tools_ms"], timing["total_ms"]) == (2000.0, 3000.0)
    assert it.first_tokens == []


async def test_a_turn_that_never_came_to_ask_was_prepared_all_the_while():
    it = Timed(time_s=0.0)
    timing = await it.run()
    assert (timing["model"], timing["queued_ms"]) == ([], QUEUED_MS)


async def test_without_the_switch_nothing_is_told_that_was_not_before():
    turn = await Turn(SpokenModel([TextDelta("x"), finished()])).run()
    assert set(turn.log.ended.timing) == {"total_ms", "model_ms", "tools_ms"}
    assert "ttft" not in turn.events
