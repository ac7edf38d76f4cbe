"""The rules for what stands in `messages`.

Sources, under developers.openai.com/api/docs unless another place is named:
- API reference chat/create, `messages`: roles, fields of each; an assistant's content is required unless it calls.
- guides/function-calling: each call is answered, by its id, before the conversation goes on.
- Answers as reported in public: calls without results (evalstate/fast-agent 314), results without calls
  (symgraph/GhidrAssist 45), `empty_array` (home-assistant/core 118577), ids of more than 40 characters
  (vllm-project/vllm 22966), names (continuedev/continue 11645).
- DeepSeek: `reasoning_content` goes back with calls (api-docs.deepseek.com/guides/thinking_mode; NousResearch/
  hermes-agent 15353); "content or tool_calls must be set" (carlrobertoh/ProxyAI 830).
Stricter than the vendors: one system prompt and at the head (vLLM's chat templates want it there), a request ends with
what a person or a tool said, results in announced order, one result a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.vendors.openai.dialects import ACCENTS, Dialect
from tests.vendors.openai.reading import PREAMBLE, Body, objects
from tests.vendors.refusals import Refusal

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_ID = 40
FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "function_call"},
    "tool": {"role", "content", "tool_call_id"},
}
MORE = {
    Dialect.DEEPSEEK: {"reasoning_content", "prefix"},
    Dialect.OPENROUTER: {"reasoning", "reasoning_details", "cache_control"},
    Dialect.VLLM: {"reasoning", "reasoning_content"},
    Dialect.OLLAMA: {"reasoning"},
}
Message = Mapping[str, Any]


def message_problems(body: Body, dialect: Dialect, *, thinks: bool) -> Iterator[Refusal]:
    """`thinks`: the model is in DeepSeek's thinking mode."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield Refusal("empty-conversation", "[] is too short - 'messages'", param="messages")
        return
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if not isinstance(message, dict):
            yield _invalid("shape", where, f"Invalid type for '{where}': expected an object.", "invalid_type")
        else:
            yield from _message(where, message, dialect)
    listed = objects(messages)
    yield from _places(listed)
    yield from _pairs(listed)
    if thinks:
        yield from _reasoning(listed)


def _message(where: str, message: Message, dialect: Dialect) -> Iterator[Refusal]:
    role = message.get("role")
    if role not in ACCENTS[dialect].roles:
        known = ", ".join(f"'{one}'" for one in sorted(ACCENTS[dialect].roles))
        text = f"Invalid value: '{role}'. Supported values are: {known}."
        yield _invalid("role", f"{where}.role", text, "invalid_value")
        return
    for key in message.keys() - FIELDS[str(role)] - MORE.get(dialect, set()):
        yield _invalid("extra-field", f"{where}.{key}", f"Unknown parameter: '{where}.{key}'.", "unknown_parameter")
    calls = message.get("tool_calls")
    if "tool_calls" in message:
        yield from _calls(where, calls, dialect)
    yield from _content(f"{where}.content", str(role), message.get("content"), bool(calls))
    if role == "tool" and not message.get("tool_call_id"):
        yield _invalid("shape", f"{where}.tool_call_id", f"Missing required parameter: '{where}.tool_call_id'.", None)


def _content(where: str, role: str, content: object, calls: bool) -> Iterator[Refusal]:
    if role == "assistant" and calls and content is None:
        return
    if isinstance(content, list):
        if not content:
            yield _invalid("empty-content", where, f"Invalid '{where}': empty array.", "empty_array")
        for index, part in enumerate(objects(content)):
            if part.get("type") != "text" and role != "user":
                text = f"Invalid value: '{part.get('type')}'. Supported values are: 'text'."
                yield _invalid("part-kind", f"{where}[{index}].type", text, "invalid_value")
    elif not isinstance(content, str):
        kind = "null" if content is None else type(content).__name__
        text = f"Invalid value for '{where}': expected a string, got {kind}."
        yield _invalid("content", where, text, None)
    elif role == "assistant" and not content and not calls:
        yield _invalid("empty-content", where, "Invalid assistant message: content or tool_calls must be set", None)


