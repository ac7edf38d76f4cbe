from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from actors.samples.demo_tools import demo_tools
from insika.messages import Message, ToolCall, tool_result, user
from insika.ports import Finished, ModelRequest
from insika.providers.demo_script import CALLS_AFTER_A_NOTICE, RESEARCH_TITLES, demo_script
from insika.providers.offline import OfflineProvider
from insika.tools.invoke import run_tool
from insika.tools.registry import ToolRegistry
from insika.tools.threads import ToolThreads
from insika.tools.tool import ToolContext
from insika.turn import sentences
from tests.strict import check_anthropic, check_openai

PROVIDER = OfflineProvider({"demo": demo_script()})
REGISTRY = ToolRegistry(demo_tools())
ALL = frozenset(REGISTRY.names)


class Desk:
    """A bare loop: what a turn does, without an engine."""

    def __init__(self, tools: frozenset[str] = ALL) -> None:
        self.messages: list[Message] = []
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.tools = tools
        self._threads = ToolThreads()

    async def ask(self, text: str, at_boundary: Callable[[int], list[Message]] = lambda calls: []) -> str:
        self.messages.append(user(text))
        while (answer := await self._request()).tool_calls:
            self.messages.append(answer)
            self.messages += [await self._run(call) for call in answer.tool_calls]
            self.messages += at_boundary(len(self.calls))
        self.messages.append(answer)
        return answer.content

    async def _request(self) -> Message:
        check_anthropic(self.messages, sent=True)
        check_openai(self.messages, sent=True)
        request = ModelRequest("demo", "", tuple(self.messages), REGISTRY.specs(self.tools))
        *_, last = [event async for event in PROVIDER.stream(request)]
        assert isinstance(last, Finished)
        return last.message

    async def _run(self, call: ToolCall) -> Message:
        self.calls.append((call.name, call.arguments))
        tool = REGISTRY.get(call.name)
        assert tool is not None
        outcome = await run_tool(tool, call, ToolContext("", "s", "a", "t", call.id), 30, self._threads)
        return tool_result(call.id, outcome.content, is_error=outcome.is_error)


