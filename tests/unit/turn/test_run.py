from __future__ import annotations

import asyncio

import pytest

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted
from insika.clock import ManualClock
from insika.crash_points import CrashPoint
from insika.errors import ProviderError, ProviderFatal
from insika.messages import Message, Role, ToolCall, Usage, assistant, tool_result, user
from insika.ports import Finished, TextDelta
from insika.storage.rows import CallState
from insika.testing import Call, Calls, Cut, Fail, Rule, Say, Script
from insika.turn import sentences
from insika.turn.log import Answer, Failure
from tests.loop_doubles import Turn, at, forever, some_tools

SYNTHESIZE = TurnLimits(max_tool_calls=3, on_exhausted=OnExhausted.SYNTHESIZE)


def looks(count: int, first: int = 0) -> list[Call]:
    """Calls that do not repeat each other."""
    return [Call("look", {"n": index}) for index in range(first, first + count)]


def answered(turn: Turn) -> Answer:
    assert isinstance(turn.log.ended, Answer), turn.log.ended
    return turn.log.ended


def failed(turn: Turn) -> Failure:
    assert isinstance(turn.log.ended, Failure), turn.log.ended
    return turn.log.ended


# --- answers and batches ----------------------------------------------------------------------------------------------


async def test_an_answer_without_tools():
    turn = await Turn(Script([Say("Good day.")])).run()

    answer = answered(turn)
    assert (answer.content, answer.outcome, answer.synthesized) == ("Good day.", "completed", False)
    assert [(row.state, row.step) for row in turn.log.model_calls.values()] == [("measured", 1)]
    assert answer.usage.total > 0
    assert "".join(data["text"] for kind, data in turn.emit.events if kind == "content") == "Good day."


async def test_one_call_and_the_answer():
    turn = await Turn(Script([Call("look", {"n": 1}, text="Let me see."), Say("Found.")])).run()

    assert answered(turn).content == "Found."
    assert len(turn.tools.ran) == 1
    assert [message.role for message in turn.log.messages] == ["user", "assistant", "tool", "assistant"]
    assert turn.event("intermediate") == {"step": 1, "attempt": 1, "text": "Let me see."}
    assert [(row.step, row.state) for row in turn.log.model_calls.values()] == [(1, "measured"), (2, "measured")]
    assert answered(turn).usage == sum((row.usage for row in turn.log.model_calls.values()), Usage())


async def test_many_calls_in_one_batch_are_answered_in_order():
    turn = await Turn(Script([Calls(looks(8)), Say("Done.")])).run()

    announced = [call.id for call in turn.log.messages[1].tool_calls]
    assert turn.tools.ran == announced
    assert turn.results == [f"result of {id}" for id in announced]


@pytest.mark.parametrize("concurrency", [2, 3, 8, 20])
async def test_results_stand_in_announced_order_however_the_calls_end(concurrency):
    tools = some_tools()
    done: list[str] = []

    async def later_ones_end_first(call: ToolCall) -> None:
        for _ in range(20 - 2 * call.arguments["n"]):
            await asyncio.sleep(0)
        done.append(call.id)

    tools.gate = later_ones_end_first
    limits = TurnLimits(tool_concurrency=concurrency)
    turn = await Turn(Script([Calls(looks(8)), Say("Done.")]), limits=limits, tools=tools).run()

    announced = [call.id for call in turn.log.messages[1].tool_calls]
    assert done != announced
    assert turn.results == [f"result of {id}" for id in announced]
    assert tools.most_at_once == min(concurrency, 8)


