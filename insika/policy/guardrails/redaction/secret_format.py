"""How a kind of secret is written, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretFormat:
    """One of `prefixes`, then at least `at_least` signs of `alphabet` (the inside of a character class). All further
    ones belong to it too, and signs of `inner` where more of the alphabet follows."""

    kind: str
    prefixes: tuple[str, ...]
    alphabet: str
    at_least: int
    inner: str = ""
    examples: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
