"""Where the breakpoints of the prompt cache stand: the four that there may be. Pure.

The vendor caches the prompt up to each breakpoint, and looks from each one back over at most 20 blocks for what
earlier requests have cached (platform.claude.com/docs/en/build-with-claude/prompt-caching, "Lookback window"; at most
four, none on thinking or empty text: "Cache limitations"). A breakpoint costs nothing where all before it is cached
already. So:

1. Behind the instructions, or the last tool: what all sessions of an agent share.
2. Behind the last block, before the note, which is in no later request: what the next request will read.
3. Behind the last block of the request before: just there it has written, however many blocks a large batch has put
   between; no lookback is needed.
4. Behind what opened the turn before the running one: when a turn ends, its thinking is sent no more, and nothing
   behind its beginning is the same prompt any longer. There its first request has written.

They live five minutes, the vendor's default: a chat goes on within it, or may have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from insika.providers.anthropic.conversation import Block, WireMessage

_MARK = {"type": "ephemeral"}


def mark_head(system: list[Block], tools: list[Block]) -> None:
    for blocks in (system, tools):
        if blocks:
            _mark(blocks[-1])
            return


def mark_conversation(messages: Sequence[WireMessage]) -> None:
    """`messages` end with one of the user, without the note."""
    places = {len(messages) - 1, *_before_the_last_answer(messages), *_opening_before(messages)}
    for at in places:
        _mark(messages[at].content[-1])


def _before_the_last_answer(messages: Sequence[WireMessage]) -> list[int]:
    said = [at for at, message in enumerate(messages) if message.role == "assistant"]
    return [at for at in range(said[-1] if said else 0) if messages[at].role == "user"][-1:]


def _opening_before(messages: Sequence[WireMessage]) -> list[int]:
    openings = [at for at, message in enumerate(messages) if message.role == "user" and not message.answers]
    return openings[-2:-1]


def _mark(block: dict[str, Any]) -> None:
    block["cache_control"] = dict(_MARK)
