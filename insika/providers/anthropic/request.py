"""A request of the house as the parameters of one request to the Messages API. Pure.

The prompt is the same to the byte for as long as the conversation only grows: instructions and tools as they are
given, in their order, then the messages. What may be called, what is thought and how much is said stand outside of it.
Where nothing may be called the tools stay, and `tool_choice` says so; where an old conversation has calls and the
agent has no tools, one that cannot be called stands for them, for some who speak this API refuse calls without any
("Requests which include `tool_use` blocks must define tools", camel-ai/owl 532).

How thinking goes back (build-with-claude/thinking, preserved-thinking/prefix-checks, extended-thinking):
- In the running turn, to the model that thought it, and while it may think; never otherwise.
- A model with budgets wants the running loop to begin with it: where it does not, as after a change of model, that
  request is made without thinking.
- A model that binds it to its prompt refuses it behind another one. Where the prompt has changed (a note was in it,
  the tools are others), the vendor is told to drop what does not fit, under its beta; where it has no such switch, it
  is all left out. The beta is not used before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insika.documents import plain
from insika.ports import ModelRequest, ToolSpec
from insika.providers.anthropic import kept
from insika.providers.anthropic.caching import mark_conversation, mark_head
from insika.providers.anthropic.conversation import Block, WireMessage, conversation, note_block
from insika.providers.anthropic.models import family
from insika.providers.anthropic.thinking import Plan, plan, without_thinking
from insika.text import clean_text

BINDING_BETA = "thinking-binding-controls-2026-08-01"
_NO_TOOLS: Block = {
    "name": "no_tool_is_left",
    "description": "The tools of this conversation are gone. Nothing can be called.",
    "input_schema": {"type": "object", "properties": {}},
}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """`betas` name what of the vendor's API must be asked for by header. `bound_to`: what the thinking in the answer
    will be bound to; "" where the model binds none."""

    parameters: Mapping[str, Any]
    betas: tuple[str, ...] = ()
    bound_to: str = ""


def wire_request(request: ModelRequest) -> WireRequest:
    its = family(request.model)
    tools, system = [_tool(tool) for tool in request.tools], _system(request.instructions)
    planned = plan(request.thinking, request.max_tokens, its)
    messages = _messages(request, planned)
    if planned.by_budget and not _begins_with_thinking(messages):
        planned = without_thinking(request.max_tokens, its)
        messages = _messages(request, planned)
    if not tools and any(message.answers for message in messages):
        tools = [dict(_NO_TOOLS)]
    binds = its.binds and planned.thinks
    digests = kept.prefix_digests([tools, system], [message.content for message in messages]) if binds else [""]
    parameters = {"model": request.model, **planned.parameters}
    betas: tuple[str, ...] = ()
    if binds and _moved(messages, digests):
        betas = _let_go(messages, parameters, planned)
    mark_head(system, tools)
    mark_conversation(messages)
    if request.note.strip():
        messages[-1].content.append(note_block(request.note))
    parameters |= _prompt(tools, system, messages)
    if tools and not request.callable:
        parameters["tool_choice"] = {"type": "none"}
    return WireRequest(parameters, betas, kept.NEVER_AGAIN if binds and request.note.strip() else digests[-1])


def _tool(tool: ToolSpec) -> Block:
    described = {"description": clean_text(tool.description)} if tool.description.strip() else {}
    return {"name": tool.name, **described, "input_schema": {"type": "object", **plain(tool.parameters)}}


def _system(instructions: str) -> list[Block]:
    return [{"type": "text", "text": clean_text(instructions)}] if instructions.strip() else []


def _messages(request: ModelRequest, planned: Plan) -> list[WireMessage]:
    def goes_back(at: int) -> bool:
        if not planned.thinks or at < request.turn_from:
            return False
        return request.messages[at].verbatim.model == request.reference

    return conversation(request.messages, goes_back)


def _begins_with_thinking(messages: Sequence[WireMessage]) -> bool:
    """Whether the last step of the running loop does; where none runs there is nothing to ask for. A user's message
    that holds no result ends a loop."""
    return not messages[-1].answers or any(message.thinks_first for message in messages[-2:-1])


def _moved(messages: Sequence[WireMessage], digests: Sequence[str]) -> bool:
    """Thinking goes back behind another prompt than it came from."""
    return any(
        block["type"] in kept.THINKING and message.bound_to != digests[at]
        for at, message in enumerate(messages)
        for block in message.content
    )


def _let_go(messages: Sequence[WireMessage], parameters: dict[str, Any], planned: Plan) -> tuple[str, ...]:
    """By the vendor or by us; the betas that this takes. Behind one block that does not fit all others are void, so
    that of ours nothing is left."""
    if planned.droppable:
        drop = {"prefix_mismatch_behavior": "drop_block"}
        parameters["thinking"] = {"type": "adaptive", **parameters.get("thinking", {}), "block_binding": drop}
        return (BINDING_BETA,)
    for message in messages:
        message.content = kept.without_thinking(message.content)
    return ()


def _prompt(tools: list[Block], system: list[Block], messages: Sequence[WireMessage]) -> dict[str, Any]:
    said = [{"role": message.role, "content": message.content} for message in messages]
    return {**({"tools": tools} if tools else {}), **({"system": system} if system else {}), "messages": said}
