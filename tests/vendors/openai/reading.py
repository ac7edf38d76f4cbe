"""A request to the Chat Completions API, taken apart. Nothing here judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.ports import ModelRequest, ToolSpec
from tests.vendors.vendor import as_bytes

Body = Mapping[str, Any]
PREAMBLE = ("system", "developer")


def objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in objects(content) if part.get("type") == "text")


def functions_of(body: Body) -> list[dict[str, Any]]:
    return [tool["function"] for tool in objects(body.get("tools")) if isinstance(tool.get("function"), dict)]


def prompt_of(body: Body) -> list[bytes]:
    """Tools come first in what is cached, then the messages (guides/prompt-caching, "What can be cached")."""
    tools = [as_bytes(["tool", tool]) for tool in objects(body.get("tools"))]
    return tools + [as_bytes(["message", message]) for message in objects(body.get("messages"))]


def as_house(body: Body) -> ModelRequest:
    """What a script is asked with."""
    messages: list[Message] = []
    instructions = ""
    for message in objects(body.get("messages")):
        role, text = message.get("role"), text_of(message.get("content"))
        if role in PREAMBLE:
            instructions += text
        elif role == "assistant":
            messages.append(assistant(text, *[_call(call) for call in objects(message.get("tool_calls"))]))
        elif role == "tool":
            messages.append(tool_result(str(message.get("tool_call_id")), text))
        else:
            messages.append(user(text))
    tools = [
        ToolSpec(str(one.get("name")), str(one.get("description", "")), one.get("parameters", {}))
        for one in functions_of(body)
    ]
    return ModelRequest(
        str(body.get("model")), instructions, messages, [] if body.get("tool_choice") == "none" else tools
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    raw = str(function.get("arguments", ""))
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return ToolCall(str(call.get("id")), str(function.get("name")), {}, raw)
    return ToolCall(str(call.get("id")), str(function.get("name")), value)
