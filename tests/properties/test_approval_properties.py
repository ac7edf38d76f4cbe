"""A turn with calls that people must approve: whatever they decide, and when, and whoever dies meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import event, given, note
from hypothesis import strategies as st

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted
from insika.crash_points import CrashPoint
from insika.messages import Message, ToolCall
from insika.ports import CallOutcome
from insika.storage.rows import ApprovalDecision, CallRow, CallState
from insika.testing import Call, Calls, Say, Script
from insika.turn import sentences
from insika.turn.log import Superseded, Suspended
from tests.loop_doubles import FakeTool, FakeToolbox, Turn, some_tools
from tests.strict import check_anthropic, check_openai

APPROVED, REJECTED = ApprovalDecision.APPROVED, ApprovalDecision.REJECTED
ASKING = ("refund", "ship", "sign", "end")
TOOLS = (*ASKING, *ASKING, "look", "pay", "put", "break", "strict", "fly")
VALID_S = 60.0
MOST_LIVES = 120


class Died(BaseException):
    """The process is gone."""


class WatchedTools(FakeToolbox):
    """Fails when a call runs that no person has approved and one had to, or one that has a result."""

    turn: Turn

    async def run(self, call: ToolCall, step: int) -> CallOutcome:
        row = row_of(self.turn, call.id)
        approval = self.turn.log.approvals.get(call.id)
        assert row.result is None, f"{call.id} has ended and was run again"
        if approval is not None:
            assert approval.decision is APPROVED, f"{call.id} ran, and its approval is {approval.decision}"
            assert row.state is CallState.STARTED
        else:
            again = row.state is CallState.STARTED
            assert again or not self.needs_approval(call.name), f"nobody was asked about {call.id}"
        return await super().run(call, step)


def row_of(turn: Turn, call_id: str) -> CallRow:
    (row,) = [row for row in turn.log.calls.values() if row.call_id == call_id]
    return row


def make(batches: Sequence[Sequence[str]], limits: TurnLimits) -> Turn:
    steps = [
        Calls([Call(tool, {"n": step, "at": index}, id=f"s{step}c{index}") for index, tool in enumerate(tools)])
        for step, tools in enumerate(batches)
    ]
    tools = WatchedTools(
        {
            **some_tools().tools,
            "sign": FakeTool(side_effect=True, idempotent=True, needs_approval=True),
            "end": FakeTool(needs_approval=True, outcome=lambda call: CallOutcome(f"Closed {call.id}.", halts=True)),
        }
    )
    turn = Turn(Script([*steps, Say("The answer.")]), limits=limits, tools=tools)
    tools.turn = turn
    return turn


class World:
    """What happens to a turn at each instant at which it can be seen: `acts` by the number of the instant."""

    def __init__(self, turn: Turn, acts: Mapping[int, Callable[[Turn], None]], deaths: Sequence[int]) -> None:
        self.turn = turn
        self.acts = dict(acts)
        self.deaths = set(deaths)
        self.instant = 0
        for write in ("ask_approvals", "suspend", "start_call", "finish_call"):
            setattr(turn.log, write, self._then(getattr(turn.log, write)))

    def __call__(self, point: CrashPoint | str, /) -> None:
        check_anthropic(self.turn.log.messages)
        check_openai(self.turn.log.messages)
        self.instant += 1
        if (act := self.acts.pop(self.instant, None)) is not None:
            act(self.turn)
        if self.instant in self.deaths:
            note(f"died at {point}")
            raise Died

    def _then(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def written(*args: Any, **more: Any) -> None:
            await write(*args, **more)
            self(write.__name__)

        return written

    async def live(self, at_rest: Callable[[], None]) -> None:
        """Until the turn has ended; `at_rest` is called whenever it waits for a person."""
        for life in range(MOST_LIVES):
            try:
                await self.turn.run(fresh=life == 0, crash=self)
            except (Died, Superseded):
                continue
            except Suspended:
                at_rest()
                continue
            break
        assert self.turn.log.ended is not None


def undecided(turn: Turn) -> list[str]:
    return [call_id for call_id, row in turn.log.approvals.items() if row.decision is None]


def decide(number: int, decision: ApprovalDecision) -> Callable[[Turn], None]:
    def act(turn: Turn) -> None:
        if open_ := undecided(turn):
            turn.log.decide(open_[number % len(open_)], decision, "Because.")

    return act


def wait(seconds: float) -> Callable[[Turn], None]:
    def act(turn: Turn) -> None:
        turn.log.now += timedelta(seconds=seconds)

    return act


def write(turn: Turn) -> None:
    if turn.log.ended is None:
        turn.writes("by the way")


def toggle(tool: str, *, deny: bool) -> Callable[[Turn], None]:
    """The profile changes: the tool is denied or allowed again, or comes to need approval or not to."""
    gone: dict[str, FakeTool] = {}

    def act(turn: Turn) -> None:
        tools = turn.tools.tools
        if not deny:
            if tool in tools:
                tools[tool].needs_approval = not tools[tool].needs_approval
        elif tool in tools:
            gone[tool] = tools.pop(tool)
        elif tool in gone:
            tools[tool] = gone.pop(tool)

    return act


DECISIONS = st.sampled_from([APPROVED, APPROVED, REJECTED])
ACTS = st.one_of(
    st.builds(decide, st.integers(0, 5), DECISIONS),
    st.builds(decide, st.integers(0, 5), DECISIONS),
    st.builds(wait, st.sampled_from([20.0, 59.0, 60.0])),
    st.just(write),
    st.builds(toggle, st.sampled_from(["pay", "look", "ship"]), deny=st.booleans()),
)
BATCHES = st.lists(st.lists(st.sampled_from(TOOLS), min_size=1, max_size=4), min_size=1, max_size=3)
LIMITS = st.builds(
    TurnLimits,
    approval_timeout_s=st.just(VALID_S),
    max_tool_calls=st.sampled_from([None, 50, 50, 3, 6]),
    max_tool_repeat=st.sampled_from([0, 3]),
    tool_concurrency=st.sampled_from([1, 1, 3]),
    steer_max_messages=st.integers(0, 3),
    on_exhausted=st.just(OnExhausted.RAISE),
)
DEATHS = st.lists(st.integers(1, 60), max_size=6)


@given(BATCHES, LIMITS, st.dictionaries(st.integers(1, 60), ACTS, max_size=12), DEATHS, st.lists(ACTS, max_size=8))
def test_whatever_is_decided_and_whoever_dies_each_call_is_settled_once_and_by_the_word_on_it(
    batches: list[list[str]],
    limits: TurnLimits,
    acts: dict[int, Callable[[Turn], None]],
    deaths: list[int],
    resting: list[Callable[[Turn], None]],
) -> None:
    turn = make(batches, limits)
    at_rest = iter([*resting])

    def next_act() -> None:
        next(at_rest, decide(0, APPROVED))(turn)

    asyncio.run(World(turn, acts, deaths).live(next_act))

    runs = Counter(turn.tools.ran)
    for row in turn.log.calls.values():
        assert row.result, f"{row.call_id} has no result"
        approval = turn.log.approvals.get(row.call_id)
        if row.name in ("refund", "ship", "pay", "end") and (row.side_effect or approval is not None):
            assert runs[row.call_id] <= 1
        if row.state is CallState.UNKNOWN:
            assert row.call_id in turn.log.started
        if row.state is CallState.NOT_RUN:
            assert runs[row.call_id] == 0
        if approval is not None:
            event(f"{approval.decision}: {row.state}")
            used = row.state is not CallState.NOT_RUN
            assert approval.decision is not None, "a question outlived its turn"
            assert (approval.decision is APPROVED) == used
            assert (row.result == sentences.approval_rejected("Because.")) == (
                approval.decision is REJECTED and "was asked to approve it and rejected" in row.result
            )


@dataclass(frozen=True)
class Decided:
    """What a person says of each call that is asked about, by its name: always the same of the same call."""

    rejects: frozenset[str]

    def __call__(self, turn: Turn, call_id: str) -> None:
        turn.log.decide(call_id, REJECTED if call_id in self.rejects else APPROVED, "Because.")


def forgive_unknown(messages: Sequence[Message], others: Sequence[Message]) -> list[Message]:
    """`messages`, with what the others have where nobody saw a call's end."""
    return [
        theirs if ours.content == sentences.UNKNOWN_OUTCOME else ours
        for ours, theirs in zip(messages, others, strict=True)
    ]


