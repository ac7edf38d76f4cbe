"""A request of the house as the parameters of one chat completion. Pure.

Keys stand in one order, and tools in the one given, so that the prefix by which vendors cache stays the same to the
byte (developers.openai.com/api/docs/guides/prompt-caching). No `prompt_cache_key`: nothing in a request names its
session.
"""

from __future__ import annotations

from typing import Any

from insika.ports import ModelRequest, ToolSpec
from insika.providers.endpoint import Dialect
from insika.providers.openai.conversation import conversation
from insika.providers.openai.dialects import WAYS
from insika.providers.openai.thinking import thinking_parameters


def parameters(request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
    """The body of the request, ready to be written as JSON.

    Always streamed, with usage asked for (API reference chat/create, `stream_options`; DeepSeek, vLLM and Ollama
    document the same, OpenRouter sends it anyway). Where nothing may be called the tools stay, and `tool_choice` says
    so: DeepSeek takes `none` also while it thinks (osaurus-ai/osaurus PR 1940); a server that ignores the field can
    still announce calls, which are then not run. Without `max_tokens` the output has the model's own limit."""
    body: dict[str, Any] = {"model": request.model}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if not request.may_call:
            body["tool_choice"] = "none"
    body["messages"] = conversation(request, dialect)
    body |= thinking_parameters(request, dialect)
    if request.max_tokens is not None:
        body[WAYS[dialect].limit] = request.max_tokens
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}
