from __future__ import annotations

import pytest

from insika.messages import Halt, assistant, tool_result
from insika.turn.steer_injector import SteerInjector, SteerPolicy
from tests.turn_doubles import Transcript, WaitingMessages, announce, show


def injector(
    transcript: Transcript, mailbox: WaitingMessages, policy: SteerPolicy | None = None, already: int = 0
) -> SteerInjector:
    return SteerInjector(transcript, mailbox, policy or SteerPolicy(), transcript.emit, already)


@pytest.mark.parametrize("size", [1, 2, 8])
def test_what_waits_joins_in_order_when_the_last_result_is_in_and_not_before(size):
    transcript, mailbox = Transcript(), WaitingMessages("one", "two")
    steer = injector(transcript, mailbox)
    steer.message_ended(announce(size))
    for index in range(size):
        assert transcript.messages == []
        steer.message_ended(tool_result(f"c{index}", ""))
    assert transcript.said == ["one", "two"]
    assert steer.injected == 2
    assert transcript.events == [("turn_steered", {"count": 2, "total": 2})]


def test_an_empty_mailbox_makes_no_event():
    transcript = Transcript()
    show(injector(transcript, WaitingMessages()).message_ended, 2)
    assert (transcript.messages, transcript.events) == ([], [])


def test_a_turn_without_calls_takes_nothing():
    transcript, mailbox = Transcript(), WaitingMessages("one")
    injector(transcript, mailbox).message_ended(assistant("done"))
    assert (transcript.messages, mailbox.texts) == ([], ["one"])


def test_a_halted_batch_leaves_the_mailbox_as_it_is():
    transcript, mailbox = Transcript(), WaitingMessages("one")
    steer = injector(transcript, mailbox)
    steer.message_ended(announce(1))
    steer.tool_result(Halt("bye"))
    steer.message_ended(tool_result("c0", "bye"))
    assert (transcript.messages, transcript.events, mailbox.texts) == ([], [], ["one"])
    assert steer.injected == 0


def test_no_more_than_the_policy_allows_join_one_turn():
    transcript, mailbox = Transcript(), WaitingMessages("one", "two")
    steer = injector(transcript, mailbox, SteerPolicy(steer_max_messages=3))
    show(steer.message_ended, 1)
    mailbox.texts += ["three", "four"]
    show(steer.message_ended, 1)
    show(steer.message_ended, 1)
    assert transcript.said == ["one", "two", "three"]
    assert mailbox.texts == ["four"]
    assert [data for _, data in transcript.events] == [{"count": 2, "total": 2}, {"count": 1, "total": 3}]


def test_what_joined_before_a_resume_counts():
    transcript, mailbox = Transcript(), WaitingMessages("one", "two", "three")
    steer = injector(transcript, mailbox, SteerPolicy(steer_max_messages=5), already=3)
    assert steer.injected == 3
    show(steer.message_ended, 1)
    assert (transcript.said, mailbox.texts, steer.injected) == (["one", "two"], ["three"], 5)
    assert transcript.events == [("turn_steered", {"count": 2, "total": 5})]


def test_a_turn_that_has_taken_more_than_the_policy_now_allows_takes_no_more():
    transcript, mailbox = Transcript(), WaitingMessages("one")
    show(injector(transcript, mailbox, SteerPolicy(2), already=4).message_ended, 1)
    assert (transcript.said, mailbox.texts) == ([], ["one"])


def test_a_policy_of_zero_lets_nothing_join():
    transcript, mailbox = Transcript(), WaitingMessages("one")
    show(injector(transcript, mailbox, SteerPolicy(0)).message_ended, 1)
    assert (transcript.said, mailbox.texts) == ([], ["one"])


def test_numbers_below_zero_are_refused_by_name():
    with pytest.raises(ValueError, match="-1"):
        SteerPolicy(steer_max_messages=-1)
    with pytest.raises(ValueError, match="-2"):
        injector(Transcript(), WaitingMessages(), already=-2)


def test_a_template_frames_every_text():
    transcript, mailbox = Transcript(), WaitingMessages("one", "two")
    steer = injector(transcript, mailbox, SteerPolicy(steer_join="the customer adds: %{message}!"))
    show(steer.message_ended, 1)
    assert transcript.said == ["the customer adds: one!", "the customer adds: two!"]
    assert mailbox.texts == []


@pytest.mark.parametrize("text", ["100% %{message} %s %(x)d {0}", "%{message}", r"\1 \g<0>", "%", ""])
def test_what_a_person_wrote_is_never_read_as_a_template(text):
    assert SteerPolicy(steer_join="> %{message} <").frame(text) == f"> {text} <"
    assert SteerPolicy().frame(text) == text


def test_other_signs_of_a_template_stay_as_they_are():
    assert SteerPolicy(steer_join="100%% {x} %{message}%{message}").frame("a") == "100%% {x} aa"


@pytest.mark.parametrize("template", ["", "no place", "%{ message }", "%{Message}", "{message}"])
def test_a_template_without_a_place_for_the_message_is_refused(template):
    with pytest.raises(ValueError, match="steer_join") as caught:
        SteerPolicy(steer_join=template)
    assert repr(template) in str(caught.value)
