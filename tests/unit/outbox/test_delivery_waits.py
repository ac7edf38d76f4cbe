from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tenacity.wait import wait_fixed

from outbox.policy import RETRY_AFTER_MAX_S, RetryWaits, delivery_waits, retry_after_s

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("attempts", "least"), [(1, 1.0), (2, 5.0), (3, 5.0), (50, 5.0)])
def test_one_second_then_five_with_a_little_jitter(attempts, least):
    waits = RetryWaits(delivery_waits())
    drawn = {waits.after(attempts, None) for _ in range(50)}
    assert all(least <= wait_s <= least + 0.25 for wait_s in drawn)
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("wanted", "wait_s"), [(None, 5.0), (0.0, 5.0), (4.0, 5.0), (60.0, 60.0), (9e9, RETRY_AFTER_MAX_S)]
)
def test_the_receivers_wish_lengthens_the_wait_within_bounds_and_never_shortens_it(wanted, wait_s):
    assert RetryWaits(wait_fixed(5)).after(1, wanted) == wait_s


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("5", 5.0),
        (" 120 ", 120.0),
        ("9999", 9999.0),
        ("9" * 5000, 999_999_999_999.0),
        ("Tue, 01 Jan 2030 00:00:30 GMT", 30.0),
        ("Tuesday, 01-Jan-30 00:00:30 GMT", 30.0),
        ("Mon, 01 Jan 2029 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(header, seconds):
    assert retry_after_s(header, NOW) == seconds


@pytest.mark.parametrize(
    "header",
    [None, "", "soon", "-1", "1.5", "1e9", "NaN", "٣", "12 monkeys", "Tue, 99 Jan 2030 00:00:30 GMT"],
)
def test_rubbish_is_no_wish(header):
    assert retry_after_s(header, NOW) is None
