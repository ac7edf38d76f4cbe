"""An answer leaves without what may not, by the profile that its turn began with, wherever one looks."""

from __future__ import annotations

import json

import pytest

from insika.testing import Say, Script
from tests.actor_world import CHANNEL, profile

ANSWER = "Pay to card 4111 1111 1111 1111, voucher GIFT-123456, or write to shop@shop.example."


@pytest.mark.parametrize(
    ("guardrails", "said"),
    [
        (None, ANSWER.replace("4111 1111 1111 1111", "[card number removed]")),
        (
            {"redact": [{"kind": "voucher", "pattern": "GIFT-[0-9]{6}", "at_most": 11}], "remove": ["card"]},
            ANSWER.replace("GIFT-123456", "[removed]"),
        ),
        ({"keep": ["4111-1111-1111-1111"]}, ANSWER),
        ({"output": False}, ANSWER),
        (False, ANSWER),
    ],
    ids=["by default", "of its own", "kept", "output off", "all off"],
)
async def test_log_delivery_and_events_say_the_same(place_for, guardrails, said):
    process = await place_for(Script(afterwards=Say(ANSWER))).process(profile(guardrails=guardrails))
    sent = await process.send("How do I pay?", channel=CHANNEL)
    await process.idle()

    assert await process.answers() == [said]
    (row,) = await process.select("SELECT payload FROM outbox")
    assert json.loads(row["payload"])["content"] == said
    assert "".join(event.data["text"] for event in process.events.of("content")) == said
    types = [str(event.type) for event in process.events.events if event.turn_id == sent.turn_id]
    assert types[-1] == "turn_completed"
    assert ("guardrail_flagged" in types) is (said != ANSWER)
