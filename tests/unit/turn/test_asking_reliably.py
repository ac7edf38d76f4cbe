"""A step under a reliability policy: retries, the next model, the one that stays, an attempt's time, and the gate."""

from __future__ import annotations

import asyncio

from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.messages import ToolCall, assistant
from insika.ports import TextDelta
from insika.reliability.chain import Chain
from insika.reliability.circuit import Closed, Open
from insika.reliability.reliable import ReliableAttempts
from insika.turn.log import Answer, Failure
from tests.loop_doubles import MODEL, Turn
from tests.spoken_models import SpokenModel, finished

SECOND, THIRD = "other/second", "other/third"
BUSY = ProviderError("busy")


class HalfASecond:
    def after(self, attempts: int, retry_after_s: float | None) -> float:
        return retry_after_s if retry_after_s is not None else 0.5


class WatchedGate:
    """Remembers who passed and what was said of it; `open` models are closed to all."""

    def __init__(self, *open: str) -> None:
        self.open = set(open)
        self.seen: list[str] = []

    async def enter(self, model: str, timeout_s: float) -> Closed | Open:
        if model in self.open:
            return Open(42.0)
        self.seen.append(f"enter {model}")
        return Closed()

    async def succeeded(self) -> None:
        self.seen.append("succeeded")

    async def failed(self) -> None:
        self.seen.append("failed")

    async def left(self) -> None:
        self.seen.append("left")


def reliably(model: SpokenModel, *, retries: int = 1, gate: WatchedGate | None = None, timeout_s: float = 30.0) -> Turn:
    turn = Turn(model)
    chain = Chain.of(MODEL, [SECOND], [THIRD], retries)
    turn.attempts = ReliableAttempts(chain, gate or WatchedGate(), HalfASecond(), timeout_s)
    return turn


def rows(turn: Turn) -> list[tuple[int, int, str, str]]:
    return [(row.step, row.attempt, row.model, row.state) for row in turn.log.model_calls.values()]


def told(turn: Turn, kind: str) -> list[tuple[str, str]]:
    return [(data["model"], data["instead_of"]) for type, data in turn.emit.events if type == kind]


async def test_each_model_has_its_own_retries_and_then_the_next_is_asked() -> None:
    turn = await reliably(SpokenModel([BUSY], [BUSY], [BUSY], [TextDelta("Done."), finished()])).run()
    assert isinstance(turn.log.ended, Answer)
    assert rows(turn) == [
        (1, 1, MODEL, "estimated"),
        (1, 2, MODEL, "estimated"),
        (1, 3, SECOND, "estimated"),
        (1, 4, SECOND, "measured"),
    ]
    assert turn.slept == [0.5, 0.5]
    assert told(turn, "provider_fallback") == [(SECOND, MODEL)]


async def test_the_model_that_answered_stays_for_the_turn() -> None:
    call = assistant("", ToolCall("a", "look", {"n": 1}))
    turn = await reliably(SpokenModel([BUSY], [finished(call)], [finished()]), retries=0).run()
    assert [row[:3] for row in rows(turn)] == [(1, 1, MODEL), (1, 2, SECOND), (2, 1, SECOND)]


async def test_a_long_wait_is_not_waited_for() -> None:
    long = ProviderError("slow down", action=FailureAction.RATE_LIMITED_LONG, retry_after=3600)
    turn = await reliably(SpokenModel([long], [finished()]), retries=5).run()
    assert [row[2] for row in rows(turn)] == [MODEL, SECOND]
    assert turn.slept == []


async def test_a_fatal_failure_is_neither_retried_nor_rotated_nor_counted() -> None:
    gate = WatchedGate()
    turn = await reliably(SpokenModel([ProviderFatal("no such model")]), gate=gate).run()
    assert isinstance(turn.log.ended, Failure)
    assert [row[2] for row in rows(turn)] == [MODEL]
    assert gate.seen[:2] == [f"enter {MODEL}", "left"]
    assert "failed" not in gate.seen


async def test_a_chain_that_fails_to_its_end_fails_the_turn_with_the_wait_asked_for() -> None:
    long = ProviderError("slow down", action=FailureAction.RATE_LIMITED_LONG, retry_after=90)
    turn = await reliably(SpokenModel([long], [BUSY], [BUSY]), retries=0).run()
    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.retry_after == 90
    assert [row[2] for row in rows(turn)] == [MODEL, SECOND, THIRD]


async def test_an_attempt_has_its_own_time_and_running_over_it_is_a_failure_that_may_pass() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    turn = await reliably(SpokenModel([TextDelta("Well"), never], [finished()]), retries=0, timeout_s=0.01).run()
    assert isinstance(turn.log.ended, Answer)
    assert [row[2] for row in rows(turn)] == [MODEL, SECOND]
    (failure,) = [data for type, data in turn.emit.events if type == "provider_failure"]
    assert failure["action"] == "retryable"


async def test_an_open_model_is_skipped_and_booked_at_nothing() -> None:
    gate = WatchedGate(MODEL)
    turn = await reliably(SpokenModel([finished()]), gate=gate).run()
    assert isinstance(turn.log.ended, Answer)
    first, second = turn.log.model_calls.values()
    assert (first.model, first.usage.total, second.model) == (MODEL, 0, SECOND)
    assert gate.seen == [f"enter {SECOND}", "succeeded"]
    assert told(turn, "provider_fallback") == [(SECOND, MODEL)]


async def test_where_every_model_is_open_the_turn_fails_at_once_and_nobody_is_asked() -> None:
    turn = await reliably(SpokenModel(), gate=WatchedGate(MODEL, SECOND, THIRD)).run()
    assert isinstance(turn.log.ended, Failure)
    assert turn.log.ended.error.type == "circuit_open"
    assert turn.log.ended.error.retry_after == 42.0
    assert [row.usage.total for row in turn.log.model_calls.values()] == [0]


async def test_every_passage_is_answered_for() -> None:
    gate = WatchedGate()
    await reliably(SpokenModel([BUSY], [BUSY], [finished()]), retries=1, gate=gate).run()
    assert gate.seen == [
        f"enter {MODEL}", "failed", f"enter {MODEL}", "failed", f"enter {SECOND}", "succeeded",
    ]  # fmt: skip
