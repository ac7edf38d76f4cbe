from __future__ import annotations

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted
from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.storage.rows import LogEntry
from insika.turn import sentences
from insika.turn.rules import Said, TurnRules
from tests.loop_doubles import TURN, mail


def never(name: str) -> bool:
    return False


def play(rules: TurnRules, *tools: str, waiting: tuple[str, ...] = (), halts: bool = False) -> Said:
    """One batch of the named tools."""
    calls = [ToolCall(f"c{index}", tool) for index, tool in enumerate(tools)]
    rules.opened(assistant("", *calls))
    for call in calls:
        rules.admit(call, repeatable=False)
    for _ in calls:
        rules.returned("found", halts=halts)
    rows = [mail(position, text) for position, text in enumerate(waiting, start=1)]
    return rules.close([tool_result(call.id, "found") for call in calls], rows)


def log_of(*messages: tuple[int, Message, int | None]) -> list[LogEntry]:
    return [LogEntry(at, TURN, 1, step, message, position) for at, (step, message, position) in enumerate(messages, 1)]


def announce(step: int, *tools: str) -> Message:
    return assistant("", *(ToolCall(f"s{step}c{index}", tool) for index, tool in enumerate(tools)))


def test_what_is_said_at_a_boundary_is_gathered_with_its_events():
    rules = TurnRules(TurnLimits(max_tool_calls=11, max_tool_repeat=2, steer_join="<%{message}>"))
    said = play(rules, "a", waiting=("one", "two"))

    assert said.notices == (sentences.budget_converge(10, 11),)
    assert [(absorbed.position, absorbed.content) for absorbed in said.absorbed] == [(1, "<one>"), (2, "<two>")]
    assert [type for type, _ in said.events] == ["tool_budget_warned", "turn_steered"]


def test_nothing_is_said_twice():
    rules = TurnRules(TurnLimits(max_tool_calls=11))
    play(rules, "a", waiting=("one",))
    assert play(rules, "b") == Said()


def test_a_halted_batch_hears_nothing():
    rules = TurnRules(TurnLimits(max_tool_calls=3))
    assert play(rules, "a", waiting=("one",), halts=True) == Said()


def test_once_stopped_no_call_is_admitted():
    rules = TurnRules(TurnLimits(max_tool_calls=1))
    admitted = [rules.admit(ToolCall(f"c{n}", "a", {"n": n}), repeatable=False) for n in range(4)]

    assert admitted == [True, False, False, False]
    assert rules.stopped_by is not None
    assert rules.stopped_by.type == "tool_limit"
    assert not rules.synthesizes


def test_a_stopped_turn_asks_for_a_synthesis_and_takes_nobody_in():
    rules = TurnRules(TurnLimits(max_tool_calls=1, on_exhausted=OnExhausted.SYNTHESIZE))
    said = play(rules, "a", "b", waiting=("one",))

    assert rules.synthesizes
    assert said.notices[-1] == sentences.SYNTHESIS_REQUEST
    assert said.absorbed == ()


def test_room_for_steers_is_counted_over_the_whole_turn():
    rules = TurnRules(TurnLimits(steer_max_messages=2))
    assert len(play(rules, "a", waiting=("1",)).absorbed) == 1
    assert rules.takes_steers
    assert [absorbed.content for absorbed in play(rules, "b", waiting=("2", "3")).absorbed] == ["2"]
    assert not rules.takes_steers


def test_malformed_calls_are_compared_by_what_was_written():
    rules = TurnRules(TurnLimits(max_tool_repeat=2))
    calls = [ToolCall("a", "look", {}, "{a"), ToolCall("b", "look", {}, "{b"), ToolCall("c", "look", {}, "{b")]
    assert all(rules.admit(call, repeatable=False) for call in calls)
    assert not rules.admit(ToolCall("d", "look", {}, "{b"), repeatable=False)


def test_resumed_rules_count_what_the_log_holds():
    log = log_of(
        (0, user("hello"), 1),
        (1, announce(1, "a", "b"), None),
        (1, tool_result("s1c0", "x"), None),
        (1, tool_result("s1c1", "x"), None),
        (1, user(sentences.budget_converge(10, 12)), None),
        (1, user("steered"), 2),
    )
    rules = TurnRules.resumed(TurnLimits(max_tool_calls=12, steer_max_messages=2), log, never)
    said = play(rules, "c", "d", "e", "f", "g", waiting=("1", "2"))

    assert said.notices == (sentences.budget_drop_optional(5),)
    assert len(said.absorbed) == 1


def test_an_open_batch_is_open_and_not_counted():
    log = log_of((0, user("hello"), 1), (1, announce(1, "a", "b"), None))
    rules = TurnRules.resumed(TurnLimits(max_tool_calls=4), log, never)

    assert [rules.admit(call, repeatable=False) for call in log[1].message.tool_calls] == [True, True]
    said = rules.close([tool_result("s1c0", "x"), tool_result("s1c1", "x")], ())
    assert said.notices == (sentences.budget_answer_now(2),)


def test_resumed_rules_know_that_they_had_stopped():
    limits = TurnLimits(max_tool_calls=1, on_exhausted=OnExhausted.SYNTHESIZE)
    log = log_of(
        (0, user("hello"), 1),
        (1, announce(1, "a", "b"), None),
        (1, tool_result("s1c0", "x"), None),
        (1, tool_result("s1c1", sentences.not_run("tool_limit")), None),
        (1, user(sentences.SYNTHESIS_REQUEST), None),
    )
    assert TurnRules.resumed(limits, log, never).synthesizes


def test_what_a_person_types_is_never_mistaken_for_the_engine_s_word():
    limits = TurnLimits(max_tool_calls=3, on_exhausted=OnExhausted.SYNTHESIZE)
    log = log_of((0, user(sentences.SYNTHESIS_REQUEST), 1))
    assert not TurnRules.resumed(limits, log, never).synthesizes