def _calls(where: str, calls: object, dialect: Dialect) -> Iterator[Refusal]:
    if not isinstance(calls, list) or not calls:
        text = (
            f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty "
            "array instead."
        )
        yield _invalid("empty-calls", f"{where}.tool_calls", text, "empty_array")
        return
    ids = [str(call.get("id")) for call in objects(calls)]
    if len(set(ids)) < len(ids):
        yield _invalid("id-unique", f"{where}.tool_calls", "Duplicate value for 'tool_call_id'", None)
    for index, call in enumerate(objects(calls)):
        yield from _call(f"{where}.tool_calls[{index}]", call, dialect)


def _call(where: str, call: Message, dialect: Dialect) -> Iterator[Refusal]:
    id, function = call.get("id"), call.get("function")
    if not isinstance(id, str) or not id:
        yield _invalid("id-form", f"{where}.id", f"Missing required parameter: '{where}.id'.", None)
    elif dialect is Dialect.OPENAI and len(id) > MAX_ID:
        text = (
            f"Invalid '{where}.id': string too long. Expected a string with maximum length {MAX_ID}, but got a string "
            f"with length {len(id)} instead."
        )
        yield _invalid("id-form", f"{where}.id", text, "string_above_max_length")
    if call.get("type") != "function" or not isinstance(function, dict):
        yield _invalid("shape", f"{where}.type", f"Missing required parameter: '{where}.type'.", None)
        return
    if not NAME.fullmatch(str(function.get("name", ""))):
        text = (
            f"Invalid '{where}.function.name': string does not match pattern. Expected a string that matches "
            "the pattern '^[a-zA-Z0-9_-]+$'."
        )
        yield _invalid("name-form", f"{where}.function.name", text, "invalid_value")
    raw = function.get("arguments")
    if not isinstance(raw, str):
        text = f"Invalid type for '{where}.function.arguments': expected a string."
        yield _invalid("arguments", f"{where}.function.arguments", text, "invalid_type")
    elif dialect is Dialect.VLLM and not _is_object(raw):
        yield _invalid("arguments", f"{where}.function.arguments", "Expecting value: the arguments must be JSON", None)


def _places(messages: Sequence[Message]) -> Iterator[Refusal]:
    heads = [at for at, message in enumerate(messages) if message.get("role") in PREAMBLE]
    if heads not in ([], [0]):
        yield _invalid("system-place", "messages", "System message must be at the beginning.", None)
    if messages and messages[-1].get("role") == "assistant":
        yield _invalid("ends-with-assistant", "messages", "a request ends with a user message or with results", None)


def _pairs(messages: Sequence[Message]) -> Iterator[Refusal]:
    at = 0
    while at < len(messages):
        announced = [str(call.get("id")) for call in objects(messages[at].get("tool_calls"))]
        role = messages[at].get("role")
        at += 1
        if role == "tool":
            text = (
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'."
            )
            yield _invalid("orphan-result", f"messages.[{at - 1}].role", text, None)
        elif announced:
            answered = []
            while at < len(messages) and messages[at].get("role") == "tool":
                answered.append(str(messages[at].get("tool_call_id")))
                at += 1
            yield from _batch(announced, answered, at)


def _batch(announced: list[str], answered: list[str], at: int) -> Iterator[Refusal]:
    param = f"messages.[{at}].role"
    if missing := [id for id in announced if id not in answered]:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}"
        )
        yield _invalid("missing-result", param, text, None)
    if strange := [id for id in answered if id not in announced]:
        yield _invalid(
            "strange-result", param, f"'tool_call_id' of {strange} not found in 'tool_calls' before it", None
        )
    if len(set(answered)) < len(answered):
        yield _invalid("double-result", param, "a call has more than one result", None)
    elif not missing and not strange and answered != announced:
        yield _invalid("result-order", param, "the results are not in announced order", None)


def _reasoning(messages: Sequence[Message]) -> Iterator[Refusal]:
    for at, message in enumerate(messages):
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            text = (
                f"Missing `reasoning_content` field in the assistant message at message index {at}. For more "
                "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
            )
            yield _invalid("reasoning-dropped", f"messages[{at}]", text, None)


def _invalid(rule: str, param: str, message: str, code: str | None) -> Refusal:
    return Refusal(rule, message, param=param, code=code)


def _is_object(raw: str) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except ValueError:
        return False
