from __future__ import annotations

import pika
import pytest

from insika.producer.window import Outgoing, Window


def message(name="m", *, body=b"x", mandatory=True, repeatable=True):
    properties = pika.BasicProperties(message_id=name)
    return Outgoing("", "q", body, properties, mandatory, repeatable, timeout_s=1.0)


def window(*names, **limits):
    made = Window(**limits)
    for name in names:
        made.add(name if isinstance(name, Outgoing) else message(name))
    return made


def send(made, first_tag=1):
    """Everything that may go out, as (tag, name)."""
    out = []
    while (it := made.next()) is not None:
        made.sent(first_tag + len(out), it)
        out.append((first_tag + len(out), it.message_id))
    return out


def names(messages):
    return [it.message_id for it in messages]


def test_messages_go_out_in_their_order_and_no_more_than_may_be_on_their_way():
    made = window("a", "b", "c", most=2)
    assert send(made) == [(1, "a"), (2, "b")]
    assert names(made.confirmed(1, multiple=False)) == ["a"]
    assert send(made, 3) == [(3, "c")]


def test_large_messages_fill_the_window_by_their_bytes():
    made = window(message("a", body=b"x" * 60), message("b", body=b"x" * 60), message("c"), most_bytes=100)
    assert send(made) == [(1, "a"), (2, "b")]
    made.confirmed(1, multiple=False)
    assert send(made, 3) == [(3, "c")]


def test_a_message_larger_than_the_window_goes_out_all_the_same():
    assert send(window(message("a", body=b"x" * 200), most_bytes=100)) == [(1, "a")]


def test_one_confirmation_may_be_about_many():
    made = window("a", "b", "c", "d")
    send(made)
    assert names(made.confirmed(3, multiple=True)) == ["a", "b", "c"]
    assert names(made.confirmed(3, multiple=True)) == []
    assert names(made.confirmed(4, multiple=False)) == ["d"]


def test_a_confirmation_of_something_unknown_is_about_nothing():
    made = window("a")
    send(made)
    assert made.confirmed(9, multiple=False) == []
    assert names(made.confirmed(1, multiple=False)) == ["a"]


def test_after_a_loss_what_is_unconfirmed_goes_out_first_and_in_its_order():
    made = window("a", "b", "c", "d", most=3)
    send(made)
    made.confirmed(2, multiple=False)
    lost = made.lose(blaming=False)
    assert (lost.unknown, lost.guilty) == ((), None)
    assert send(made) == [(1, "a"), (2, "c"), (3, "d")]


def test_what_may_not_be_repeated_is_told_as_unknown():
    made = window("a", message("hint", repeatable=False), "b")
    send(made)
    assert names(made.lose(blaming=False).unknown) == ["hint"]
    assert send(made) == [(1, "a"), (2, "b")]


def test_what_nobody_waits_for_any_more_does_not_go_out_again():
    made = window("a", "b", "c")
    send(made)
    made.add(message("d"))
    for it in made.in_flight()[:2]:
        it.future.set_result(None)
    made.lose(blaming=False)
    assert send(made) == [(1, "c"), (2, "d")]


def test_cancelled_messages_are_passed_over():
    made = window("a", "b", "c")
    for it in made.waiting()[:2]:
        it.future.cancel()
    made.forget_ended()
    assert send(made) == [(1, "c")]


def test_when_the_broker_closed_over_one_of_several_each_goes_out_alone():
    made = window("a", "b", "c")
    send(made)
    made.add(message("later"))
    assert made.lose(blaming=True).guilty is None

    assert send(made) == [(1, "a")]
    made.confirmed(1, multiple=False)
    assert send(made, 2) == [(2, "b")]
    assert made.lose(blaming=True).guilty.message_id == "b"
    assert send(made) == [(1, "c")]
    made.confirmed(1, multiple=False)
    assert send(made, 2) == [(2, "later")]


def test_a_suspect_waits_until_nothing_else_is_on_its_way():
    made = window("a", message("b"))
    made.waiting()[1].suspect = True
    assert send(made) == [(1, "a")]
    made.confirmed(1, multiple=False)
    assert send(made, 2) == [(2, "b")]


def test_the_only_one_on_its_way_is_the_guilty_one():
    made = window("a")
    send(made)
    made.add(message("b"))
    assert made.lose(blaming=True).guilty.message_id == "a"
    assert send(made) == [(1, "b")]


def test_a_loss_that_blames_nothing_makes_no_suspects():
    made = window("a", "b")
    send(made)
    made.lose(blaming=False)
    assert send(made) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("mandatory", [True, False])
def test_what_comes_back_is_known_by_its_address(mandatory):
    made = window("a", message("b", mandatory=mandatory), "c")
    send(made)
    made.returned(("", "q", "b"), "no route")
    assert [it.returned for it in made.in_flight()] == [None, "no route" if mandatory else None, None]


def test_of_two_with_one_address_each_return_is_about_another():
    made = window("a", "a")
    send(made)
    made.returned(("", "q", "a"), "first")
    made.returned(("", "q", "a"), "second")
    assert [it.returned for it in made.in_flight()] == ["first", "second"]


def test_what_came_back_on_a_lost_connection_is_asked_again():
    made = window("a")
    send(made)
    made.returned(("", "q", "a"), "no route")
    made.lose(blaming=False)
    assert made.waiting()[0].returned is None


def test_clearing_gives_everything_that_is_still_open():
    made = window("a", "b", "c", most=1)
    send(made)
    made.waiting()[0].future.cancel()
    assert names(made.clear()) == ["a", "c"]
    assert made.next() is None
