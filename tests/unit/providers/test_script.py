from __future__ import annotations

from insika.providers.scene import Scene
from insika.providers.script import ALL_SAID, Call, Calls, Cut, Fail, Rule, Say, Script


def scene(*said: str, step: int = 0, since: int | None = None, tools: tuple[str, ...] = ("find",)) -> Scene:
    return Scene(said, (), step, step if since is None else since, (), frozenset(tools))


def test_the_nth_message_of_a_turn_follows_the_nth_step() -> None:
    script = Script([Call("find"), Say("done")])
    assert script.answer(scene("x")) == Call("find")
    assert script.answer(scene("x", step=1)) == Say("done")
    assert script.answer(scene("x", step=2)) == ALL_SAID
    assert script.answer(scene("x", step=99)) == ALL_SAID


def test_what_comes_afterwards_can_be_chosen() -> None:
    assert Script(afterwards=Say("bye")).answer(scene("x")) == Say("bye")
    assert Script(afterwards=lambda seen: Say(seen.text)).answer(scene("x", step=7)) == Say("x")


def test_a_step_may_be_a_function_of_the_scene() -> None:
    script = Script([lambda seen: Say(seen.text.upper())])
    assert script.answer(scene("hello")) == Say("HELLO")


def test_the_first_rule_that_matches_answers() -> None:
    script = Script(
        [Say("no rule")],
        rules=[Rule([Say("order")], when=r"\border \d+"), Rule([Say("hello")], when="hello|order")],
    )
    assert script.answer(scene("ORDER 12")) == Say("order")
    assert script.answer(scene("order twelve")) == Say("hello")
    assert script.answer(scene("?")) == Say("no rule")


def test_a_rule_looks_at_what_was_said_last() -> None:
    script = Script(rules=[Rule([Say("one")], when="one"), Rule([Say("two"), Say("two again")], when="two")])
    assert script.answer(scene("one", "two", step=1)) == Say("two again")


def test_a_rule_can_start_anew_when_somebody_joins() -> None:
    script = Script(rules=[Rule([Say("first"), Say("second")], restarts=True)])
    assert script.answer(scene("a", "b", step=1, since=0)) == Say("first")


def test_without_tools_on_offer_only_texts_are_said() -> None:
    script = Script([Call("find", text="let me see"), Calls([Call("find")]), Cut(Call("find", text="hm"), 1), Fail()])
    answers = [script.answer(scene("x", step=step, tools=())) for step in range(4)]
    assert answers == [Say("let me see"), ALL_SAID, Cut(Say("hm"), 1), Fail()]


def test_a_disobedient_script_calls_what_nobody_offered() -> None:
    assert Script([Call("find")], disobeys=True).answer(scene("x", tools=())) == Call("find")
