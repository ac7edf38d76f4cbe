"""What a vendor's check finds wrong with a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """`rule` is the fake's own name for what is broken; `message` follows the vendor's wording, where it is known.
    `param` and `code` are OpenAI's. `kind` is the vendor's error type; None: the one that goes with `status`."""

    rule: str
    message: str
    status: int = 400
    kind: str | None = None
    param: str | None = None
    code: str | None = None