@given(
    st.lists(
        st.lists(st.sampled_from([*ASKING[:3], "look", "pay", "put", "strict"]), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([1, 3]),
    st.frozensets(st.sampled_from([f"s{step}c{index}" for step in range(3) for index in range(4)])),
    st.randoms(use_true_random=False),
    DEATHS,
)
def test_the_order_of_decisions_and_deaths_in_between_change_nothing(
    batches: list[list[str]], concurrency: int, rejects: frozenset[str], random: Any, deaths: list[int]
) -> None:
    limits = TurnLimits(approval_timeout_s=VALID_S, max_tool_calls=30, max_tool_repeat=0, tool_concurrency=concurrency)
    word = Decided(rejects)

    def all_at_once(turn: Turn) -> Callable[[], None]:
        return lambda: [word(turn, call_id) for call_id in undecided(turn)] and None

    def one_by_one(turn: Turn) -> Callable[[], None]:
        return lambda: word(turn, random.choice(undecided(turn)))

    calm, disturbed = make(batches, limits), make(batches, limits)
    asyncio.run(World(calm, {}, []).live(all_at_once(calm)))
    asyncio.run(World(disturbed, {}, deaths).live(one_by_one(disturbed)))

    assert forgive_unknown(disturbed.log.messages, calm.log.messages) == calm.log.messages
    assert [row.decision for row in disturbed.log.approvals.values()] == [
        row.decision for row in calm.log.approvals.values()
    ]
    asked = {call_id for call_id in calm.log.approvals if call_id not in rejects}
    assert asked <= set(calm.tools.ran)
