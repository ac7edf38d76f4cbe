"""What a rule says of something that is asked for: it may be, or it may not, and why."""

from __future__ import annotations

from dataclasses import dataclass

from insika.policy.guardrails.verdict import ALLOW, Allow

__all__ = ["ALLOW", "Allow", "Deny"]


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str
