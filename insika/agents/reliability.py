"""What is done about models that fail, as a profile says it. Without this section, next to nothing: one attempt.

Source of the numbers: the order's "Reliability": 10 failures within 60 s, 300 s to cool down, 30 s for an attempt.
"""

from __future__ import annotations

import enum
from typing import Annotated

from pydantic import Field

from insika.agents.names import ModelRef
from insika.parsing import Document

_Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Backoff(enum.StrEnum):
    """How the waits before retries grow. Each is shortened by chance, so that not all come back at once."""

    EXPONENTIAL = "exponential"
    CONSTANT = "constant"


class CircuitBreaker(Document):
    """`after` failures `within` seconds open the circuit of one (tenant, model); for `cooldown` seconds that model is
    not asked. Then one trial decides."""

    after: Annotated[int, Field(ge=1, le=100_000)] = 10
    within: _Seconds = 60.0
    cooldown: _Seconds = 300.0


class Reliability(Document):
    """`retries`: further attempts at each model of the chain, after failures that may pass. `timeout`: seconds that one
    attempt may take as a whole; past it counts as such a failure. `fallback`: the models that are asked next, in
    order, before the platform's `fallback_models`. `circuit_breaker` null: none.
    """

    retries: Annotated[int, Field(ge=0, le=10)] = 2
    backoff: Backoff = Backoff.EXPONENTIAL
    timeout: _Seconds = 30.0
    fallback: tuple[ModelRef, ...] = ()
    circuit_breaker: CircuitBreaker | None = None