async def test_the_model_sees_every_result_before_it_speaks_again():
    turn = await Turn(Script([Calls(looks(2)), Call("pay", {"amount": 1}), Say("Done.")])).run()

    assert [len(request.messages) for request in turn.model.requests] == [1, 4, 6]
    first, second, third = (request.messages for request in turn.model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


async def test_the_answer_of_an_earlier_turn_stands_before_this_one():
    history = [user("before"), assistant("an earlier answer")]
    turn = await Turn(Script([Say("Now.")]), history=history).run()

    assert [message.content for message in turn.model.requests[0].messages] == ["before", "an earlier answer", "hello"]


async def test_a_model_that_says_nothing_ends_the_turn_with_nothing_to_deliver():
    turn = await Turn(Script([Call("look"), Say("\n \n")])).run()

    assert answered(turn).content == ""
    assert turn.log.messages[-1].role is Role.TOOL


# --- what a model gets wrong ------------------------------------------------------------------------------------------


async def test_an_unknown_tool_is_answered_and_counted():
    limits = TurnLimits(max_tool_calls=3)
    turn = await Turn(Script([Call("fly"), Say("I cannot fly.")]), limits=limits).run()

    assert turn.tools.ran == []
    assert turn.results == [sentences.tool_not_available("fly")]
    assert turn.log.messages[2].is_error
    assert turn.said == [sentences.budget_answer_now(2)]


async def test_malformed_arguments_are_answered_and_counted():
    limits = TurnLimits(max_tool_calls=3)
    turn = await Turn(Script([Call("look", malformed="{half"), Say("Sorry.")]), limits=limits).run()

    assert turn.tools.ran == []
    assert turn.results == ["not an object"]
    assert turn.said == [sentences.budget_answer_now(2)]


async def test_refused_arguments_are_not_written_as_started():
    turn = await Turn(Script([Calls([Call("strict"), Call("pay")]), Say("Sorry.")])).run()

    rows = list(turn.log.calls.values())
    assert [row.state for row in rows] == [CallState.NOT_RUN, CallState.DONE]
    assert turn.results[0] == "x: expected a number"
    assert turn.log.started == [rows[1].call_id]


async def test_a_tool_that_fails_is_the_model_s_business():
    turn = await Turn(Script([Call("break"), Say("It is broken.")])).run()

    assert answered(turn).outcome == "completed"
    assert turn.log.messages[2] == tool_result(turn.log.messages[1].tool_calls[0].id, "it broke", is_error=True)


async def test_a_side_effect_cut_by_its_time_limit_is_unknown():
    turn = await Turn(Script([Calls([Call("hang"), Call("slow")]), Say("Who knows.")])).run()

    assert [row.state for row in turn.log.calls.values()] == [CallState.UNKNOWN, CallState.DONE]
    assert turn.results == [sentences.UNKNOWN_OUTCOME, "gave up"]


async def test_call_ids_that_repeat_or_are_missing_are_told_apart():
    taken = [user("before"), assistant("", ToolCall("same", "look")), tool_result("same", "x"), assistant("done")]
    steps = [
        Calls([Call("look", {"n": 1}, id="same"), Call("look", {"n": 2}, id=""), Call("look", {"n": 3}, id="same")]),
        Calls([Call("look", {"n": 4}, id="same"), Call("look", {"n": 5}, id="not an id!"), Call("look", id="fresh")]),
        Say("Done."),
    ]
    turn = await Turn(Script(steps), history=taken).run()

    ids = [call.id for message in turn.log.messages for call in message.tool_calls]
    assert len(set(ids)) == 7
    assert ids[-1] == "fresh"
    assert len(turn.tools.ran) == 6


async def test_what_no_vendor_takes_back_never_enters_the_log():
    steps = [
        Calls([Call("not a name", {"n": 1}), Call("look", {"half": "\ud83d", "nul": "a\0b"})], text=" \n"),
        Call("look", {"n": float("nan")}),
        Say("An answer with half a \udc00 pair."),
    ]
    turn = await Turn(Script(steps)).run()

    assert turn.log.messages[1].content == ""
    assert turn.log.messages[1].tool_calls[1].arguments == {"half": "\ufffd", "nul": "a\ufffdb"}
    assert turn.results[0] == sentences.tool_not_available("unreadable_tool_name")
    assert turn.results[2] == "not an object"
    assert answered(turn).content == "An answer with half a \ufffd pair."
    assert len(turn.tools.ran) == 1


# --- halts ------------------------------------------------------------------------------------------------------------


async def test_a_halt_ends_the_turn_and_speaks():
    turn = await Turn(Script([Call("stop", {"say": "Goodbye."}, text="Closing."), Say("never said")])).run()

    answer = answered(turn)
    assert (answer.content, answer.outcome) == ("Goodbye.", "halted")
    assert len(turn.model.requests) == 1
    assert turn.log.messages[-1] == assistant("Goodbye.")


async def test_the_last_halt_in_announced_order_speaks_and_the_others_still_run():
    calls = [Call("stop", {"say": "first"}), Call("pay"), Call("stop", {"say": "second"}), Call("look")]
    for concurrency in (1, 4):
        limits = TurnLimits(tool_concurrency=concurrency)
        turn = await Turn(Script([Calls(calls)]), limits=limits).run()
        assert answered(turn).content == "second"
        assert len(turn.tools.ran) == 4


async def test_an_empty_halt_leaves_the_word_to_the_message_that_announced_it():
    for content in ("", " \n"):
        turn = await Turn(Script([Call("stop", {"say": content}, text="I am closing this.")])).run()
        assert answered(turn).content == "I am closing this."


async def test_where_neither_halt_nor_message_says_anything_nothing_is_said():
    turn = await Turn(Script([Call("stop")])).run()

    assert (answered(turn).content, answered(turn).outcome) == ("", "halted")
    assert turn.log.messages[-1].role is Role.TOOL


async def test_a_halted_batch_takes_no_notice_and_no_steer():
    limits = TurnLimits(max_tool_calls=11)
    turn = Turn(Script([Call("stop", {"say": "Bye."})]), limits=limits)
    turn.writes("wait!")
    await turn.run()

    assert turn.said == []
    assert [row.text for row in turn.log.mail] == ["wait!"]


# --- the budget -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "batches", "said"),
    [
        (11, [1], [sentences.budget_converge(10, 11)]),
        (10, [1], []),
        (12, [1, 1, 1], [sentences.budget_converge(10, 12)]),
        (12, [7], [sentences.budget_drop_optional(5)]),
        (12, [10], [sentences.budget_answer_now(2)]),
        (12, [11], [sentences.budget_answer_now(1)]),
        (12, [12], [sentences.budget_answer_now(0)]),
        (12, [6], [sentences.budget_converge(6, 12)]),
        (
            12,
            [6, 1, 3],
            [sentences.budget_converge(6, 12), sentences.budget_drop_optional(5), sentences.budget_answer_now(2)],
        ),
        (3, [1], [sentences.budget_answer_now(2)]),
    ],
)
async def test_the_budget_speaks_at_the_boundary_at_which_it_is_due(limit, batches, said):
    done, steps = 0, []
    for size in batches:
        steps.append(Calls(looks(size, done)))
        done += size
    turn = await Turn(Script([*steps, Say("Done.")]), limits=TurnLimits(max_tool_calls=limit)).run()

    assert turn.said == said
    assert turn.events.count("tool_budget_warned") == len(said)
    assert answered(turn).content == "Done."


