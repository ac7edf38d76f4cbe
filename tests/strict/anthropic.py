"""The rules of Anthropic's Messages API.

Sources:
- platform.claude.com/docs, "Messages" API reference: roles, consecutive user messages are joined, non-empty content.
- platform.claude.com/docs, "Handle tool calls" (agents-and-tools/tool-use/handle-tool-calls): the message behind a
  `tool_use` holds its `tool_result` blocks, all of them, before any text; else 400 "tool_use ids were found without
  tool_result blocks immediately after".
- platform.claude.com/docs, "Define tools": the form of a tool's name.
- Answers of the API that the pages do not spell out, as reported in public: "`tool_use` ids must be unique" (over the
  whole conversation: BerriAI/litellm 23510, NVIDIA-NeMo/Switchyard 502), "tool_use.id: String should match pattern
  '^[a-zA-Z0-9_-]+$'" (anomalyco/opencode 1279, maximhq/bifrost 5097), "text content blocks must be non-empty" and
  "must contain non-whitespace text" (anthropics/claude-code 23369, 59812), "content cannot be empty if `is_error` is
  true" (jlevy/markform 153), no assistant message at the end of a request on models without prefill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from insika.messages import Message, Role
from tests.strict.problems import Problem, batch_problems, end_problems, refuse, shape_problems

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check_anthropic(messages: Sequence[Message], *, sent: bool = False) -> None:
    refuse("Anthropic", _problems(messages, sent))


def _problems(messages: Sequence[Message], sent: bool) -> Iterator[Problem]:
    yield from shape_problems(messages)
    if messages and messages[0].role is not Role.USER:
        yield Problem("first-user", 0, "a conversation begins with a user message")
    yield from batch_problems(messages, sent)
    yield from _call_problems(messages)
    yield from _text_problems(messages)
    yield from end_problems(messages, sent)


def _call_problems(messages: Sequence[Message]) -> Iterator[Problem]:
    seen: set[str] = set()
    for at, message in enumerate(messages):
        for call in message.tool_calls:
            if not ID.fullmatch(call.id):
                yield Problem("id-form", at, f"{call.id!r} is not made of letters, digits, _ and -")
            if call.id in seen:
                yield Problem("id-unique", at, f"{call.id!r} was used before in this conversation")
            seen.add(call.id)
            if not NAME.fullmatch(call.name):
                yield Problem("name-form", at, f"{call.name!r} is not a tool's name")


def _text_problems(messages: Sequence[Message]) -> Iterator[Problem]:
    for at, message in enumerate(messages):
        blank = not message.content.strip()
        if message.role is Role.TOOL:
            if message.is_error and not message.content:
                yield Problem("empty-error", at, "a result that is an error says something")
        elif blank and not (message.tool_calls and not message.content):
            yield Problem("blank-text", at, "a text has something in it that is no space")
