from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insika.turn.output import Answered, answer_deliveries, paragraphs


@dataclass(frozen=True)
class Channel:
    id: str = "web"
    url: str = "https://receiver.example/hook"
    guarantee: str = "at_most_once"
    split: str = "whole"
    max_attempts: int = 3
    timeout_s: float = 15.0
    order_wait_s: float = 60.0


TURN = Answered(session_id=7, session="ada", turn_id="t1", agent="demo")
IN_PIECES = Channel(split="paragraphs")


def test_an_answer_is_one_delivery_with_the_contracts_payload():
    (delivery,) = answer_deliveries(Channel(), TURN, "Hello.\n\nBye.", "completed")
    assert delivery.payload == {
        "type": "answer",
        "session": "ada",
        "recipient": "ada",
        "turn_id": "t1",
        "content": "Hello.\n\nBye.",
        "index": 0,
        "final": True,
        "agent": "demo",
        "outcome": "completed",
    }
    assert (delivery.kind, delivery.channel, delivery.lane, delivery.recipient) == ("answer", "web", "7/web", "ada")


def test_route_tenant_and_recipient_are_told_when_there_are_any():
    turn = replace(TURN, tenant="acme", recipient="+49", route="shopping")
    (delivery,) = answer_deliveries(Channel(), turn, "Hello.", "stuck")
    assert (delivery.payload["tenant"], delivery.payload["route"]) == ("acme", "shopping")
    assert delivery.payload["recipient"] == delivery.recipient == "+49"


def test_what_bounds_the_sending_is_taken_from_the_channel():
    channel = Channel(guarantee="at_least_once", max_attempts=5, timeout_s=3.0, order_wait_s=9.0)
    (delivery,) = answer_deliveries(channel, TURN, "Hello.", "halted")
    assert (delivery.url, delivery.guarantee) == (channel.url, "at_least_once")
    assert (delivery.max_attempts, delivery.timeout_s, delivery.order_wait_s) == (5, 3.0, 9.0)


def test_pieces_are_in_order_and_only_the_last_is_final():
    deliveries = answer_deliveries(IN_PIECES, TURN, "One.\n\nTwo,\nstill two.\n \n\nThree.\n", "limited")
    assert [d.payload["content"] for d in deliveries] == ["One.", "Two,\nstill two.", "Three."]
    assert [d.payload["index"] for d in deliveries] == [0, 1, 2]
    assert [d.payload["final"] for d in deliveries] == [False, False, True]
    assert len({d.lane for d in deliveries}) == 1
    assert len({d.unique_key for d in deliveries}) == 3


@pytest.mark.parametrize("channel", [Channel(), IN_PIECES])
@pytest.mark.parametrize("content", ["", " ", "\n\n", "\n \t\n"])
def test_nothing_to_say_is_not_delivered(channel, content):
    assert answer_deliveries(channel, TURN, content, "completed") == ()


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "something new"])
def test_a_turn_that_did_not_come_to_an_answer_says_nothing(outcome):
    assert answer_deliveries(Channel(), TURN, "half an ans", outcome) == ()


def test_without_a_channel_the_answer_is_kept_and_not_delivered():
    assert answer_deliveries(None, TURN, "Hello.", "completed") == ()


def test_text_that_no_store_takes_is_replaced():
    (delivery,) = answer_deliveries(Channel(), TURN, "a\0b\ud83d", "completed")
    assert delivery.payload["content"] == "a\ufffdb\ufffd"


def test_a_block_of_code_stays_in_one_piece():
    content = "See:\n\n```python\na = 1\n\n~~~\n\nb = 2\n```\n\nDone."
    assert list(paragraphs(content)) == ["See:", "```python\na = 1\n\n~~~\n\nb = 2\n```", "Done."]


def test_a_fence_that_never_closes_keeps_the_rest_together():
    assert list(paragraphs("a\n\n```\nb\n\nc")) == ["a", "```\nb\n\nc"]


@given(st.text(st.sampled_from("ab \n`~\r\u2028")))
def test_no_visible_character_is_lost_or_moved(content):
    pieces = list(paragraphs(content))
    assert "".join("".join(pieces).split()) == "".join(content.split())
    assert all(piece.strip() for piece in pieces)