async def test_the_notice_stands_between_the_results_and_what_people_say():
    turn = Turn(Script([Call("look"), Say("Done.")]), limits=TurnLimits(max_tool_calls=3))
    turn.writes("one more thing")
    await turn.run()

    assert turn.said == [sentences.budget_answer_now(2), "one more thing"]


async def test_the_call_past_the_limit_ends_the_turn_and_those_before_it_have_run():
    limits = TurnLimits(max_tool_calls=3)
    turn = await Turn(Script([Calls([*looks(2), Call("pay"), *looks(3, 2)]), Say("never")]), limits=limits).run()

    assert failed(turn).error.type == "tool_limit"
    assert len(turn.tools.ran) == 3
    assert turn.results[3:] == [sentences.not_run("tool_limit")] * 3
    assert len(turn.model.requests) == 1
    assert [row.state for row in turn.log.calls.values()] == ["done"] * 3 + ["not_run"] * 3


async def test_with_synthesis_the_calls_within_run_and_one_last_request_without_tools_follows():
    script = Script([Calls(looks(2)), Calls(looks(3, 2)), Say("What I know.")])
    turn = Turn(script, limits=SYNTHESIZE)
    turn.writes("hurry")
    await turn.run()

    answer = answered(turn)
    assert (answer.content, answer.outcome, answer.synthesized) == ("What I know.", "completed", True)
    assert len(turn.tools.ran) == 3
    assert turn.results[3:] == [sentences.not_run("tool_limit")] * 2
    assert [request.callable for request in turn.model.requests] == [True, True, False]
    assert all(request.tools == turn.tools.specs() for request in turn.model.requests)
    assert turn.said[-1] == sentences.SYNTHESIS_REQUEST
    assert [key.purpose for key in turn.log.model_calls] == ["answer", "answer", "synthesis"]
    assert all(row.state == "measured" for row in turn.log.model_calls.values())


