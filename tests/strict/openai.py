"""The rules of OpenAI's Chat Completions API.

Sources:
- platform.openai.com/docs, API reference "chat/create", `messages`: roles; an assistant's `content` is required unless
  it has `tool_calls`; a tool message has `tool_call_id`; the form of a function's name.
- platform.openai.com/docs, "Function calling": each call is answered, by its id, before the conversation goes on.
- Answers of the API as reported in public: "An assistant message with 'tool_calls' must be followed by tool messages
  responding to each 'tool_call_id'" (evalstate/fast-agent 314, agno-agi/agno 3105), "messages with role 'tool' must be
  a response to a preceding message with 'tool_calls'", "tool_calls[0].id: string too long. Expected a string with
  maximum length 40" (microsoft/autogen 6377, vercel/ai 5171).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from insika.messages import Message, Role
from tests.strict.problems import Problem, batch_problems, end_problems, refuse, shape_problems

MAX_ID = 40
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_openai(messages: Sequence[Message], *, sent: bool = False) -> None:
    refuse("OpenAI", _problems(messages, sent))


def _problems(messages: Sequence[Message], sent: bool) -> Iterator[Problem]:
    yield from shape_problems(messages)
    yield from batch_problems(messages, sent)
    yield from _call_problems(messages)
    for at, message in enumerate(messages):
        if message.role is Role.ASSISTANT and not message.content and not message.tool_calls:
            yield Problem("empty-assistant", at, "an assistant message says something or calls something")
    yield from end_problems(messages, sent)


def _call_problems(messages: Sequence[Message]) -> Iterator[Problem]:
    for at, message in enumerate(messages):
        ids = [call.id for call in message.tool_calls]
        if len(set(ids)) < len(ids):
            yield Problem("id-unique", at, "two calls of one message have one id")
        for call in message.tool_calls:
            if not 1 <= len(call.id) <= MAX_ID:
                yield Problem("id-form", at, f"{call.id!r} does not have 1 to {MAX_ID} characters")
            if not NAME.fullmatch(call.name):
                yield Problem("name-form", at, f"{call.name!r} is not a function's name")
