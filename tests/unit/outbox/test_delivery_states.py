"""What follows from what one attempt came to."""

from __future__ import annotations

import pytest

from insika.choices import Guarantee
from outbox.states import (
    Answered,
    Delivered,
    Failed,
    Forbidden,
    NotSent,
    RetryIn,
    Uncertain,
    Unknown,
    decide,
    expired,
)
from tests.outbox_doubles import FixedWaits

ONCE, AT_LEAST = Guarantee.AT_MOST_ONCE, Guarantee.AT_LEAST_ONCE


def after(result, *, attempts=1, max_attempts=3, guarantee=ONCE):
    return decide(result, attempts=attempts, max_attempts=max_attempts, guarantee=guarantee, waits=FixedWaits())


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_delivered(status):
    assert after(Answered(status)) == Delivered(status)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_certain_refusal_is_tried_again(status):
    decision = after(Answered(status))
    assert isinstance(decision, RetryIn)
    assert not decision.possible_duplicate
    assert str(status) in decision.reason


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_refusal_at_the_last_attempt_fails_and_says_how_often_it_was_tried(status):
    decision = after(Answered(status), attempts=3)
    assert isinstance(decision, Failed)
    assert "3 of 3" in decision.reason


def test_the_receiver_says_when_to_come_back():
    assert after(Answered(503, retry_after_s=120.0)).delay_s == 120.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 421, 422, 425, 451, 499])
def test_other_4xx_fail_at_once(status):
    assert isinstance(after(Answered(status)), Failed)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_fails_and_says_why(status):
    assert "redirect" in after(Answered(status)).reason


@pytest.mark.parametrize("status", [101, 501, 502, 504, 507, 520, 524, 599, 600, 999])
def test_an_answer_that_may_be_a_proxys_is_uncertain(status):
    assert isinstance(after(Answered(status)), Uncertain)


def test_nothing_sent_is_tried_again_and_fails_in_the_end():
    assert after(NotSent("no connection")) == RetryIn(1.0, "no connection")
    assert isinstance(after(NotSent("no connection"), attempts=3), Failed)


def test_what_may_not_be_sent_fails_without_a_second_try():
    assert after(Forbidden("private address")) == Failed("private address")
    assert after(Forbidden("private address"), guarantee=AT_LEAST) == Failed("private address")


def test_an_unknown_outcome_is_uncertain_whatever_tries_are_left():
    assert after(Unknown("timeout"), max_attempts=99) == Uncertain("timeout")


@pytest.mark.parametrize("result", [Unknown("timeout"), Answered(502), Answered(504)])
def test_at_least_once_sends_an_unknown_outcome_again_as_a_possible_duplicate(result):
    decision = after(result, guarantee=AT_LEAST)
    assert isinstance(decision, RetryIn)
    assert decision.possible_duplicate


def test_at_least_once_ends_too_and_ends_uncertain():
    assert after(Unknown("timeout"), attempts=3, guarantee=AT_LEAST) == Uncertain("timeout")


def test_a_claim_that_ran_out_is_uncertain_or_goes_back_by_the_channels_choice():
    assert isinstance(expired(attempts=1, max_attempts=3, guarantee=ONCE), Uncertain)
    back = expired(attempts=1, max_attempts=3, guarantee=AT_LEAST)
    assert isinstance(back, RetryIn)
    assert back.possible_duplicate
    assert back.delay_s == 0
    assert isinstance(expired(attempts=3, max_attempts=3, guarantee=AT_LEAST), Uncertain)
