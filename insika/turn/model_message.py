"""A model's message in the form in which it may enter the log: one that every store keeps and every vendor takes back.

What is in the log is sent again with each later request, so one message that a vendor refuses would close the session
for good. Models have been seen to repeat call ids or to give none, to invent tools with names that are none, to say
nothing but white space, and to write half a surrogate pair. All of that is put right here, once, before it counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Set
from typing import Any

from insika.documents import flaws, plain
from insika.messages import NOTHING_VERBATIM, Message, Role, ToolCall, Verbatim
from insika.text import clean_text

NO_NAME = "unreadable_tool_name"
"""Stands for a name that no tool can have."""
NOT_JSON = "(these arguments cannot be written as JSON)"

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""What both vendors take: platform.openai.com, "chat/create" (at most 40 characters); the pattern in the answers of
Anthropic's Messages API to an id of another form."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""As for the tools themselves (`insika.tools.tool`)."""


def storable(message: Message, taken: Set[str], step: int, is_tool: Callable[[str], bool]) -> Message:
    """`message` with clean text and calls that can be told apart; what is already in order stays as it is.

    `taken` are the call ids of the conversation so far: Anthropic wants them unique over all of it. `is_tool` says
    whether a name means a tool here, so that none that was made up is ever mistaken for one. What the provider wants
    back verbatim stays only where nothing had to be changed: it would contradict the rest.
    """
    seen = set(taken)
    calls: list[ToolCall] = []
    for index, call in enumerate(message.tool_calls):
        free = _free_id(call.id, seen, f"call_{step}_{index}")
        seen.add(free)
        calls.append(_call(free, call, is_tool))
    content = spoken(message.content)
    unchanged = calls == list(message.tool_calls) and content == message.content and is_plain(message.verbatim)
    return Message(
        Role.ASSISTANT, content, tuple(calls), verbatim=message.verbatim if unchanged and calls else NOTHING_VERBATIM
    )


def is_plain(verbatim: Verbatim) -> bool:
    """Every store can keep it as it is."""
    return all(_is_plain(part) or (_sound_json(part) is not None and not flaws(part)) for part in verbatim.parts)


def spoken(text: str) -> str:
    """`text` cleaned; "" where it is nothing but white space, which vendors refuse as the text of a message."""
    text = clean_text(text)
    return text if text.strip() else ""


def _free_id(given: str, seen: set[str], otherwise: str) -> str:
    if _ID.fullmatch(given) and given not in seen:
        return given
    free, again = otherwise, 1
    while free in seen:
        again += 1
        free = f"{otherwise}_{again}"
    return free


def _call(call_id: str, call: ToolCall, is_tool: Callable[[str], bool]) -> ToolCall:
    name = call.name if _NAME.fullmatch(call.name) else _no_name(is_tool)
    if call.cut_off:
        return ToolCall(call_id, name, cut_off=True)
    if call.malformed is not None:
        return ToolCall(call_id, name, {}, clean_text(call.malformed))
    if _is_plain(call.arguments):
        return ToolCall(call_id, name, call.arguments)
    if any(not flaw.cleanable for flaw in flaws(call.arguments)):
        return ToolCall(call_id, name, {}, NOT_JSON)
    return ToolCall(call_id, name, plain(call.arguments))


def _no_name(is_tool: Callable[[str], bool]) -> str:
    name = NO_NAME
    while is_tool(name):
        name += "_"
    return name


def _is_plain(value: Mapping[str, Any]) -> bool:
    """The quick look that nearly all values pass. Where there are more brackets than that, they may only be text."""
    text = _sound_json(value)
    return text is not None and text.count("[") + text.count("{") <= _SHALLOW


def _sound_json(value: Mapping[str, Any]) -> str | None:
    """None: it is no JSON, or holds text that not every store can keep."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        return None
    return None if "\\u0000" in text else text


_SHALLOW = 32
