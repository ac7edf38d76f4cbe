"""A reader that is told to stop: what it has begun it finishes and settles, the rest it leaves to others."""

from __future__ import annotations

import threading

from actors.broker.consuming import TURNS_BATCH
from actors.broker.gate import Gate
from actors.broker.messages import Delivery
from tests.broker_world import ListActors, Vhost, numbered, texts, turns_of, until


class Held(ListActors):
    """Every message is held until `go_on`."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        super().__init__(lambda delivery: self.go_on.wait(60))


def test_what_has_begun_is_finished_and_settled_and_the_rest_is_there_in_order(vhost: Vhost) -> None:
    vhost.publish(numbered(100))
    actors = Held()
    consuming = turns_of(vhost, actors)
    consuming.start()
    until(lambda: actors.begun)
    stopping = threading.Thread(target=consuming.stop, args=(60.0,))
    stopping.start()
    assert actors.handled == []
    actors.go_on.set()
    stopping.join(60)
    assert not stopping.is_alive()
    begun = len(actors.begun)
    assert begun <= TURNS_BATCH
    assert actors.handled == texts(numbered(begun))
    assert vhost.waiting() == 100 - begun

    others = ListActors()
    consuming = turns_of(vhost, others)
    consuming.start()
    until(lambda: len(others.handled) == 100 - begun)
    consuming.stop(10)
    assert others.handled == texts(numbered(100))[begun:]


def test_what_does_not_end_in_time_goes_back(vhost: Vhost) -> None:
    vhost.publish(numbered(3))
    actors = Held()
    consuming = turns_of(vhost, actors)
    consuming.start()
    until(lambda: actors.begun)
    consuming.stop(0.1)
    assert vhost.waiting() == 3

    others = ListActors()
    again = turns_of(vhost, others)
    again.start()
    until(lambda: len(others.handled) == 3)
    actors.go_on.set()  # its late end settles nothing
    until(lambda: actors.handled)
    again.stop(10)
    assert others.handled == texts(numbered(3))
    assert vhost.waiting() == 0


def test_stopping_takes_no_more_however_much_there_is(vhost: Vhost) -> None:
    vhost.publish(numbered(400))
    reached = threading.Event()

    def note(delivery: Delivery) -> None:
        if delivery.body == b"00100":
            reached.set()

    actors = ListActors(note)
    consuming = turns_of(vhost, actors)
    consuming.start()
    assert reached.wait(60)
    consuming.stop(10)
    assert actors.handled == texts(numbered(400))[: len(actors.handled)]
    assert vhost.waiting() == 400 - len(actors.handled)


def test_one_that_has_nothing_to_do_or_never_connected_stops_too(vhost: Vhost) -> None:
    idle = turns_of(vhost, ListActors(), Gate(is_open=False))
    idle.start()
    idle.stop(10)
    away = turns_of(Vhost("amqp://guest:guest@127.0.0.1:1/", vhost.type, vhost.console), ListActors())
    away.start()
    away.stop(10)