async def test_a_stopped_turn_takes_no_steers():
    turn = Turn(Script([Calls(looks(4)), Say("What I know.")]), limits=SYNTHESIZE)
    turn.writes("wait!")
    await turn.run()

    assert turn.said == [sentences.budget_answer_now(0), sentences.SYNTHESIS_REQUEST]
    assert [row.text for row in turn.log.mail] == ["wait!"]


async def test_a_synthesis_that_says_nothing_fails_with_what_stopped_the_turn():
    turn = await Turn(Script([Calls(looks(4)), Say("")]), limits=SYNTHESIZE).run()

    assert failed(turn).error.type == "tool_limit"
    synthesis = list(turn.log.model_calls.values())[-1]
    assert synthesis.usage.input > 0


async def test_a_model_that_calls_tools_while_it_should_synthesize_runs_none():
    script = Script([Calls(looks(4)), Call("pay", text="I will pay.")], disobeys=True)
    turn = await Turn(script, limits=SYNTHESIZE).run()

    assert answered(turn).content == "I will pay."
    assert len(turn.tools.ran) == 3
    assert turn.log.messages[-1].tool_calls == ()


async def test_a_halt_within_the_limit_counts_more_than_the_call_past_it():
    limits = TurnLimits(max_tool_calls=1, on_exhausted=OnExhausted.SYNTHESIZE)
    turn = await Turn(Script([Calls([Call("stop", {"say": "Bye."}), Call("pay")])]), limits=limits).run()

    assert (answered(turn).content, answered(turn).outcome) == ("Bye.", "halted")
    assert len(turn.model.requests) == 1


# --- repetition -------------------------------------------------------------------------------------------------------


async def test_the_fourth_equal_call_ends_the_turn_after_one_notice():
    again = [Call("look", {"a": 1, "b": 2}), Call("look", {"b": 2, "a": 1})] * 4
    turn = await Turn(Script(again)).run()

    assert failed(turn).error.type == "tool_repetition"
    assert len(turn.tools.ran) == 3
    assert turn.said == [sentences.repetition("look", 3)]
    assert turn.results[-1] == sentences.not_run("tool_repetition")


async def test_two_calls_in_turn_are_a_circle_too():
    turn = await Turn(Script([Call("look", {"n": index % 2}) for index in range(9)])).run()

    assert failed(turn).error.type == "tool_repetition"
    assert len(turn.tools.ran) == 6


async def test_a_circle_can_end_in_a_synthesis():
    limits = TurnLimits(on_exhausted=OnExhausted.SYNTHESIZE)
    turn = await Turn(Script([*[Call("look")] * 4, Say("Enough.")]), limits=limits).run()

    assert answered(turn).synthesized
    assert turn.said == [sentences.repetition("look", 3), sentences.SYNTHESIS_REQUEST]


async def test_what_is_declared_repeatable_is_no_circle():
    turn = await Turn(Script([*[Call("poll")] * 9, Say("At last.")])).run()

    assert answered(turn).content == "At last."
    assert turn.said == []


