"""Which calls a person must approve, and how an approval stands. Pure.

What holds: an approval is for one call and for exactly the arguments that were shown; whoever runs the call proves it
by their hash in the same write that starts it. A call about which somebody was asked waits for that answer, also when
the agent would not have to ask any more; one that must be asked for now is asked for, whatever its turn began with.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from insika.documents import canonical_digest
from insika.storage.rows import ApprovalDecision, ApprovalRow


class Standing(enum.StrEnum):
    """How an approval stands at one moment of the store's time."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


def arguments_hash(tool: str, arguments: Mapping[str, Any], definition: str = "") -> str:
    """Equal for equal calls of a tool that is the same, however the keys of their arguments are ordered. `definition`
    as `insika.ports.ToolTraits` has it: a tool that was described anew is another one, whatever it is called."""
    called = {"tool": tool, "arguments": arguments}
    return canonical_digest({**called, "definition": definition} if definition else called)


def approval_id(turn_id: str, call_id: str) -> str:
    """32 hexadecimal digits: one for each call of each turn, and the same however often the question is asked."""
    return canonical_digest([turn_id, call_id])[:32]


def standing(approval: ApprovalRow, now: datetime) -> Standing:
    """A rejection does not expire; all else does. `void` is as good as expired: it lets nothing run."""
    if approval.decision is ApprovalDecision.REJECTED:
        return Standing.REJECTED
    if approval.expires_at <= now or approval.decision in (ApprovalDecision.EXPIRED, ApprovalDecision.VOID):
        return Standing.EXPIRED
    return Standing.APPROVED if approval.decision is ApprovalDecision.APPROVED else Standing.PENDING


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person was asked about one call, as it stood when somebody looked. `reason` is the person's, in their own
    words; `decision` what was written by then."""

    id: str
    standing: Standing
    arguments_hash: str
    decision: ApprovalDecision | None = None
    reason: str = ""

    @classmethod
    def as_of(cls, approval: ApprovalRow, now: datetime) -> Asked:
        return cls(
            approval.id, standing(approval, now), approval.arguments_hash, approval.decision, approval.reason or ""
        )

    def lets_run(self, tool: str, arguments: Mapping[str, Any], definition: str = "") -> bool:
        """It was approved, and for exactly this."""
        called = arguments_hash(tool, arguments, definition)
        return self.standing is Standing.APPROVED and self.arguments_hash == called
