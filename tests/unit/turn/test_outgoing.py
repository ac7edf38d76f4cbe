"""What a model says leaves without what may not: in pieces, in narration and in every kind of answer."""

from __future__ import annotations

import pytest

from insika.agents.guardrails import Guardrails
from insika.agents.limits import TurnLimits
from insika.events import EventType
from insika.messages import Role
from insika.pattern_files import read_library
from insika.policy.guardrails.guards import Guards
from insika.testing import Call, Cut, Say, Script
from insika.turn.log import Answer
from insika.turn.outgoing import ShownAttempt
from tests.loop_doubles import Turn

GUARDS = Guards(read_library())
CARD = "4111 1111 1111 1111"
ANSWER = f"Your card is {CARD}, and your order is 1234."
CLEAN = "Your card is [card number removed], and your order is 1234."


def guarded(script: Script, **others) -> Turn:
    turn = Turn(script, **others)
    turn.outgoing = GUARDS.output(Guardrails())
    return turn


def shown(turn: Turn, type: EventType = EventType.CONTENT) -> str:
    return "".join(data["text"] for kind, data in turn.emit.events if kind == type)


def answer(turn: Turn) -> Answer:
    assert isinstance(turn.log.ended, Answer)
    return turn.log.ended


async def test_log_delivery_and_events_hold_the_same_answer():
    turn = await guarded(Script([Say(ANSWER)])).run()
    assert answer(turn).content == CLEAN
    assert turn.log.said_by(Role.ASSISTANT) == [CLEAN]
    assert shown(turn) == CLEAN
    assert turn.event("guardrail_flagged") == {"reason": "redacted", "step": 1, "kinds": {"card": 1}}
    assert CARD not in repr(turn.emit.events)


async def test_what_is_clean_is_told_as_it_comes_and_of_nothing():
    turn = await guarded(Script([Say("Order 1234 is on its way.")])).run()
    assert (answer(turn).content, shown(turn)) == ("Order 1234 is on its way.",) * 2
    assert "guardrail_flagged" not in turn.events
    assert turn.events.count("content") > 1


async def test_narration_is_told_without_it_and_kept_as_the_model_said_it():
    turn = await guarded(Script([Call("look", text=ANSWER), Say("Done.")])).run()
    assert turn.event("intermediate")["text"] == CLEAN
    assert CARD not in repr(turn.emit.events)
    assert turn.log.messages[1].content == ANSWER
    assert turn.events.index("guardrail_flagged") < turn.events.index("intermediate")


async def test_an_answer_by_halt_reaches_a_person_too():
    turn = await guarded(Script([Call("stop", {"say": ANSWER})])).run()
    assert (answer(turn).content, answer(turn).outcome) == (CLEAN, "halted")
    assert turn.results == [ANSWER], "the result itself is the operator's own data"
    assert turn.event("guardrail_flagged")["kinds"] == {"card": 1}


async def test_an_answer_by_halt_without_words_of_its_own_is_what_was_said_with_the_call():
    turn = await guarded(Script([Call("stop", text=ANSWER)])).run()
    assert answer(turn).content == CLEAN


async def test_the_synthesized_answer_too():
    limits = TurnLimits(max_tool_calls=1, on_exhausted="synthesize")
    script = Script([Call("look", {"n": 1}), Call("look", {"n": 2}), Say(ANSWER)])
    turn = await guarded(script, limits=limits).run()
    assert answer(turn).synthesized
    assert (answer(turn).content, shown(turn)) == (CLEAN, CLEAN)


async def test_of_an_attempt_that_breaks_off_nothing_held_back_is_shown():
    turn = await guarded(Script([Cut(Say(f"It is {CARD}"), 4)])).run()
    assert not [sign for sign in shown(turn) if sign.isdigit()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_nothing_leaks_across_the_borders_of_pieces(size):
    said, thought = [], []

    def show(type: EventType, text: str) -> None:
        (said if type is EventType.CONTENT else thought).append(text)

    attempt = ShownAttempt(GUARDS.output(Guardrails()), show)
    pieces = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]
    for piece in pieces:
        attempt.thinks(piece)
    for piece in pieces:
        attempt.says(piece)
    attempt.ends()
    assert ("".join(said), "".join(thought)) == (CLEAN, CLEAN)
    assert attempt.found_thinking == {"card": 1}


def test_a_thought_is_shown_whole_before_the_words_that_follow_it():
    order: list[tuple[str, str]] = []
    attempt = ShownAttempt(GUARDS.output(Guardrails()), lambda type, text: order.append((str(type), text)))
    attempt.thinks("It is 4111")
    attempt.says("Hello ")
    attempt.thinks("Or 1234")
    attempt.ends()
    merged = "|".join(f"{type}:{text}" for type, text in order)
    assert merged.replace("|thinking:4111", "4111").replace("|thinking:1234", "1234") == (
        "thinking:It is 4111|content:Hello |thinking:Or 1234"
    )
