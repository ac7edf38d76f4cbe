"""The wakes that other processes get by RabbitMQ: a session has work, a delivery is due.

A hint may be lost or come twice; the store's due times are the truth. So nobody waits for one to go out, nothing fails
over one, and of what waits here each thing is said once. They expire in the queue when nobody reads them.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Protocol, Self

import pika
import structlog

from actors.broker.topology import OUTBOX, SESSIONS
from insika.producer.connection import AmqpPublisher

EXPIRE_S = 30
UNDER_WAY = 64
"""Hints with the publisher at once; the rest waits here, where repeats fall together."""
WAITING_MAX = 10_000
CLOSE_S = 2.0

_DELIVERY = 0
"""Stands for the hint about deliveries among the ids of sessions, which begin at 1."""
_PROPERTIES = pika.BasicProperties(expiration=str(EXPIRE_S * 1000), delivery_mode=pika.DeliveryMode.Transient.value)

_log = structlog.get_logger("insika.broker")


class Publishing(Protocol):
    def publish(
        self, exchange: str, routing_key: str, body: bytes, properties: pika.BasicProperties | None = None
    ) -> Future[None]: ...

    def start(self) -> None: ...

    def close(self, timeout_s: float = ...) -> None: ...


class Hints:
    """The `Wakes` of a process of a cluster. `with Hints(amqp_url) as hints:`; its methods return at once, from any
    thread, and never raise."""

    def __init__(self, amqp_url: str, *, publisher: Publishing | None = None) -> None:
        self._publisher: Publishing = publisher or AmqpPublisher(amqp_url, name="insika hints", timeout_s=EXPIRE_S)
        self._lock = threading.Lock()
        self._waiting: dict[int, None] = {}
        self._under_way = 0
        self._handing_over = False
        self._dropped = 0

    def __enter__(self) -> Self:
        self._publisher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is under way has a moment to go out; what still waits is forgotten."""
        with self._lock:
            self._waiting.clear()
        self._publisher.close(CLOSE_S)

    def session(self, session_id: int) -> None:
        """This session has work."""
        self._add(session_id)

    def delivery(self) -> None:
        """Something is to be delivered."""
        self._add(_DELIVERY)

    def _add(self, what: int) -> None:
        with self._lock:
            if what not in self._waiting and len(self._waiting) >= WAITING_MAX:
                self._dropped += 1
                return
            self._waiting[what] = None
        self._hand_over()

    def _hand_over(self) -> None:
        """One thread at a time; whoever comes meanwhile leaves it to that one, which looks again before it ends."""
        with self._lock:
            if self._handing_over:
                return
            self._handing_over = True
        while (what := self._next()) is not None:
            try:
                sent = self._publish(what)
            except Exception as error:
                _log.error("hint not published", exc_info=error)
                self._less_under_way()
                continue
            sent.add_done_callback(self._went)

    def _next(self) -> int | None:
        with self._lock:
            if not self._waiting or self._under_way >= UNDER_WAY:
                self._handing_over = False
                return None
            what = next(iter(self._waiting))
            del self._waiting[what]
            self._under_way += 1
            return what

    def _publish(self, what: int) -> Future[None]:
        if what == _DELIVERY:
            return self._publisher.publish("", OUTBOX, b"", _PROPERTIES)
        return self._publisher.publish("", SESSIONS, b"%d" % what, _PROPERTIES)

    def _went(self, sent: Future[None]) -> None:
        self._less_under_way()
        self._hand_over()

    def _less_under_way(self) -> None:
        with self._lock:
            self._under_way -= 1
            dropped = self._dropped if len(self._waiting) < WAITING_MAX else 0
            self._dropped -= dropped
        if dropped:
            _log.warning("hints dropped while RabbitMQ took none", count=dropped)
