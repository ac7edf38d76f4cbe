"""However requests fail, and wherever owners die in between: the conversation is that of a turn in which nothing went
wrong, every request has its row, and what the turn says it cost is the sum of its rows."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from insika.crash_points import CrashPoint
from insika.errors import FailureAction, ProviderError
from insika.messages import NO_USAGE, ToolCall, Usage, assistant
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta, ThinkingDelta, UsageSoFar
from insika.reliability.attempts import Decision, FailedAttempt, OneAttempt, TryAgain
from insika.turn.log import Answer
from tests.loop_doubles import Turn

STEPS = (
    assistant("I look.", ToolCall("a", "look", {"n": 1})),
    assistant("", ToolCall("b", "look", {"n": 2}), ToolCall("c", "put", {"n": 3})),
    assistant("Done."),
)


class Died(BaseException):
    pass


@dataclass
class Fails:
    """One attempt that comes to nothing: after these pieces, or before any when nothing was sent."""

    pieces: Sequence[ModelEvent]
    sent: bool


class Unsteady:
    """A model whose attempts fail as they are told to, and else say the step that is due."""

    def __init__(self, failures: Sequence[Fails]) -> None:
        self._failures = list(failures)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        step = sum(1 for message in request.messages if message.tool_calls)
        if self._failures:
            failure = self._failures.pop(0)
            if not failure.sent:
                raise ProviderError("no route", sent=False)
            for piece in failure.pieces:
                yield piece
            raise ProviderError("cut", action=FailureAction.RETRYABLE, status=500)
        said = STEPS[step]
        if said.content:
            yield TextDelta(said.content)
        yield Finished(said, Usage(100 + step, 10))


class Patient(OneAttempt):
    """Tries as long as it takes."""

    async def after(self, failed: Sequence[FailedAttempt], left_s: float) -> Decision:
        return TryAgain(0.0, failed[-1].model)


PIECES = st.lists(
    st.sampled_from(
        [TextDelta("half of "), TextDelta("it"), ThinkingDelta("hm"), UsageSoFar(Usage(input=77, output=1))]
    ),
    max_size=4,
)
FAILURES = st.lists(st.builds(Fails, PIECES, st.booleans()), max_size=5)


async def live(failures: Sequence[Fails], deaths: Sequence[int]) -> tuple[Turn, Unsteady]:
    model = Unsteady(failures)
    turn = Turn(model)
    turn.attempts = Patient()
    for life, death in enumerate([*deaths, 10_000]):
        try:
            await turn.run(fresh=life == 0, crash=die_at(death))
        except Died:
            continue
        break
    return turn, model


def die_at(count: int) -> Any:
    met = 0

    def crash(point: CrashPoint, /) -> None:
        nonlocal met
        met += 1
        if met > count:
            raise Died(point)

    return crash


@given(FAILURES, st.lists(st.integers(0, 12), max_size=3))
def test_a_turn_whose_requests_fail_is_a_turn_like_any_other(failures: list[Fails], deaths: list[int]) -> None:
    turn, model = asyncio.run(live(failures, deaths))
    calm, _ = asyncio.run(live([], []))

    ended = turn.log.ended
    assert isinstance(ended, Answer)
    assert ended.content == "Done."
    assert turn.log.messages == calm.log.messages
    rows = list(turn.log.model_calls.values())
    assert len(rows) >= len(model.requests)
    assert all(row.state in ("measured", "estimated") for row in rows)
    assert ended.usage == sum((row.usage for row in rows), NO_USAGE)
    assert [row.attempt for row in rows if row.step == 1] == list(range(1, 1 + sum(row.step == 1 for row in rows)))
    for earlier, later in itertools.pairwise(model.requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages


@given(FAILURES)
def test_every_failure_is_told_once_and_each_attempt_shows_under_its_own_number(failures: list[Fails]) -> None:
    turn, model = asyncio.run(live(failures, []))

    told = [(data["step"], data["attempt"]) for kind, data in turn.emit.events if kind == "provider_failure"]
    assert len(told) == len(set(told)) == len(failures)
    shown = [(data["step"], data["attempt"]) for kind, data in turn.emit.events if kind in ("content", "thinking")]
    assert shown == sorted(shown)
    # Never sent, or refused with an HTTP error before a word or a count had come.
    unbilled = sum(not failure.sent or not failure.pieces for failure in failures)
    free = [row for row in turn.log.model_calls.values() if row.usage == NO_USAGE]
    assert len(free) == unbilled
    assert len(model.requests) == len(failures) + len(STEPS)