def lookup(*orders: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [("order_lookup", {"order_id": order}) for order in orders]


@pytest.mark.parametrize("text", ["hello", "what are you?", "thanks!"])
async def test_small_talk_is_answered_without_tools_and_without_pretence(text: str) -> None:
    desk = Desk()
    assert "a script, not a language model" in await desk.ask(text)
    assert desk.calls == []


@pytest.mark.parametrize("text", ["Where is order 1234?", "1234", "ORDER #1234!", "order no. 1234, please"])
async def test_an_order_is_looked_up_and_told(text: str) -> None:
    desk = Desk()
    assert await desk.ask(text) == "Order 1234 (Field Notes) is on its way."
    assert desk.calls == lookup("1234")


async def test_several_orders_are_looked_up_in_one_batch() -> None:
    desk = Desk()
    answer = await desk.ask("where are orders 1234 and 5678 and 1234?")
    assert desk.calls == lookup("1234", "5678")
    assert "Order 1234" in answer
    assert "Order 5678" in answer
    assert [len(message.tool_calls) for message in desk.messages if message.tool_calls] == [2]


async def test_an_order_without_a_number_is_asked_back() -> None:
    assert "send me its number" in await Desk().ask("where is my order?")


async def test_an_order_that_is_not_there_is_said_to_be_missing() -> None:
    assert await Desk().ask("order 1200") == "There is no order 1200."


@pytest.mark.parametrize(
    "text", ['Do you have "Evening Birds"?', "do you have Evening Birds?", "is “Evening Birds” in stock"]
)
async def test_a_title_is_checked(text: str) -> None:
    desk = Desk()
    assert "Evening Birds" in await desk.ask(text)
    assert desk.calls == [("stock_check", {"title": "Evening Birds"})]


async def test_a_refund_looks_first_and_pays_once() -> None:
    desk = Desk()
    assert "I have refunded 24.90 EUR for order 1234." in await desk.ask("please refund order 1234")
    assert desk.calls == [*lookup("1234"), ("refund", {"order_id": "1234"})]


async def test_nothing_is_refunded_for_an_order_that_is_not_there() -> None:
    desk = Desk()
    assert await desk.ask("refund 1200") == "There is no order 1200."
    assert desk.calls == lookup("1200")


async def test_a_correction_at_a_boundary_changes_what_comes_next() -> None:
    desk = Desk()
    answer = await desk.ask("where is order 1234?", lambda calls: [user("Sorry, I meant 5678.")] if calls == 1 else [])
    assert desk.calls == lookup("1234", "5678")
    assert answer.startswith("Order 5678")
    assert "1234" not in answer


async def test_a_correction_keeps_the_wish_and_money_that_moved_is_told_of() -> None:
    desk = Desk()
    answer = await desk.ask("refund 1234", lambda calls: [user("no, 5678")] if calls == 2 else [])
    assert [arguments for name, arguments in desk.calls if name == "refund"] == [
        {"order_id": "1234"},
        {"order_id": "5678"},
    ]
    assert "for order 1234" in answer
    assert "for order 5678" in answer


async def test_a_second_turn_begins_anew() -> None:
    desk = Desk()
    await desk.ask("order 1234")
    assert (await desk.ask("order 5678")).startswith("Order 5678")
    assert (await desk.ask("order 1234")).startswith("Order 1234")
    assert desk.calls == lookup("1234", "5678", "1234")


async def test_a_research_asks_one_title_a_step() -> None:
    desk = Desk()
    answer = await desk.ask("research the catalogue")
    assert [arguments["title"] for _, arguments in desk.calls] == list(RESEARCH_TITLES)
    assert all(len(message.tool_calls) <= 1 for message in desk.messages)
    assert "the whole list" in answer


async def test_a_research_comes_to_an_end_after_a_notice() -> None:
    desk = Desk()
    notice = user(sentences.budget_converge(10, 15))
    answer = await desk.ask("research", lambda calls: [notice] if calls == 5 else [])
    assert len(desk.calls) == 5 + CALLS_AFTER_A_NOTICE
    assert f"{5 + CALLS_AFTER_A_NOTICE} titles" in answer


async def test_a_second_notice_ends_a_research_at_once() -> None:
    desk = Desk()
    notice = user(sentences.budget_answer_now(1))
    await desk.ask("research", lambda calls: [notice] if calls in (3, 4) else [])
    assert len(desk.calls) == 4


async def test_a_word_of_thanks_does_not_stop_a_research() -> None:
    desk = Desk()
    await desk.ask("research", lambda calls: [user("take your time")] if calls == 2 else [])
    assert len(desk.calls) == len(RESEARCH_TITLES)


async def test_without_tools_it_answers_from_what_it_has() -> None:
    desk = Desk()

    def take_the_tools(calls: int) -> list[Message]:
        desk.tools = frozenset()
        return [user(sentences.SYNTHESIS_REQUEST)]

    answer = await desk.ask("orders 1234 and 5678", take_the_tools)
    assert answer.startswith("This is what I found before I had to stop. Order 1234")
    assert "Order 5678" in answer


async def test_without_tools_and_without_results_it_says_so() -> None:
    desk = Desk(frozenset())
    assert "not a language model" in await desk.ask("order 1234")


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    desk = Desk(frozenset({"stock_check"}))
    assert "order_lookup, which I may not use here" in await desk.ask("order 1234")
    assert desk.calls == []


async def test_a_result_that_is_an_error_is_told_and_not_asked_for_again() -> None:
    messages = [user("order 1234")]
    *_, last = [e async for e in PROVIDER.stream(ModelRequest("demo", "", tuple(messages), REGISTRY.specs(ALL)))]
    assert isinstance(last, Finished)
    (call,) = last.message.tool_calls
    messages += [last.message, tool_result(call.id, sentences.UNKNOWN_OUTCOME, is_error=True)]
    *_, last = [e async for e in PROVIDER.stream(ModelRequest("demo", "", tuple(messages), REGISTRY.specs(ALL)))]
    assert isinstance(last, Finished)
    assert last.message.tool_calls == ()
    assert "order_lookup gave no clear answer" in last.message.content
    assert sentences.MARK not in last.message.content
