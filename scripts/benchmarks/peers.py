"""The same turn, one tool call and an answer, in agent libraries that people know; each model answers at once.

They do other things than Insika's loop does, and none of them records a step; the figures say where a turn's overhead
stands, not which to choose. Runs in an environment of its own (`.venv-peers`).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from benchmarks.measure import Figure, Work, against
from benchmarks.memory import bare_loop


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def pydantic_ai() -> Work:
    from pydantic_ai import Agent  # noqa: PLC0415 - only what is asked for is imported
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415
    from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: PLC0415

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("add", {"a": 1, "b": 2})])
        return ModelResponse(parts=[TextPart("the answer")])

    agent = Agent(FunctionModel(model))
    agent.tool_plain(add)

    async def run() -> None:
        _expect((await agent.run("add")).output)

    return run


def openai_agents() -> Work:
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled  # noqa: PLC0415
    from openai.types.responses import (  # noqa: PLC0415
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    set_tracing_disabled(True)

    class Stub(Model):
        async def get_response(self, system_instructions, input, *args, **kwargs):  # type: ignore[no-untyped-def]
            if isinstance(input, str) or len(input) == 1:
                call = ResponseFunctionToolCall(
                    arguments='{"a": 1, "b": 2}', call_id="c1", name="add", type="function_call"
                )
                return ModelResponse(output=[call], usage=Usage(), response_id=None)
            text = ResponseOutputText(annotations=[], text="the answer", type="output_text")
            message = ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            raise AssertionError("not streamed here")

    agent = Agent(name="bench", model=Stub(), tools=[function_tool(add)])

    async def run() -> None:
        _expect((await Runner.run(agent, "add")).final_output)

    return run


def langgraph() -> Work:
    from langchain_core.messages import AIMessage, HumanMessage  # noqa: PLC0415
    from langchain_core.tools import tool  # noqa: PLC0415
    from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: PLC0415
    from langgraph.prebuilt import ToolNode, tools_condition  # noqa: PLC0415

    async def model(state: MessagesState) -> dict[str, list[AIMessage]]:
        if len(state["messages"]) == 1:
            call = {"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "type": "tool_call"}
            return {"messages": [AIMessage("", tool_calls=[call])]}
        return {"messages": [AIMessage("the answer")]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([tool(add)]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    compiled = graph.compile()

    async def run() -> None:
        _expect((await compiled.ainvoke({"messages": [HumanMessage("add")]}))["messages"][-1].content)

    return run


PEERS: tuple[tuple[str, Callable[[], Work]], ...] = (
    ("pydantic_ai", pydantic_ai),
    ("openai_agents", openai_agents),
    ("langgraph", langgraph),
)


async def figures() -> list[Figure]:
    return [
        await against(f"peer.{name}.turn_one_tool", peer(), bare_loop(1), rounds=100, each=3, note="floor: a bare loop")
        for name, peer in PEERS
    ]


def _expect(said: object) -> None:
    if said != "the answer":
        raise AssertionError(f"the peer said {said!r}")


if __name__ == "__main__":
    for figure in asyncio.run(figures()):
        sys.stdout.write(json.dumps(asdict(figure)) + "\n")
