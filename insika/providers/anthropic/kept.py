"""Messages as the vendor wants them back: with the thinking that it signed, complete, unmodified and in order. Pure.

They are kept in `Message.verbatim`, the content blocks one after another. Behind models that bind their thinking to the
prompt it came from (build-with-claude/preserved-thinking/prefix-checks) there is one part more, first of all: our own
note of which prompt that was, so that it is known later whether it still is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from insika.messages import NOTHING_VERBATIM, Message, Verbatim

THINKING = frozenset({"thinking", "redacted_thinking"})
_PLAIN = frozenset({"text", "tool_use"})
_BOUND_TO = "bound_to"

NEVER_AGAIN = "a prompt that is never sent again"
"""What thinking is bound to that came behind a note: that stood last, and stands nowhere in later requests."""

Block = Mapping[str, Any]


def verbatim_of(model: str, blocks: Sequence[Block], bound_to: str) -> Verbatim:
    """`blocks` as they go back; nothing where the message itself says all that is in them. `bound_to` "": the model
    does not bind."""
    if all(block.get("type") in _PLAIN for block in blocks):
        return NOTHING_VERBATIM
    return Verbatim(model, ({_BOUND_TO: bound_to}, *blocks) if bound_to else tuple(blocks))


def bound_to(message: Message) -> str:
    parts = message.verbatim.parts
    return str(parts[0].get(_BOUND_TO, "")) if parts else ""


def blocks_of(message: Message, ids: Sequence[str]) -> list[dict[str, Any]] | None:
    """The blocks that were kept. None where they do not announce the message's calls under these `ids`: then they are
    of no use, for the results would answer nothing."""
    blocks = [dict(part) for part in message.verbatim.parts if _BOUND_TO not in part]
    announced = [(block.get("id"), block.get("name")) for block in blocks if block.get("type") == "tool_use"]
    if announced != [(id, call.name) for id, call in zip(ids, message.tool_calls, strict=True)]:
        return None
    return blocks


def without_thinking(blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block.get("type") not in THINKING]


def prefix_digests(head: object, contents: Sequence[Sequence[Block]]) -> list[str]:
    """Of what stands before each message, and at last of the whole prompt. `head`: tools and instructions; `contents`:
    the blocks of each message, before breakpoints are set. Thinking is no part of what later thinking is bound to."""
    running = hashlib.sha256(_bytes(head))
    digests = [running.hexdigest()]
    for blocks in contents:
        running.update(b"\0" + _bytes([block for block in blocks if block.get("type") not in THINKING]))
        digests.append(running.hexdigest())
    return digests


def _bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
