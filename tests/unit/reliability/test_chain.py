"""The chain of models, with the order's own numbers: 2 retries, then the next model; fatal failures end it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.reliability.attempts import FailedAttempt, GiveUp, TryAgain
from insika.reliability.chain import Chain, ModelSource, NextModel, kindest

A, B, C = "openai/a", "openai/b", "anthropic/c"
CHAIN = Chain.of(A, [B, A], [C, B], retries=2)


class Doubling:
    def after(self, attempts: int, retry_after_s: float | None) -> float:
        return max(float(2 ** (attempts - 1)), retry_after_s or 0.0)


def failed(
    *models: str, action: FailureAction = FailureAction.RETRYABLE, wait: float | None = None
) -> list[FailedAttempt]:
    return [FailedAttempt(model, ProviderError("x", action=action, retry_after=wait)) for model in models]


def test_the_profiles_model_comes_first_then_its_own_fallbacks_then_the_platforms_each_once() -> None:
    assert CHAIN.models == (A, B, C)
    assert list(CHAIN.behind(A)) == [B, C]
    assert list(CHAIN.behind(C)) == []
    assert list(CHAIN.behind("openai/unheard-of")) == [B, C]
    assert [CHAIN.source(model) for model in CHAIN.models] == [
        ModelSource.PRIMARY,
        ModelSource.FALLBACK,
        ModelSource.FALLBACK,
    ]


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        (failed(A), TryAgain(1.0, A)),
        (failed(A, A), TryAgain(2.0, A)),
        (failed(A, A, A), NextModel()),
        (failed(A, A, A, B), TryAgain(1.0, B)),
        (failed(A, A, A, B, B, B), NextModel()),
        (failed(A, action=FailureAction.RATE_LIMITED_SHORT, wait=20), TryAgain(20.0, A)),
        (failed(A, action=FailureAction.RATE_LIMITED_LONG, wait=61), NextModel()),
        (failed(A, wait=300), NextModel()),
    ],
)
def test_what_a_failure_leads_to(failures: list[FailedAttempt], expected: object) -> None:
    assert CHAIN.after(failures, 100.0, Doubling()) == expected


def test_a_fatal_failure_ends_the_chain_at_once() -> None:
    error = ProviderFatal("the key is wrong")
    assert CHAIN.after([*failed(A), FailedAttempt(A, error)], 100.0, Doubling()) == GiveUp(error)


def test_without_retries_each_model_is_asked_once() -> None:
    assert Chain.of(A, [B], (), 0).after(failed(A), 100.0, Doubling()) == NextModel()


@given(st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=9), st.floats(0.1, 50))
def test_no_wait_is_longer_than_what_is_left_and_no_model_is_tried_too_often(models: list[str], left_s: float) -> None:
    decision = CHAIN.after(failed(*models), left_s, Doubling())
    if isinstance(decision, TryAgain):
        assert decision.after_s < left_s
        assert models.count(decision.model) <= CHAIN.retries


def test_a_chain_that_failed_ends_with_its_last_failure_and_the_shortest_wait() -> None:
    errors = [
        ProviderError("first", retry_after=90.0, action=FailureAction.RATE_LIMITED_LONG),
        ProviderError("second", retry_after=70.0, action=FailureAction.RATE_LIMITED_LONG),
        ProviderError("last"),
    ]
    assert (kindest(errors).message, kindest(errors).retry_after) == ("last", 70.0)
