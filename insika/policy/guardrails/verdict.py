"""What a guard says of a text that wants to enter a conversation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allow:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Block:
    """It must not be said. `category` chooses the reply that the person gets, `pattern` is the id of what was found,
    `language` the one that the pattern belongs to ("any": none)."""

    category: str
    pattern: str
    language: str


GuardVerdict = Allow | Block

ALLOW = Allow()
