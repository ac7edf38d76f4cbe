"""Hints from one process to another, over a real broker."""

from __future__ import annotations

from actors.broker.consuming import Consuming
from actors.broker.gate import Gate
from actors.broker.hints import Hints
from actors.broker.topology import OUTBOX, SESSIONS
from tests.amqp_wire import drain, wire
from tests.broker_world import Vhost, reading, reading_beside_the_loop, until, until_beside_the_loop


def test_they_arrive(vhost: Vhost) -> None:
    woken, rung = list[int](), list[int]()
    wakes = Consuming.of_wakes(vhost.url, vhost.type, woken.append, Gate(), threads=2)
    deliveries = Consuming.of_deliveries(vhost.url, vhost.type, lambda: rung.append(1), Gate())
    with reading(wakes, deliveries), Hints(vhost.url) as hints:
        for session_id in range(1, 501):
            hints.session(session_id)
        hints.delivery()
        until(lambda: len(set(woken)) == 500)
        until(lambda: rung)


def test_they_do_not_wait_for_ever_and_leave_nothing_behind(vhost: Vhost) -> None:
    with Hints(vhost.url) as hints:
        hints.session(1)
        hints.delivery()
        until(lambda: vhost.waiting(SESSIONS) == vhost.waiting(OUTBOX) == 1)
    (properties, body), *_ = drain(vhost.url, SESSIONS)
    assert (properties.expiration, body) == ("30000", b"1")


async def test_while_the_broker_is_away_they_wait_and_each_is_said_once(quorum_vhost: Vhost) -> None:
    woken = list[int]()
    wakes = Consuming.of_wakes(quorum_vhost.url, quorum_vhost.type, woken.append, Gate(), threads=1)
    async with wire(quorum_vhost.url) as cuttable, reading_beside_the_loop(wakes):
        with Hints(cuttable.url) as hints:
            hints.session(1)
            await until_beside_the_loop(lambda: woken == [1])
            cuttable.open = False
            cuttable.cut()
            for _ in range(20):
                for session_id in range(2, 202):
                    hints.session(session_id)
            hints.session(202)
            cuttable.open = True
            await until_beside_the_loop(lambda: 202 in woken, "the last hint")
    assert len(woken) <= 20 * 200 / 4