async def test_a_repeatable_tool_that_is_denied_meanwhile_does_not_make_its_past_a_circle():
    turn = Turn(Script([*[Call("poll")] * 6, Say("At last.")]))
    polled = turn.tools.tools["poll"]
    turn.tools.repeatable = lambda name: name == "poll"

    def deny_and_write() -> None:
        del turn.tools.tools["poll"]
        turn.writes("look again")

    await turn.run(crash=at(CrashPoint.BATCH_RAN, deny_and_write, time=5))

    assert polled not in turn.tools.tools.values()
    assert answered(turn).content == "At last."


# --- people write meanwhile -------------------------------------------------------------------------------------------


async def test_what_people_write_joins_at_the_boundary_in_order_and_framed():
    limits = TurnLimits(steer_join="and also: %{message}!")
    turn = Turn(Script([Calls(looks(3)), Say("Done.")]), limits=limits)
    turn.writes("first", "50% of %{message}")
    await turn.run()

    assert turn.said == ["and also: first!", "and also: 50% of %{message}!"]
    assert turn.event("turn_steered") == {"count": 2, "total": 2}
    assert [entry.position for entry in turn.log.entries if entry.position] == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 2, 8])
async def test_mail_that_comes_between_the_look_and_the_boundary_still_joins(size):
    turn = Turn(Script([Calls(looks(size)), Say("Done.")]))
    await turn.run(crash=at(CrashPoint.BATCH_RAN, lambda: turn.writes("just in time")))

    assert turn.said == ["just in time"]
    assert turn.log.mail == []


async def test_mail_that_keeps_coming_does_not_keep_the_turn_from_going_on():
    turn = Turn(Script([Call("look", {"n": 1}), Say("Done.")]), limits=TurnLimits(steer_max_messages=100))
    look_again = turn.log.look_again

    async def and_another() -> None:
        await look_again()
        turn.writes("and another")

    turn.log.look_again = and_another
    await turn.run(crash=at(CrashPoint.BATCH_RAN, lambda: turn.writes("one")))

    assert answered(turn).content == "Done."
    joined, waiting = turn.said, [row.text for row in turn.log.mail]
    assert len(joined) + len(waiting) == 6
    assert waiting == ["and another"]


async def test_looking_again_does_not_say_a_notice_twice_or_count_a_call_twice():
    turn = Turn(Script([Calls(looks(6)), Calls(looks(4, 6)), Say("Done.")]), limits=TurnLimits(max_tool_calls=11))
    turn.writes("a")
    await turn.run(crash=at(CrashPoint.BATCH_RAN, lambda: turn.writes("b"), time=2))

    assert turn.said == [sentences.budget_drop_optional(5), "a", sentences.budget_answer_now(1), "b"]


async def test_no_more_join_than_may_and_the_rest_stays():
    limits = TurnLimits(steer_max_messages=3)
    turn = Turn(Script([Call("look", {"n": 1}), Call("look", {"n": 2}), Call("look", {"n": 3}), Say("Done.")]))
    turn.limits = limits
    turn.writes("1", "2")

    await turn.run(crash=at(CrashPoint.BATCH_RAN, lambda: turn.writes("3", "4"), time=2))

    assert turn.said == ["1", "2", "3"]
    assert [row.text for row in turn.log.mail] == ["4"]


async def test_with_room_for_nobody_nobody_joins():
    turn = Turn(Script([Call("look"), Say("Done.")]), limits=TurnLimits(steer_max_messages=0))
    turn.writes("hello?")
    await turn.run()

    assert turn.said == []
    assert len(turn.log.mail) == 1


async def test_a_correction_is_read_by_the_very_next_request():
    script = Script(
        rules=[Rule([Say("The blue one, then.")], when="blue", restarts=True), Rule([Call("look", {"n": 1})])]
    )
    turn = Turn(script)
    turn.writes("no, the blue one")
    await turn.run()

    assert answered(turn).content == "The blue one, then."


