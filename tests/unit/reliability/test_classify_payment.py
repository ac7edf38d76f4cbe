"""What is said of money by those who speak chat completions: what a wait mends, and what it does not."""

from __future__ import annotations

import pytest

from insika.errors import FailureAction
from insika.reliability.classify import action_of

NOTHING: frozenset[str] = frozenset()


@pytest.mark.parametrize("kind", ["insufficient_quota", "billing_not_active", "billing_hard_limit_reached"])
@pytest.mark.parametrize("status", [0, 200, 400, 402, 403, 429, 503])
@pytest.mark.parametrize("wait", [None, 0.0, 7.0, 9999.0])
def test_an_account_without_money_is_fatal_whatever_comes_with_it(kind: str, status: int, wait: float | None) -> None:
    assert action_of(status, frozenset({kind, "requests", "server_error"}), wait) is FailureAction.FATAL


@pytest.mark.parametrize(
    ("wait", "action"),
    [
        (None, FailureAction.FATAL),
        (0.0, FailureAction.RATE_LIMITED_SHORT),
        (60.0, FailureAction.RATE_LIMITED_SHORT),
        (61.0, FailureAction.RATE_LIMITED_LONG),
    ],
)
def test_money_in_flight_is_waited_for_where_the_vendor_says_how_long(
    wait: float | None, action: FailureAction
) -> None:
    assert action_of(402, NOTHING, wait) is action


@pytest.mark.parametrize("kind", ["context_length_exceeded", "invalid_api_key", "model_not_found", "content_filter"])
def test_what_is_wrong_with_the_request_is_fatal_also_in_a_stream(kind: str) -> None:
    for status in (0, 200, 400, 401, 404):
        assert action_of(status, frozenset({kind, "invalid_request_error"}), 7.0) is FailureAction.FATAL
