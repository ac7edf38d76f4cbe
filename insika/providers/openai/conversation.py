"""The conversation in the shape that chat completions want. Pure: the same conversation always gives the same messages.

What stands here is written so that an earlier request stays a prefix of a later one: nothing of a message depends on
what comes after it. The one exception is kept reasoning, which goes back while its turn runs and no longer.

Sources: developers.openai.com/api/docs, API reference chat/create (`messages`; ids of at most 40 characters:
vllm-project/vllm 22966) and guides/function-calling (each call is answered before the conversation goes on); vLLM's
templates want arguments that are JSON. "With o1 models and newer", instructions are a developer's (`messages`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from insika.messages import Message, Role, ToolCall
from insika.ports import ModelRequest
from insika.providers.endpoint import Dialect
from insika.providers.openai.dialects import REASONING_CONTENT, REASONING_DETAILS, WAYS
from insika.providers.openai.models import family
from insika.providers.openai.thinking import may_reason

WireMessage = dict[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_NO_REASONING = " "
"""Stands where DeepSeek wants reasoning back and there is none to give: the field must be there, and its larger models
refuse it empty (NousResearch/hermes-agent PR 17341)."""


def conversation(request: ModelRequest, dialect: Dialect) -> list[WireMessage]:
    """Instructions, the messages in their order, and the note behind them all, as far as there are any.

    An assistant's message that neither says nor calls anything is left out: no vendor takes it. What an error result
    is must be said by its text, for there is no field for it."""
    return list(_messages(request, dialect))


def _messages(request: ModelRequest, dialect: Dialect) -> Iterator[WireMessage]:
    if request.instructions:
        yield {"role": _instructing(request, dialect), "content": request.instructions}
    for at, message in enumerate(request.messages):
        match message.role:
            case Role.USER:
                yield {"role": "user", "content": message.content}
            case Role.TOOL:
                answered = wire_id(message.tool_call_id or "")
                yield {"role": "tool", "tool_call_id": answered, "content": message.content}
            case Role.ASSISTANT if message.content or message.tool_calls:
                own = at >= request.turn_from
                yield {**_said(message, dialect), **_kept(message, request, dialect, own=own)}
    if request.note:
        yield {"role": "user", "content": request.note}


def _instructing(request: ModelRequest, dialect: Dialect) -> str:
    return "developer" if dialect is Dialect.OPENAI and family(request.model).reasons else "system"


def _said(message: Message, dialect: Dialect) -> WireMessage:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.content}
    content = message.content or WAYS[dialect].silence
    return {"role": "assistant", "content": content, "tool_calls": [_call(call) for call in message.tool_calls]}


def _call(call: ToolCall) -> WireMessage:
    """What nobody could read goes back as a call without arguments: its result says what was wrong with it."""
    readable = call.malformed is None and not call.cut_off
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=_as_dict) if readable else "{}"
    return {"id": wire_id(call.id), "type": "function", "function": {"name": call.name, "arguments": arguments}}


def wire_id(call_id: str) -> str:
    """The id under which a call and its result go out: itself where OpenAI takes it, else one made from it."""
    if _ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _kept(message: Message, request: ModelRequest, dialect: Dialect, *, own: bool) -> Mapping[str, Any]:
    """The reasoning that goes back with a message of the running turn, to the model that it is of."""
    verbatim = message.verbatim if own and message.verbatim.model == request.reference else None
    match WAYS[dialect].kept:
        case "reasoning_content" if may_reason(request):
            text = verbatim.parts[0].get(REASONING_CONTENT) if verbatim else None
            return {REASONING_CONTENT: text or _NO_REASONING}
        case "reasoning_details" if verbatim:
            return {REASONING_DETAILS: [dict(part) for part in verbatim.parts]}
    return {}


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
