"""Money that is used up, which vendors tell as a rate limit: no wait mends it."""

from __future__ import annotations

import pytest

from insika.errors import FailureAction
from insika.reliability.classify import action_of


@pytest.mark.parametrize(
    "code",
    [
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "insufficient_quota",
    ],
)
@pytest.mark.parametrize("status", [0, 400, 402, 403, 429])
def test_money_that_is_used_up_is_fatal(code: str, status: int) -> None:
    assert action_of(status, frozenset({"rate_limit_error", code}), None) is FailureAction.FATAL


def test_growing_too_fast_is_a_rate_limit() -> None:
    kinds = frozenset({"rate_limit_error", "ramp_limit_exceeded"})
    assert action_of(429, kinds, 5.0) is FailureAction.RATE_LIMITED_SHORT
