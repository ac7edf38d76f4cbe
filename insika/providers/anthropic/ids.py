"""The ids and names of calls, in the form that Anthropic takes back. Pure.

What the engine has written is in order already; histories of other providers and of before need not be. A call and its
result are given the same id, and what one is given never depends on what comes after it in the conversation.

Sources: platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools (the form of a name); the vendor's refusal
of other ids ("String should match pattern '^[a-zA-Z0-9_-]+$'", anomalyco/opencode 1279) and of repeated ones
("`tool_use` ids must be unique", BerriAI/litellm 23510).
"""

from __future__ import annotations

import hashlib
import re

LONGEST_ID = 64
_ID = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_ID}}}")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 128


class CallIds:
    """Those of one request, in the order of the conversation."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of_call(self, id: str) -> str:
        """A new one for each call: itself where it may be sent."""
        first = free = id if _ID.fullmatch(id) else made_id(id)
        again = 1
        while free in self._taken:
            again += 1
            free = f"{first[: LONGEST_ID - 8]}_{again}"
        self._taken.add(free)
        return free


def made_id(id: str) -> str:
    """What stands for an id that may not be sent: another one for another id."""
    return f"call_{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def sendable_name(name: str) -> str:
    """Of a tool that was called; the tools that can be called have names in order."""
    return _NOT_IN_A_NAME.sub("_", name)[:LONGEST_NAME] or "_"
