from __future__ import annotations

import json

import dramatiq
import pytest
from dramatiq.broker import Broker
from dramatiq.middleware import SkipMessage
from structlog.testing import capture_logs

from actors.broker.consumer import Receipt, TakenMessage
from actors.broker.handing_back import HandBack
from actors.broker.messages import Delivery, built
from actors.broker.middleware import KeepWhatFailed, LogFailures, SkipWhatWentBack, middleware
from actors.broker.subscription import Subscription

BROKER = Broker(middleware=[])
WORDS = "my card number is 4111"


def taken(queue: str = "insika.turns") -> TakenMessage:
    subscription = Subscription.__new__(Subscription)
    subscription.ended = False
    return TakenMessage(built(queue, "actor", Delivery(WORDS.encode())), Receipt(subscription, [1]))


def test_the_whole_list() -> None:
    """What is missing from it loses messages, or lets them choose what becomes of them."""
    assert [type(each) for each in middleware(["insika.turns"])] == [SkipWhatWentBack, KeepWhatFailed, LogFailures]
    actor_options = set().union(*(each.actor_options for each in middleware([])))
    assert actor_options == set()


@pytest.mark.parametrize("error", [HandBack("away"), ValueError(WORDS), SystemExit()])
def test_a_job_whose_actor_raised_goes_back(error: BaseException) -> None:
    message = taken()
    KeepWhatFailed(["insika.turns"]).after_process_message(BROKER, message, exception=error)
    assert message.receipt.given_back


def test_a_job_whose_actor_is_through_is_settled_and_so_is_a_hint_in_any_case() -> None:
    message, hint = taken(), taken("insika.sessions")
    KeepWhatFailed(["insika.turns"]).after_process_message(BROKER, message)
    KeepWhatFailed(["insika.turns"]).after_process_message(BROKER, hint, exception=ValueError())
    assert not message.receipt.given_back
    assert not hint.receipt.given_back


def test_what_went_back_meanwhile_is_not_begun() -> None:
    message = taken()
    SkipWhatWentBack().before_process_message(BROKER, message)
    message.receipt.subscription.ended = True
    with pytest.raises(SkipMessage):
        SkipWhatWentBack().before_process_message(BROKER, message)


def test_a_failure_is_one_line_that_quotes_nothing() -> None:
    with capture_logs() as lines:
        LogFailures().after_process_message(BROKER, taken(), exception=ValueError(WORDS))
        LogFailures().after_process_message(BROKER, taken(), exception=HandBack("the store does not answer"))
        LogFailures().after_process_message(BROKER, taken())
    assert [line["event"] for line in lines] == ["actor failed", "message given back"]
    lines[0].pop("exc_info")  # the log's own processor tells its type and place only
    assert WORDS not in json.dumps(lines)


def test_dramatiq_would_settle_what_failed() -> None:
    """The reason for all this: without it, a job whose actor raised is acknowledged."""
    assert not dramatiq.broker.MessageProxy(built("q", "a")).failed
