"""What a model call that nobody measured is booked at, so that spend errs upwards rather than forgets.

Four characters a token is the vendors' own rule of thumb for English text (OpenAI, "What are tokens and how to count
them?"); an estimate is always marked as one where it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from insika.messages import Message, Usage
from insika.ports import ToolSpec

CHARACTERS_PER_TOKEN = 4
MOST_TOKENS = 100_000_000
"""Of each part of one model call's usage. No vendor's model takes or gives a tenth of it; a count beyond is a mistake,
and would use up a budget for good."""


def estimate_tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def estimate_usage(
    instructions: str, messages: Sequence[Message], streamed: int = 0, tools: Sequence[ToolSpec] = ()
) -> Usage:
    """`streamed`: characters the model had given before the request was cut."""
    sent = len(instructions) + sum(map(_characters, messages)) + sum(map(_described, tools))
    return Usage(input=estimate_tokens(sent), output=estimate_tokens(streamed))


def _characters(message: Message) -> int:
    return len(message.content) + sum(len(call.name) + len(str(call.arguments)) for call in message.tool_calls)


def _described(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(str(tool.parameters))


def plausible(usage: Usage) -> bool:
    """It may be booked as measured: a vendor that counts otherwise is mistaken or lying."""
    return all(0 <= part <= MOST_TOKENS for part in (usage.input, usage.output, usage.cache_read, usage.cache_write))
