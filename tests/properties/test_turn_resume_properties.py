"""A turn that dies anywhere, any number of times, and is resumed from its log, ends as if it had never died."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import example, given, note
from hypothesis import strategies as st

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted
from insika.crash_points import CrashPoint
from insika.messages import Message, Role, ToolCall
from insika.ports import CallOutcome, ModelEvent, ModelRequest
from insika.testing import Call, Calls, Fail, Say, Script
from insika.turn import sentences
from insika.turn.log import Answer
from tests.loop_doubles import FakeTool, FakeToolbox, StrictModel, Turn, some_tools

EFFECTS = ("pay", "put", "hang", "strict", "close")
TOOLS = ("look", "poll", "break", "slow", "fly", *EFFECTS)
MOST_DEATHS = 3


class Died(BaseException):
    """The process is gone."""


@dataclass(frozen=True)
class Scripted:
    """`batches[n]` are (tool, argument) of the calls of step n + 1; `mail[n]` is what is written while the model thinks
    about step n + 1."""

    batches: tuple[tuple[tuple[str, int], ...], ...]
    mail: Mapping[int, int]
    ending: Say | Fail
    limits: TurnLimits

    def script(self) -> Script:
        steps = [
            Calls([Call(tool, {"n": n}, id=f"s{step}c{index}") for index, (tool, n) in enumerate(calls)], text="Hm.")
            for step, calls in enumerate(self.batches)
        ]
        return Script([*steps, self.ending])


ARGUMENTS = st.integers(0, 2) | st.integers(3, 99)
CALLS = st.lists(st.tuples(st.sampled_from([*TOOLS] * 2 + ["stop"]), ARGUMENTS), min_size=1, max_size=4)
LIMITS = st.builds(
    TurnLimits,
    max_tool_calls=st.integers(1, 16) | st.integers(11, 16),
    on_exhausted=st.sampled_from(OnExhausted),
    max_tool_repeat=st.sampled_from([0, 2, 3]),
    tool_concurrency=st.sampled_from([1, 1, 3]),
    steer_max_messages=st.integers(0, 4),
    steer_join=st.sampled_from([None, "<%{message}>"]),
)
SCRIPTS = st.builds(
    Scripted,
    st.lists(CALLS.map(tuple), min_size=1, max_size=6).map(tuple),
    st.dictionaries(st.integers(0, 5), st.integers(1, 3), max_size=5),
    st.sampled_from([Say("The answer."), Say(""), Fail("overloaded")]),
    LIMITS,
)
DEATHS = st.lists(st.integers(0, 30), min_size=1, max_size=MOST_DEATHS)


class Writers(StrictModel):
    """While it thinks about a step for the first time, people write."""

    def __init__(self, script: Script, mail: Mapping[int, int]) -> None:
        super().__init__(script)
        self.mail = dict(mail)
        self.turn: Turn | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        step = sum(message.role is Role.ASSISTANT for message in request.messages)
        assert self.turn is not None
        self.turn.writes(*(f"mail {step}.{number}" for number in range(self.mail.pop(step, 0))))
        async for event in super().stream(request):
            yield event


class WatchedTools(FakeToolbox):
    """Fails when a call that has a result is run again."""

    turn: Turn

    async def run(self, call: ToolCall, step: int) -> CallOutcome:
        (row,) = [row for row in self.turn.log.calls.values() if row.call_id == call.id]
        assert row.result is None, f"{call.id} has ended and was run again"
        return await super().run(call, step)


def make(scripted: Scripted) -> Turn:
    tools = WatchedTools(
        {
            **some_tools().tools,
            "close": FakeTool(side_effect=True, outcome=lambda call: CallOutcome("Closed.", halts=True)),
        }
    )
    model = Writers(scripted.script(), scripted.mail)
    turn = Turn(model, limits=scripted.limits, tools=tools)
    tools.turn = model.turn = turn
    return turn


class Mortal:
    """Dies at the nth crash point it meets; dead, it gets no further."""

    def __init__(self, after: int | None) -> None:
        self.left = after

    def __call__(self, point: CrashPoint, /) -> None:
        if self.left is None:
            return
        if self.left <= 0:
            raise Died(point)
        self.left -= 1


async def live(turn: Turn, deaths: Sequence[int]) -> Turn:
    for life, after in enumerate([*deaths, None]):
        try:
            await turn.run(fresh=life == 0, crash=Mortal(after))
        except Died as died:
            note(f"died at {died}")
        if turn.log.ended is not None:
            break
    return turn


def without_unknown(messages: Sequence[Message], other: Sequence[Message]) -> list[Message]:
    """`messages`, what is unknown there replaced by what `other` has at its place."""
    return [
        theirs if ours.content == sentences.UNKNOWN_OUTCOME and theirs.tool_call_id == ours.tool_call_id else ours
        for ours, theirs in zip(messages, other, strict=False)
    ] + list(messages[len(other) :])


@given(SCRIPTS, DEATHS)
@example(Scripted(((("pay", 1), ("look", 1)),), {}, Say("Done."), TurnLimits(max_tool_calls=11)), [4])
def test_a_resumed_turn_ends_as_if_it_had_never_died(scripted, deaths):
    undisturbed = asyncio.run(live(make(scripted), []))
    turn = asyncio.run(live(make(scripted), deaths))

    assert turn.log.ended is not None
    assert all(row.state != "open" for row in turn.log.model_calls.values())
    runs = Counter(turn.tools.ran)
    names = {row.call_id: row.name for row in turn.log.calls.values()}
    for call_id, times in runs.items():
        assert times == 1 or names[call_id] not in ("pay", "hang", "close")
    if any(row.name == "close" and row.result == sentences.UNKNOWN_OUTCOME for row in turn.log.calls.values()):
        return  # nobody knows that it meant to end the turn
    assert without_unknown(turn.log.messages, undisturbed.log.messages) == undisturbed.log.messages
    assert [row.text for row in turn.log.mail] == [row.text for row in undisturbed.log.mail]
    ours, theirs = turn.log.ended, undisturbed.log.ended
    assert type(ours) is type(theirs)
    if isinstance(ours, Answer) and isinstance(theirs, Answer):
        assert (ours.content, ours.outcome, ours.synthesized) == (theirs.content, theirs.outcome, theirs.synthesized)
    else:
        assert ours.error.type == theirs.error.type


@given(SCRIPTS, DEATHS)
def test_only_a_call_that_was_started_can_become_unknown(scripted, deaths):
    turn = asyncio.run(live(make(scripted), deaths))

    for row in turn.log.calls.values():
        if row.result == sentences.UNKNOWN_OUTCOME:
            assert row.call_id in turn.log.started
            assert row.name in EFFECTS
