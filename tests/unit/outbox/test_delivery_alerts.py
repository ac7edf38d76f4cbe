"""Operators are told of answers that were not delivered, once for each time, and never of an alert's own failure."""

from __future__ import annotations

from insika.choices import Guarantee
from insika.clock import ManualClock
from outbox.alerts import DeliveryAlerts
from outbox.message import ClaimedDelivery
from outbox.states import Delivered, Failed, RetryIn, Uncertain

WEBHOOK = "https://ops.example.com/insika"
CLOCK = ManualClock()
PAYLOAD = {"type": "answer", "session": "s", "turn_id": "t1", "agent": "shop", "content": "Done.", "tenant": "acme"}


def delivery(attempts: int = 3) -> ClaimedDelivery:
    return ClaimedDelivery(
        "d1", "c", "web", "s", "answer", PAYLOAD, "https://shop.example", Guarantee.AT_MOST_ONCE, attempts, attempts, 3,
        15.0, CLOCK.now(),
    )  # fmt: skip


def told_to(webhook: str | None) -> DeliveryAlerts:
    return DeliveryAlerts({"shop": webhook}.get, CLOCK)


def test_a_failure_is_told_as_its_event_tells_it_and_without_what_was_said() -> None:
    (alert,) = told_to(WEBHOOK)(delivery(), Failed("the receiver answered 404"))
    assert alert.delivery is not None
    assert (alert.delivery.url, alert.delivery.kind) == (WEBHOOK, "alert")
    assert alert.delivery.payload == {
        "type": "delivery_failed",
        "data": {
            "delivery_id": "d1",
            "channel": "web",
            "attempts": 3,
            "outcome": "failed",
            "reason": "the receiver answered 404",
        },
        "meta": {"at": "2030-01-01T00:00:00Z", "turn_id": "t1", "session": "s", "tenant": "acme"},
        "agent": "shop",
    }


def test_an_unknown_outcome_is_told_too() -> None:
    (alert,) = told_to(WEBHOOK)(delivery(), Uncertain("the answer was 502"))
    assert alert.delivery is not None
    assert alert.delivery.payload["data"]["outcome"] == "uncertain"


def test_what_is_delivered_or_tried_again_and_who_wants_no_alerts_is_told_nothing() -> None:
    assert told_to(WEBHOOK)(delivery(), Delivered(200)) == ()
    assert told_to(WEBHOOK)(delivery(), RetryIn(1.0, "503")) == ()
    assert told_to(None)(delivery(), Failed("404")) == ()


def test_what_fails_again_after_it_was_sent_again_by_hand_is_told_again() -> None:
    first, second = (told_to(WEBHOOK)(delivery(attempts), Failed("404"))[0].key for attempts in (3, 4))
    assert first != second
