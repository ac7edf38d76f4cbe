"""One turn with everything in it, killed at each instant it has, once and twice."""

from __future__ import annotations

from collections import Counter

import pytest

from insika.agents.limits import TurnLimits
from insika.crash_points import CrashPoint, no_crash
from insika.messages import Message
from insika.testing import Call, Calls, Rule, Say, Script
from insika.turn import sentences
from insika.turn.log import Answer
from tests.loop_doubles import Turn, at

LIMITS = TurnLimits(max_tool_calls=12, steer_max_messages=3, steer_join="added: %{message}")
SCRIPT = Script(
    rules=[
        Rule(
            [
                Calls([Call("pay", {"n": 1}, id="a"), Call("look", {"n": 1}, id="b")], text="First I pay."),
                Calls([Call("put", {"n": 2}, id="c"), Call("fly", id="d"), Call("pay", {"n": 2}, id="e")]),
                Calls([Call("look", {"n": 3}, id="f"), Call("look", {"n": 3}, id="g"), Call("look", {"n": 3}, id="h")]),
                Call("pay", {"n": 4}, id="i"),
                Calls([Call("look", {"n": 5}, id="j")]),
                Say("All done."),
            ]
        )
    ]
)


MORE_POINTS_THAN_A_LIFE_HAS = 50


class Died(BaseException):
    pass


def die_at(count: int):
    """Die at the nth point, and at each one after it."""
    met = 0

    def crash(point: CrashPoint, /) -> None:
        nonlocal met
        met += 1
        if met > count:
            raise Died(point)

    return crash


async def undisturbed() -> Turn:
    turn = Turn(SCRIPT, limits=LIMITS)
    people_write(turn)
    return await turn.run()


def people_write(turn: Turn) -> None:
    """Four messages, of which three may join."""
    turn.writes("one", "two", "three", "four")


async def resumed(*deaths: int) -> Turn:
    turn = Turn(SCRIPT, limits=LIMITS)
    people_write(turn)
    for life, count in enumerate([*deaths, 10_000]):
        try:
            await turn.run(fresh=life == 0, crash=die_at(count))
        except Died:
            continue
        break
    return turn


def forgive_unknown(messages: list[Message], others: list[Message]) -> list[Message]:
    return [
        theirs if ours.content == sentences.UNKNOWN_OUTCOME else ours
        for ours, theirs in zip(messages, others, strict=True)
    ]


def hold(turn: Turn, other: Turn) -> None:
    assert isinstance(turn.log.ended, Answer)
    assert forgive_unknown(turn.log.messages, other.log.messages) == other.log.messages
    assert [row.text for row in turn.log.mail] == ["four"]
    ran = Counter(turn.tools.ran)
    assert all(ran[call_id] <= 1 for call_id in "aei")
    lost = [row.call_id for row in turn.log.calls.values() if row.result == sentences.UNKNOWN_OUTCOME]
    assert set(lost) <= set("aei")
    assert all(row.state != "open" for row in turn.log.model_calls.values())


async def test_the_undisturbed_turn_has_everything_in_it():
    turn = await undisturbed()

    assert turn.said == [
        sentences.budget_converge(10, 12),
        "added: one",
        "added: two",
        "added: three",
        sentences.budget_drop_optional(4),
        sentences.repetition("look", 3),
        sentences.budget_answer_now(2),
    ]


@pytest.mark.parametrize("death", range(MORE_POINTS_THAN_A_LIFE_HAS))
async def test_dying_once_anywhere_changes_nothing(death):
    hold(await resumed(death), await undisturbed())


@pytest.mark.parametrize("first", range(0, 45, 3))
async def test_dying_twice_anywhere_changes_nothing(first):
    other = await undisturbed()
    for second in range(0, 40, 2):
        hold(await resumed(first, second), other)


async def test_a_turn_that_dies_three_times_on_its_way_still_ends_well():
    other = await undisturbed()
    for step in range(1, 12):
        hold(await resumed(step, step, step), other)


async def test_a_call_that_had_started_is_unknown_and_the_model_is_told():
    turn = Turn(SCRIPT, limits=LIMITS)
    with pytest.raises(Died):
        await turn.run(crash=at(CrashPoint.CALL_RAN, die))
    await turn.run(fresh=False)

    assert turn.tools.ran.count("a") == 1
    assert turn.results[0] == sentences.UNKNOWN_OUTCOME


async def test_an_idempotent_call_is_run_again():
    turn = Turn(Script([Call("put", id="x"), Say("Done.")]))
    with pytest.raises(Died):
        await turn.run(crash=at(CrashPoint.CALL_RAN, die))
    await turn.run(fresh=False)

    assert turn.tools.ran == ["x", "x"]
    assert turn.log.started == ["x"]
    assert turn.results == ["result of x"]


async def test_a_halt_that_was_recorded_ends_the_resumed_turn():
    turn = Turn(Script([Calls([Call("stop", {"say": "Bye."}, id="x"), Call("pay", id="y")])]))
    with pytest.raises(Died):
        await turn.run(crash=at(CrashPoint.BATCH_RAN, die))
    await turn.run(fresh=False)

    assert isinstance(turn.log.ended, Answer)
    assert (turn.log.ended.content, turn.log.ended.outcome) == ("Bye.", "halted")
    assert turn.tools.ran == ["x", "y"]


async def test_a_request_that_was_paid_for_and_lost_is_booked_and_asked_again():
    turn = Turn(Script([Say("Done.")]))
    with pytest.raises(Died):
        await turn.run(crash=at(CrashPoint.MODEL_ANSWERED, die))
    await turn.run(fresh=False, crash=no_crash)

    assert [(row.attempt, row.state) for row in turn.log.model_calls.values()] == [(1, "estimated"), (2, "measured")]
    assert all(row.usage.input > 0 for row in turn.log.model_calls.values())


def die() -> None:
    raise Died


@pytest.mark.parametrize("time", range(1, 6))
async def test_a_call_whose_batch_had_run_is_never_unknown(time):
    turn = Turn(SCRIPT, limits=LIMITS)
    with pytest.raises(Died):
        await turn.run(crash=at(CrashPoint.BATCH_RAN, die, time))
    await turn.run(fresh=False)

    assert sentences.UNKNOWN_OUTCOME not in turn.results
    assert all(turn.tools.ran.count(call_id) == 1 for call_id in "aei")
