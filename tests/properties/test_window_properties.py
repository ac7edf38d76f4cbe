"""Whatever a broker does to a window of messages: order is kept, nothing is forgotten, nothing is out twice at once."""

from __future__ import annotations

import pika
from hypothesis import given
from hypothesis import strategies as st

from insika.producer.window import Outgoing, Window

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 5)),
        st.tuples(st.just("send"), st.integers(1, 8)),
        st.tuples(st.just("confirm"), st.integers(0, 7)),
        st.tuples(st.just("confirm up to"), st.integers(0, 7)),
        st.tuples(st.just("expire"), st.integers(0, 7)),
        st.tuples(st.just("lose"), st.booleans()),
    ),
    max_size=40,
)


class Broker:
    """Plays events at a window, and remembers what must be true of it."""

    def __init__(self) -> None:
        self.window = Window(most=4)
        self.messages: list[Outgoing] = []
        self.tags: dict[int, Outgoing] = {}
        self.next_tag = 1
        self.arrived: list[str] = []

    def add(self, count: int) -> None:
        for _ in range(count):
            properties = pika.BasicProperties(message_id=str(len(self.messages)))
            message = Outgoing("", "q", b"x", properties, True, True, 1.0)
            self.messages.append(message)
            self.window.add(message)

    def send(self, count: int) -> None:
        for _ in range(count):
            message = self.window.next()
            if message is None:
                return
            assert not message.done
            assert message not in self.tags.values()
            self.window.sent(self.next_tag, message)
            self.tags[self.next_tag] = message
            self.next_tag += 1
            assert len(self.tags) <= 4
            assert len(self.tags) == 1 or not any(it.suspect for it in self.tags.values())
            self.arrived.append(str(message.message_id))

    def confirm(self, nth: int, *, multiple: bool = False) -> None:
        if not self.tags:
            return
        tag = list(self.tags)[min(nth, len(self.tags) - 1)]
        due = [it for it in self.tags if it <= tag] if multiple else [tag]
        settled = self.window.confirmed(tag, multiple=multiple)
        assert settled == [self.tags.pop(it) for it in due]
        for message in settled:
            end(message)

    def expire(self, nth: int) -> None:
        open_ = [message for message in self.messages if not message.done]
        if open_:
            end(open_[min(nth, len(open_) - 1)])
            self.window.forget_ended()

    def lose(self, blaming: bool) -> None:
        alone = list(self.tags.values())
        lost = self.window.lose(blaming=blaming)
        assert lost.unknown == ()
        assert lost.guilty is (alone[0] if blaming and len(alone) == 1 else None)
        if lost.guilty is not None:
            end(lost.guilty)
        self.tags.clear()
        self.next_tag = 1


def end(message: Outgoing) -> None:
    if not message.done:
        message.future.set_result(None)


@given(EVENTS)
def test_every_message_is_on_its_way_in_its_order_until_it_has_ended(events):
    broker = Broker()
    for what, how in events:
        match what:
            case "add":
                broker.add(how)
            case "send":
                broker.send(how)
            case "confirm":
                broker.confirm(how)
            case "confirm up to":
                broker.confirm(how, multiple=True)
            case "expire":
                broker.expire(how)
            case "lose":
                broker.lose(how)
        on_its_way = [*broker.window.in_flight(), *broker.window.waiting()]
        assert [it for it in on_its_way if not it.done] == [it for it in broker.messages if not it.done]

    for _ in broker.messages:
        broker.send(8)
        broker.confirm(7, multiple=True)
    assert all(message.done for message in broker.messages)
    first_seen = list(dict.fromkeys(broker.arrived))
    assert first_seen == sorted(first_seen, key=int)
