"""A request to the Messages API, taken apart: its blocks, its prompt in pieces, and what the house would call it.

Nothing here judges; what cannot be read is read as nothing, and the rules say what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.ports import ModelRequest, ToolSpec

Block = Mapping[str, Any]
Body = Mapping[str, Any]


def objects(value: object) -> list[Block]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def blocks_of(content: object) -> list[Block]:
    """A string is one text block (API reference, "messages"), the empty one none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def messages_of(body: Body) -> list[tuple[str, list[Block]]]:
    return [(str(message.get("role")), blocks_of(message.get("content"))) for message in objects(body.get("messages"))]


def prompt_of(body: Body) -> tuple[list[bytes], list[int]]:
    """The pieces of the prompt in the order in which they are cached, and the indices of those with a breakpoint. A
    breakpoint is not part of what is cached; a top-level one stands behind the last piece."""
    pieces: list[bytes] = []
    marks: list[int] = []
    for head, block in _all_blocks(body):
        if block.get("cache_control") is not None:
            marks.append(len(pieces))
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        pieces.append(json.dumps([head, bare], ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if body.get("cache_control") is not None and pieces:
        marks.append(len(pieces) - 1)
    return pieces, marks


def _all_blocks(body: Body) -> Iterator[tuple[str, Block]]:
    for tool in objects(body.get("tools")):
        yield "tool", tool
    for block in blocks_of(body.get("system")):
        yield "system", block
    for role, blocks in messages_of(body):
        for block in blocks:
            yield role, block


def pieces_before(body: Body, message: int) -> int:
    """How many pieces stand before message number `message`."""
    heads = len(objects(body.get("tools"))) + len(blocks_of(body.get("system")))
    return heads + sum(len(blocks) for _, blocks in messages_of(body)[:message])


def as_house(body: Body) -> ModelRequest:
    """What a script is asked with. Each text of a user is a message of its own, as the house had it."""
    messages: list[Message] = []
    for role, blocks in messages_of(body):
        messages += _assistant(blocks) if role == "assistant" else _user(blocks)
    tools = [
        ToolSpec(str(tool.get("name")), str(tool.get("description", "")), tool.get("input_schema", {}))
        for tool in objects(body.get("tools"))
    ]
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "none":
        tools = []
    return ModelRequest(str(body.get("model")), text_of(body.get("system")), messages, tools)


def ends_with_results(body: Body) -> bool:
    """A tool loop is running: what comes next stands between calls."""
    _, blocks = (messages_of(body) or [("", [])])[-1]
    return any(block.get("type") == "tool_result" for block in blocks)


def text_of(content: object) -> str:
    return "".join(str(block.get("text", "")) for block in blocks_of(content) if block.get("type") == "text")


def _assistant(blocks: list[Block]) -> list[Message]:
    calls = [
        ToolCall(str(block.get("id")), str(block.get("name")), block.get("input", {}))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return [assistant(text_of(blocks), *calls)]


def _user(blocks: list[Block]) -> list[Message]:
    messages = []
    for block in blocks:
        if block.get("type") == "tool_result":
            content = text_of(block.get("content", ""))
            id = str(block.get("tool_use_id"))
            messages.append(tool_result(id, content, is_error=block.get("is_error") is True))
        elif block.get("type") == "text":
            messages.append(user(str(block.get("text"))))
    return messages
