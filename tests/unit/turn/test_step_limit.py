from __future__ import annotations

import pytest

from insika.errors import InsikaError
from insika.turn.step_limit import NoStepLimit, StepLimit


def test_the_limit_itself_may_be_reached_and_not_passed():
    limit = StepLimit(3)
    for _ in range(3):
        limit.tick()
    assert (limit.step, limit.remaining, limit.exhausted) == (3, 0, False)
    with pytest.raises(StepLimit.Exceeded) as caught:
        limit.tick()
    assert caught.value.max == 3
    assert (limit.step, limit.remaining, limit.exhausted) == (4, 0, True)


def test_every_call_past_the_limit_is_refused():
    limit = StepLimit(1)
    limit.tick()
    for _ in range(3):
        with pytest.raises(StepLimit.Exceeded):
            limit.tick()


def test_exceeding_is_a_contract_error_that_names_the_limit_and_says_what_to_do():
    error = StepLimit.Exceeded(7)
    assert isinstance(error, InsikaError)
    assert error.as_dict()["type"] == "tool_limit"
    assert "7" in error.message
    assert "max_tool_calls" in error.message


def test_a_reset_gives_the_whole_limit_again():
    limit = StepLimit(1)
    limit.tick()
    limit.reset()
    assert limit.step == 0
    limit.tick()


@pytest.mark.parametrize("value", [0, -1, -50])
def test_a_limit_below_one_is_refused_by_name(value):
    with pytest.raises(ValueError, match=str(value)):
        StepLimit(value)


@pytest.mark.parametrize("value", [True, False, 2.0, "3", None])
def test_a_limit_that_is_no_whole_number_is_refused_by_name(value):
    with pytest.raises(TypeError, match=str(value)):
        StepLimit(value)


@pytest.mark.parametrize("value", ["stop", "", "RAISE", None])
def test_an_unknown_policy_is_refused_by_name(value):
    with pytest.raises(ValueError, match="on_exhausted") as caught:
        StepLimit(3, value)
    assert repr(value) in str(caught.value)


def test_it_shows_its_limit_and_a_policy_other_than_the_default():
    assert str(StepLimit(max=50)) == "StepLimit(max=50)"
    assert str(StepLimit(max=50, on_exhausted="raise")) == "StepLimit(max=50)"
    assert str(StepLimit(max=50, on_exhausted="synthesize")) == "StepLimit(max=50, on_exhausted=synthesize)"


def test_the_policies_are_named_once():
    assert StepLimit.ON_EXHAUSTED == ("raise", "synthesize")
    assert StepLimit(1).on_exhausted == "raise"
    assert StepLimit(1, "synthesize").on_exhausted == "synthesize"


def test_without_a_limit_nothing_is_counted_and_nothing_ends():
    limit = NoStepLimit()
    for _ in range(1000):
        limit.tick()
    limit.reset()
    assert (limit.max, limit.step, limit.remaining, limit.exhausted) == (None, 0, None, False)
    assert limit.on_exhausted == "raise"
    assert str(limit) == "NoStepLimit()"
