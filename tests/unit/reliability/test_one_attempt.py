"""Without a reliability policy: one attempt, and a connection that failed before anything was sent is made anew."""

from __future__ import annotations

import itertools

import pytest

from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.reliability.attempts import UNSENT_WAITS_S, FailedAttempt, GiveUp, OneAttempt, TryAgain

MODEL = "openai/gpt-4o-mini"
UNSENT = ProviderError("no route to host", sent=False)


def failed(*errors: ProviderError) -> list[FailedAttempt]:
    return [FailedAttempt(MODEL, error) for error in errors]


async def test_a_connection_is_made_anew_twice_at_once_and_then_after_a_short_wait() -> None:
    policy, waits = OneAttempt(), []
    for made in (1, 2):
        decision = await policy.after(failed(*[UNSENT] * made), 300.0)
        assert isinstance(decision, TryAgain)
        assert decision.model == MODEL
        waits.append(decision.after_s)
    assert tuple(waits) == UNSENT_WAITS_S
    assert waits[0] == 0
    assert 0 < waits[1] <= 1
    assert await policy.after(failed(*[UNSENT] * 3), 300.0) == GiveUp(UNSENT)


@pytest.mark.parametrize("action", FailureAction)
async def test_what_may_have_reached_the_vendor_is_given_up_at_once(action: FailureAction) -> None:
    error = ProviderError("overloaded", action=action, retry_after=2.0)
    assert await OneAttempt().after(failed(error), 300.0) == GiveUp(error)


async def test_a_connection_that_no_other_try_can_mend_is_given_up() -> None:
    error = ProviderFatal("the certificate is not for this host", sent=False)
    assert await OneAttempt().after(failed(error), 300.0) == GiveUp(error)


async def test_once_a_request_was_sent_nothing_is_tried_again() -> None:
    sent = ProviderError("cut")
    for errors in itertools.product([UNSENT, sent], repeat=2):
        if sent in errors:
            assert await OneAttempt().after(failed(*errors), 300.0) == GiveUp(errors[-1])


async def test_a_wait_that_outlasts_the_turn_is_none() -> None:
    policy = OneAttempt()
    assert isinstance(await policy.after(failed(UNSENT), 0.01), TryAgain)
    assert await policy.after(failed(UNSENT, UNSENT), UNSENT_WAITS_S[1]) == GiveUp(UNSENT)
    assert isinstance(await policy.after(failed(UNSENT, UNSENT), UNSENT_WAITS_S[1] + 0.01), TryAgain)
