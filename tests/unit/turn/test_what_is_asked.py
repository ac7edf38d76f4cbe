"""What a request holds besides the conversation, and that none of it changes while the turn goes on."""

from __future__ import annotations

from insika.agents.limits import TurnLimits
from insika.choices import OnExhausted, Thinking
from insika.messages import ToolCall, Verbatim, assistant, user
from insika.ports import ThinkingDelta
from insika.testing import Call, Calls, Say, Script
from tests.loop_doubles import MODEL, Turn
from tests.spoken_models import SpokenModel, finished

SIGNED = Verbatim(MODEL, ({"type": "thinking", "signature": "sig"}, {"type": "tool_use", "id": "a"}))


async def test_a_request_names_its_model_and_what_the_turn_has_frozen():
    limits = TurnLimits(thinking=Thinking.HIGH, max_output_tokens=900)
    turn = await Turn(Script([Say("Done.")]), limits=limits, note="Be brief.").run()

    (request,) = turn.model.requests
    assert (request.provider, request.reference) == ("offline", "offline/script")
    assert (request.thinking, request.max_tokens, request.note) == (Thinking.HIGH, 900, "Be brief.")
    assert request.may_call
    assert request.instructions == "You help."


async def test_where_nobody_has_said_anything_nothing_is_said_to_the_provider():
    (request,) = (await Turn(Script([Say("Done.")])).run()).model.requests
    assert (request.thinking, request.max_tokens, request.note) == (None, None, "")


async def test_a_request_says_where_the_running_turn_begins():
    history = [user("before"), assistant("an answer"), user("failed then")]
    turn = Turn(Script([Call("look", {"n": 1}), Say("Done.")]), history=history, opening=["one", "two"])
    turn.writes("and more")
    await turn.run()

    assert [request.turn_from for request in turn.model.requests] == [3, 3]
    for request in turn.model.requests:
        assert [message.content for message in request.messages[3:5]] == ["one", "two"]


async def test_the_last_request_of_a_stopped_turn_has_the_same_tools_and_may_call_none():
    limits = TurnLimits(max_tool_calls=1, on_exhausted=OnExhausted.SYNTHESIZE, thinking=Thinking.LOW)
    calls = [Call("look", {"n": n}) for n in range(2)]
    turn = await Turn(Script([Calls(calls), Say("What I know.")]), limits=limits, note="n").run()

    first, last = turn.model.requests
    assert (first.may_call, last.may_call) == (True, False)
    assert (first.tools, first.thinking, first.note) == (last.tools, last.thinking, last.note)
    assert len(last.tools) == len(turn.tools.tools)


async def test_what_a_provider_wants_back_verbatim_comes_back_as_it_was():
    said = assistant("Let me see.", ToolCall("a", "look", {"n": 1}))
    message = type(said)(said.role, said.content, said.tool_calls, verbatim=SIGNED)
    model = SpokenModel([ThinkingDelta("hm"), finished(message)], [finished()])
    turn = await Turn(model).run()

    assert turn.log.messages[1].verbatim == SIGNED
    assert model.requests[1].messages[1].verbatim == SIGNED


async def test_a_turn_that_is_taken_up_again_sends_it_back_too():
    said = assistant("", ToolCall("a", "pay", {"n": 1}))
    message = type(said)(said.role, said.content, said.tool_calls, verbatim=SIGNED)
    model = SpokenModel([finished(message)], [finished()])
    turn = Turn(model)

    class Died(BaseException):
        pass

    def die(point):
        if point == "batch_ran":
            raise Died

    try:
        await turn.run(crash=die)
    except Died:
        await turn.run(fresh=False)
    assert model.requests[1].messages[1].verbatim == SIGNED


async def test_reasoning_is_told_as_it_comes_and_is_no_part_of_anything_else():
    call = assistant("", ToolCall("a", "look", {"n": 1}))
    model = SpokenModel([ThinkingDelta("let "), ThinkingDelta("me"), finished(call)], [finished("Done.")])
    turn = await Turn(model).run()

    assert [data for kind, data in turn.emit.events if kind == "thinking"] == [
        {"step": 1, "attempt": 1, "text": "let "},
        {"step": 1, "attempt": 1, "text": "me"},
    ]
    assert turn.event("intermediate") == {"step": 1, "attempt": 1, "text": ""}
    assert all("let me" not in message.content for message in turn.log.messages)


async def test_a_step_that_showed_nothing_tells_of_no_narration():
    call = assistant("", ToolCall("a", "look", {"n": 1}))
    turn = await Turn(SpokenModel([finished(call)], [finished()])).run()
    assert "intermediate" not in turn.events
