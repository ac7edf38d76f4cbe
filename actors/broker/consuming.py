"""Reading queues, from start to stop: dramatiq's Worker with our broker, actors and gates.

How the processes use it, all of them from an asyncio loop in the main thread:

    # ingress
    turns = Gate()
    outage = Outage([turns], probe, clock)
    intake = Intake(ingress, store, outage)
    consuming = Consuming.of_turns(url, queue_type, TurnActors(intake, loop), turns)
    consuming.start()
    watching = asyncio.create_task(outage.watch())    # ends with StoreGone: the process ends, exit code 1
    ...
    await asyncio.to_thread(consuming.stop, 10.0)     # while the loop still runs: actors wait for it

    # worker: `wake(session_id)` is called on one of 8 threads, and may block until it is decided who has the session
    consuming = Consuming.of_wakes(url, queue_type, wake, gate, threads=8)

    # outbox: `deliver()` is called on a thread; loop.call_soon_threadsafe(deliveries.ring)
    consuming = Consuming.of_deliveries(url, queue_type, deliver, gate)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

from dramatiq import Worker

from actors.broker.consumer import Line
from actors.broker.dramatiq_broker import InsikaBroker
from actors.broker.gate import Gate
from actors.broker.messages import (
    ACCEPT_TURN,
    DELIVER,
    KEEP_DEAD,
    WAKE_SESSION,
    Delivery,
    built,
    read_delivery,
    read_session_id,
)
from actors.broker.subscription import Arrived
from actors.broker.topology import DEAD, OUTBOX, SESSIONS, TURNS
from actors.broker.turn_actors import TurnActors
from actors.environment import QueueType
from insika.producer.address import broker_address

TURNS_BATCH = 32
"""Jobs that are taken together: each costs a fraction then of what it costs alone."""
TURNS_PREFETCH = TURNS_BATCH
"""Not more than 32: with more, quorum queues (seen with RabbitMQ 3.10) bring again what was settled just before its
channel was closed. Each may be as large as the broker allows, and each counts a delivery when the connection is lost.
"""
DELIVERY_HINTS = 32
"""One look at what is due answers all of them."""
LINGER_S = 0.05
_POLL_MS = 200
"""How long threads of dramatiq sleep before they see that they are to end."""


class Consuming:
    """Reads `lines`, by the name of the actor that each is given to, on `threads` threads.

    A lost connection is made again by itself, and every message that was not settled comes again, while its first
    handling may still go on: actors are idempotent."""

    def __init__(
        self,
        amqp_url: str,
        queue_type: QueueType,
        lines: Mapping[str, tuple[Line, Callable[..., None]]],
        *,
        threads: int,
        name: str,
    ) -> None:
        address = broker_address(amqp_url, connection_name=name)
        jobs = frozenset({TURNS, DEAD})
        self._broker = InsikaBroker(address, queue_type, {actor: line for actor, (line, _) in lines.items()}, jobs)
        for actor, (line, act) in lines.items():
            self._broker.act(actor, line.queue, act)
        self._worker = Worker(self._broker, worker_threads=threads, worker_timeout=_POLL_MS)

    @classmethod
    def of_turns(cls, amqp_url: str, queue_type: QueueType, actors: TurnActors, gate: Gate) -> Self:
        """Jobs, in order, and beside them what RabbitMQ itself took off their queue. `gate` is for both."""
        turns = Line(
            TURNS,
            _read_delivery,
            lambda batch: built(TURNS, ACCEPT_TURN, batch),
            gate,
            batch=TURNS_BATCH,
            alone=_is_suspect,
            prefetch=TURNS_PREFETCH,
        )
        dead = Line(DEAD, _read_delivery, lambda batch: built(DEAD, KEEP_DEAD, *batch), gate)
        lines: dict[str, tuple[Line, Callable[..., None]]] = {
            ACCEPT_TURN: (turns, actors.accept_turn),
            KEEP_DEAD: (dead, actors.keep_dead),
        }
        return cls(amqp_url, queue_type, lines, threads=1, name="insika ingress")

    @classmethod
    def of_wakes(
        cls, amqp_url: str, queue_type: QueueType, wake: Callable[[int], None], gate: Gate, *, threads: int
    ) -> Self:
        """Hints that a session has work, for `wake(session_id)`, which runs on up to `threads` threads at once."""
        line = Line(
            SESSIONS,
            lambda arrived, settle_now: read_session_id(arrived.body),
            lambda batch: built(SESSIONS, WAKE_SESSION, *batch),
            gate,
            at_once=threads,
            prefetch=threads,
            linger_s=LINGER_S,
        )
        return cls(amqp_url, queue_type, {WAKE_SESSION: (line, wake)}, threads=threads, name="insika worker")

    @classmethod
    def of_deliveries(cls, amqp_url: str, queue_type: QueueType, deliver: Callable[[], None], gate: Gate) -> Self:
        """Hints that something is to be delivered."""
        line = Line(
            OUTBOX,
            lambda arrived, settle_now: None,
            lambda batch: built(OUTBOX, DELIVER),
            gate,
            batch=DELIVERY_HINTS,
            prefetch=DELIVERY_HINTS,
            linger_s=LINGER_S,
        )
        return cls(amqp_url, queue_type, {DELIVER: (line, deliver)}, threads=1, name="insika outbox")

    def start(self) -> None:
        """Returns at once; threads connect and read. What preflight found may have changed: then a thread says so in
        the log, and tries on."""
        self._worker.start()

    def stop(self, timeout_s: float) -> None:
        """Take no more, let actors that run come to their end, settle those messages, give the rest back, and join.

        Blocks for up to `timeout_s` seconds for the actors. A message whose actor is not through by then goes back."""
        self._broker.stop_reading()
        self._worker.stop(timeout=int(timeout_s * 1000))
        self._broker.close()


def _read_delivery(arrived: Arrived, settle_now: Callable[[], bool]) -> Delivery:
    return read_delivery(arrived.method, arrived.properties, arrived.body, settle_now)


def _is_suspect(delivery: Delivery) -> bool:
    return delivery.is_suspect
