"""Gates that open and close while messages come: the order is kept, nothing comes twice, and nothing is held back."""

from __future__ import annotations

import queue
import random
import threading

import pytest

from actors.broker import consumer
from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.broker.handing_back import HandBack
from actors.broker.messages import Delivery
from actors.broker.topology import OUTBOX, SESSIONS
from tests.broker_world import ListActors, Vhost, numbered, reading, texts, turns_of, until


def test_two_that_take_turns_keep_the_order_between_them(vhost: Vhost) -> None:
    """Whoever's gate closes has fetched ahead; the other one must not begin behind that."""
    bodies = numbered(1_000)
    vhost.publish(bodies)
    gates = [Gate(), Gate(is_open=False)]
    handled: list[str] = []

    def take_turns(delivery: Delivery) -> None:
        handled.append(delivery.body.decode())
        if len(handled) % 40 == 0:
            gates[0].set(not gates[0].is_open)
            gates[1].set(not gates[1].is_open)

    both = [ListActors(take_turns), ListActors(take_turns)]
    with reading(turns_of(vhost, both[0], gates[0]), turns_of(vhost, both[1], gates[1])):
        until(lambda: len(handled) >= len(bodies), "the last message")

    assert handled == texts(bodies)
    assert all(actors.handled for actors in both)


def test_a_gate_that_flutters_loses_nothing_and_repeats_nothing(vhost: Vhost) -> None:
    bodies = numbered(500)
    vhost.publish(bodies)
    gate, done, dice = Gate(), threading.Event(), random.Random(7)

    def flutter() -> None:
        while not done.is_set():
            gate.set(dice.random() < 0.5)
            done.wait(dice.random() / 50)
        gate.open()

    actors = ListActors()
    fluttering = threading.Thread(target=flutter)
    with reading(turns_of(vhost, actors, gate)):
        fluttering.start()
        until(lambda: len(actors.handled) >= 300, "the better part")
        done.set()
        fluttering.join()
        until(lambda: len(actors.handled) >= len(bodies), "the last message")

    assert actors.handled == texts(bodies)


def test_behind_a_closed_gate_messages_are_there_for_others_and_the_connection_lives(vhost: Vhost) -> None:
    gate = Gate()
    actors = ListActors()
    with reading(turns_of(vhost, actors, gate, query="?heartbeat=1")):
        vhost.publish(numbered(3))
        until(lambda: len(actors.handled) == 3)
        gate.close()
        vhost.publish(numbered(50))
        until(lambda: vhost.waiting() == 50, "the last one given back")
        (before,) = set(vhost.received()[:1])
        until(lambda: vhost.received()[0] >= before + 3 * 8, "the third heartbeat")
        assert len(actors.handled) == 3
        gate.open()
        until(lambda: len(actors.handled) == 53)
    assert {delivery.deliveries for delivery in actors.begun[3:]} <= {1, 2}


def test_what_an_actor_gives_back_comes_again_before_what_follows_it(
    vhost: Vhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "PAUSE_S", 0.05)
    bodies = numbered(60)
    vhost.publish(bodies)
    failing = {"00007": 2, "00008": 1, "00059": 1}

    def fail(delivery: Delivery) -> None:
        body = delivery.body.decode()
        if failing.get(body):
            failing[body] -= 1
            raise HandBack("not now") if failing[body] else ZeroDivisionError

    actors = ListActors(fail)
    with reading(turns_of(vhost, actors)):
        until(lambda: len(actors.handled) == len(bodies))

    assert actors.handled == texts(bodies)
    begun = [delivery.body.decode() for delivery in actors.begun]
    assert begun[7:12] == ["00007", "00007", "00007", "00008", "00008"]
    assert begun[-2:] == ["00059", "00059"]


def test_the_order_does_not_rest_on_dramatiq_s_own_queue(vhost: Vhost) -> None:
    """It may compare what it likes: the last one in goes out first here, and there is never more than one in it."""
    bodies = numbered(300)
    vhost.publish(bodies)
    actors = ListActors()
    consuming = turns_of(vhost, actors)
    consuming._worker.work_queue = queue.LifoQueue()  # type: ignore[assignment]
    with reading(consuming):
        until(lambda: len(actors.handled) == len(bodies))
    assert actors.handled == texts(bodies)


def test_wakes_go_to_whoever_has_room(vhost: Vhost) -> None:
    full, other = list[int](), list[int]()
    gates = [Gate(is_open=False), Gate()]
    url, type_ = vhost.url, vhost.type
    with reading(
        Consuming.of_wakes(url, type_, full.append, gates[0], threads=4),
        Consuming.of_wakes(url, type_, other.append, gates[1], threads=4),
    ):
        vhost.publish([b"%d" % n for n in range(1, 101)], SESSIONS)
        until(lambda: len(other) == 100)
        gates[1].close()
        gates[0].open()
        vhost.publish([b"%d" % n for n in range(101, 201)], SESSIONS)
        until(lambda: len(full) + len(other) == 200)
    assert sorted(full + other) == list(range(1, 201))
    assert full


def test_a_wake_is_in_nobody_s_hands_while_nobody_has_room(vhost: Vhost) -> None:
    gate, woken = Gate(), list[int]()
    with reading(Consuming.of_wakes(vhost.url, vhost.type, woken.append, gate, threads=2)):
        vhost.publish([b"1"], SESSIONS)
        until(lambda: woken == [1])
        gate.close()
        vhost.publish([b"%d" % n for n in range(2, 12)], SESSIONS)
        until(lambda: vhost.waiting(SESSIONS) == 10)
        gate.open()
        until(lambda: len(woken) == 11)
    assert sorted(woken) == list(range(1, 12))


def test_hints_that_say_nothing_are_dropped_and_hold_up_nothing(vhost: Vhost, log: list[dict[str, object]]) -> None:
    woken, rung = list[int](), list[int]()
    rubbish = [b"", b"x", b"-1", b"0", b"9" * 40, b"\xff" * 300, b'{"actor_name": "wake_session", "args": [1]}']
    with reading(
        Consuming.of_wakes(vhost.url, vhost.type, woken.append, Gate(), threads=2),
        Consuming.of_deliveries(vhost.url, vhost.type, lambda: rung.append(1), Gate()),
    ):
        vhost.publish([*rubbish, b"42"], SESSIONS)
        vhost.publish([*rubbish], OUTBOX)
        until(lambda: woken == [42])
        until(lambda: rung and vhost.waiting(OUTBOX) == 0)  # one look answers all hints that lie there together
    assert len([line for line in log if line["event"] == "hint dropped that says nothing"]) == len(rubbish)


def test_an_actor_of_hints_that_fails_costs_one_hint_and_one_line(vhost: Vhost, log: list[dict[str, object]]) -> None:
    woken = list[int]()

    def wake(session_id: int) -> None:
        woken.append(session_id)
        if session_id == 2:
            raise ZeroDivisionError

    with reading(Consuming.of_wakes(vhost.url, vhost.type, wake, Gate(), threads=1)):
        vhost.publish([b"1", b"2", b"3"], SESSIONS)
        until(lambda: len(woken) == 3)
        until(lambda: vhost.waiting(SESSIONS) == 0)
    assert woken == [1, 2, 3]
    assert [line["actor"] for line in log if line["event"] == "actor failed"] == ["wake_session"]
