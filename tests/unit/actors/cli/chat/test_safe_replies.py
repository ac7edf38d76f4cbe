"""Which events a chat takes for the reply to a refused message."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from actors.cli.chat.safe_replies import SafeReplies
from insika.events import Event, EventType

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REPLY = Event(EventType.CONTENT, NOW, "t1", "ana", "shop", None, 1, 0, 1, {"step": 0, "text": "I cannot."})


def test_the_reply_to_a_refused_message_is_taken_once() -> None:
    replies = SafeReplies("ana")
    replies.read([REPLY])
    assert replies.heard("t1")
    assert [replies.take("t1"), replies.take("t1")] == ["I cannot.", ""]


@pytest.mark.parametrize(
    "other",
    [
        REPLY._replace(step=1),
        REPLY._replace(session="ben"),
        REPLY._replace(tenant="acme"),
        REPLY._replace(type=EventType.THINKING),
    ],
)
def test_a_models_words_and_what_is_said_elsewhere_are_none(other: Event) -> None:
    replies = SafeReplies("ana")
    replies.read([other])
    assert not replies.heard("t1")