# --- time -------------------------------------------------------------------------------------------------------------


async def test_the_turn_ends_in_time_while_the_model_talks():
    class Endless:
        async def stream(self, request):
            yield TextDelta("well ")
            await forever()

    turn = await Turn(Endless(), time_s=0.01).run()

    assert failed(turn).error.type == "timeout"
    (row,) = turn.log.model_calls.values()
    assert row.state == "estimated"
    assert row.usage.output == 2


async def test_the_turn_ends_in_time_at_the_boundary_with_its_batch_closed():
    clock = ManualClock()
    turn = Turn(Script([Calls(looks(2)), Say("never")]), clock=clock, time_s=60)
    await turn.run(crash=at(CrashPoint.BATCH_RAN, lambda: clock.advance(60)))

    assert failed(turn).error.type == "timeout"
    assert len(turn.results) == 2
    assert len(turn.model.requests) == 1


async def test_no_call_begins_once_the_turn_has_had_its_time():
    clock = ManualClock()
    tools = some_tools()

    async def takes_a_minute(call: ToolCall) -> None:
        clock.advance(60)

    tools.gate = takes_a_minute
    turn = Turn(Script([Calls([Call("pay"), *looks(2)]), Say("never")]), tools=tools, clock=clock, time_s=100)
    await turn.run()

    assert failed(turn).error.type == "timeout"
    assert len(tools.ran) == 2
    assert turn.results[2] == sentences.not_run("timeout")


async def test_a_turn_without_time_left_asks_nobody():
    turn = await Turn(Script([Say("never")]), time_s=0.0).run()

    assert failed(turn).error.type == "timeout"
    assert turn.model.requests == []


async def test_timing_is_told_in_milliseconds():
    clock = ManualClock()
    tools = some_tools()

    async def takes_two_seconds(call: ToolCall) -> None:
        clock.advance(2)

    tools.gate = takes_two_seconds
    turn = await Turn(Script([Call("look"), Say("Done.")]), tools=tools, clock=clock).run()

    assert answered(turn).timing == {"total_ms": 2000.0, "model_ms": 0.0, "tools_ms": 2000.0}


# --- providers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "type"),
    [
        (Fail("overloaded"), "provider_unavailable"),
        (Fail("no such account", fatal=True), "provider_fatal"),
        (Cut(Say("half an answer"), 2), "provider_unavailable"),
        (Cut(Call("pay", text="I will"), 1), "provider_unavailable"),
    ],
)
async def test_a_provider_that_fails_fails_the_turn(step, type):
    turn = await Turn(Script([Call("look"), step, Say("never")])).run()

    assert failed(turn).error.type == type
    assert [row.state for row in turn.log.model_calls.values()] == ["measured", "estimated"]
    assert turn.log.messages[-1].role is Role.TOOL
    assert turn.log.started == []


@pytest.mark.parametrize("error", [RuntimeError("boom"), TimeoutError("read"), KeyError("choices"), OSError("reset")])
async def test_whatever_else_comes_out_of_a_provider_is_fatal(error):
    class Broken:
        async def stream(self, request):
            yield TextDelta("well")
            raise error

    turn = await Turn(Broken()).run()

    assert isinstance(failed(turn).error, ProviderFatal)
    assert type(error).__name__ in failed(turn).error.message
    assert str(error.args[0]) not in failed(turn).error.message


async def test_a_stream_that_ends_without_its_message_fails_the_turn():
    class Short:
        async def stream(self, request):
            yield TextDelta("well")

    turn = await Turn(Short()).run()

    assert type(failed(turn).error) is ProviderError


async def test_an_error_on_closing_the_stream_after_the_answer_is_the_provider_s():
    class Untidy:
        async def stream(self, request):
            try:
                yield Finished(Message(Role.ASSISTANT, "hello"), Usage(1, 1))
            finally:
                raise RuntimeError("could not close")

    turn = await Turn(Untidy()).run()

    assert failed(turn).error.type == "provider_fatal"
