"""Reads one queue for dramatiq's Worker, on the one thread that owns the connection.

It keeps what was fetched ahead to itself and hands out no more at once than may be handled at once, so the Worker's own
queue never holds two messages of a queue that is read in order, and whatever has to be given back is here. A message is
settled when its actor has ended and did not give it back; what is not settled when the gate closes, the process stops
or the connection is lost goes back to its place in the queue.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from dramatiq.broker import Consumer, MessageProxy
from pika.adapters.blocking_connection import BlockingConnection

from actors.broker.gate import Gate
from actors.broker.kept_connection import KeptConnection
from actors.broker.messages import BuiltMessage, Unreadable
from actors.broker.subscription import Arrived, Subscription
from insika.producer.link import told

PAUSE_S = 1.0
"""Before a queue is read again whose message was given back while its gate stayed open."""
SETTLE_S = 10.0
"""How long an actor waits to be told that the broker knows."""

_log = structlog.get_logger("insika.broker")


@dataclass(frozen=True, slots=True)
class Line:
    """How one queue is read.

    `read` makes of what arrived what the actor is to be given, or raises Unreadable for what is to be dropped; it is
    itself given what settles it before its time. `build` makes the actor's message of up to `batch` of these, in the
    queue's order; one of which `alone` is true is a batch of its own. `at_once`: batches that may be with actors at the
    same time; 1 keeps the order. `prefetch`: unsettled messages in this process, at least `at_once` times `batch` for
    all of them to be full. `linger_s`: how long a closed gate may stay closed before what was fetched is given back, so
    that one that opens and closes many times a second costs nothing.
    """

    queue: str
    read: Callable[[Arrived, Callable[[], bool]], Any]
    build: Callable[[Sequence[Any]], BuiltMessage]
    gate: Gate
    batch: int = 1
    alone: Callable[[Any], bool] = lambda read: False
    at_once: int = 1
    prefetch: int = 1
    linger_s: float = 0.0


@dataclass(slots=True)
class Receipt:
    """What became of a batch that was handed out. Written by the actor's thread, before it ends. `dealt`: of one that
    was given back, the places of those that are dealt with all the same."""

    subscription: Subscription
    tags: list[int]
    given_back: bool = False
    dealt: frozenset[int] = frozenset()
    settled: bool = False

    @property
    def stale(self) -> bool:
        """It belongs to the broker again, and will come anew: here or elsewhere."""
        return self.subscription.ended


class TakenMessage(MessageProxy):
    def __init__(self, message: BuiltMessage, receipt: Receipt) -> None:
        super().__init__(message)
        self.receipt = receipt


@dataclass(slots=True)
class _Settlement:
    """Asked of the reading thread by an actor's. `known` is set when it is through, `sure` if the broker has it."""

    receipt: Receipt
    known: threading.Event | None = None
    sure: bool = field(default=False)


class QueueConsumer(Consumer):
    """`ack`, `nack` and `settle_now` are called by actors' threads, all else by the one that reads. It connects with
    the first step, and never raises for what happens to the connection."""

    def __init__(self, line: Line, connection: KeptConnection, stopping: threading.Event, timeout_s: float) -> None:
        self._line = line
        self._connection = connection
        self._stopping = stopping
        self._timeout_s = timeout_s
        self._subscription: Subscription | None = None
        self._lock = threading.Lock()
        self._in_hand = 0
        self._settlements: deque[_Settlement] = deque()
        self._returning = False
        self._unwanted_since: float | None = None
        self._resume_at = 0.0
        line.gate.listen(connection.nudge)

    def __next__(self) -> MessageProxy | None:
        """The next message, in the queue's order, or None when none may be handed out for `timeout_s`."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                connection = self._connection.get()
                self._settle()
                if connection is not None:
                    self._follow(connection)
                    if (message := self._hand_out()) is not None:
                        return message
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._connection.wait(min(left, self._until_next_change()))
            except Exception as error:
                self._lose(error)

    def ack(self, message: MessageProxy) -> None:
        """The actor has ended. What it gave back is not settled."""
        if isinstance(message, TakenMessage):
            if not message.receipt.settled:
                self._settlements.append(_Settlement(message.receipt))
            with self._lock:
                self._in_hand -= 1  # last: whoever finds none in hand also finds what there is to settle
            self._connection.nudge()

    def nack(self, message: MessageProxy) -> None:
        """Something failed before the actor began: it comes again."""
        if isinstance(message, TakenMessage):
            message.receipt.given_back = True
        self.ack(message)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Nothing to do: what is not settled goes back when this closes."""

    def close(self) -> None:
        """Settle what has ended, give back the rest, in order, and take leave. Called when nothing else runs here."""
        self._stopping.set()
        try:
            self._settle()
            self._give_back()
        except Exception as error:
            _log.debug("queue left in a hurry", queue=self._line.queue, reason=told(error))
        self._connection.close()

    def _settle_now(self, receipt: Receipt) -> bool:
        known = threading.Event()
        asked = _Settlement(receipt, known)
        self._settlements.append(asked)
        self._connection.nudge()
        known.wait(SETTLE_S)
        receipt.settled = asked.sure
        return asked.sure

    def _settle(self) -> None:
        while self._settlements:
            asked = self._settlements.popleft()
            receipt = asked.receipt
            try:
                if receipt.stale:
                    continue
                if receipt.given_back:
                    for place in receipt.dealt:
                        receipt.subscription.settle(receipt.tags[place])
                    self._returning = True
                elif asked.known is None and self._line.at_once == 1:
                    # What came before this batch is settled, so that one word is enough for all of it.
                    receipt.subscription.settle_up_to(receipt.tags[-1])
                elif asked.known is None:
                    for tag in receipt.tags:
                        receipt.subscription.settle(tag)
                else:
                    receipt.subscription.settle_surely(receipt.tags[0])
                    asked.sure = True
            finally:
                if asked.known is not None:
                    asked.known.set()

    def _follow(self, connection: BlockingConnection) -> None:
        """Read or do not, as the gate says, once nothing is in anybody's hands."""
        if self._subscription is not None:
            self._subscription.check()
        if self._wanted:
            self._unwanted_since = None
            if self._subscription is None and time.monotonic() >= self._resume_at:
                self._subscription = Subscription(connection, self._line.queue, self._line.prefetch)
                self._connection.works()
        elif self._subscription is not None:
            if self._unwanted_since is None:
                self._unwanted_since = time.monotonic()
            if self._in_hand == 0 and self._linger_left() <= 0:
                self._settle()
                self._give_back()

    @property
    def _wanted(self) -> bool:
        return self._line.gate.is_open and not self._returning and not self._stopping.is_set()

    def _linger_left(self) -> float:
        if self._returning or self._stopping.is_set() or self._unwanted_since is None:
            return 0.0
        return self._unwanted_since + self._line.linger_s - time.monotonic()

    def _until_next_change(self) -> float:
        """Seconds until something is to be done that nobody nudges about."""
        if self._subscription is None:
            return max(0.0, self._resume_at - time.monotonic()) if self._wanted else math.inf
        return max(0.0, self._linger_left()) if not self._wanted and self._in_hand == 0 else math.inf

    def _hand_out(self) -> TakenMessage | None:
        subscription = self._subscription
        if subscription is None or not self._wanted or self._in_hand >= self._line.at_once:
            return None
        receipt = Receipt(subscription, [])
        batch = self._batch(subscription, receipt)
        if not batch:
            return None
        with self._lock:
            self._in_hand += 1
        return TakenMessage(self._line.build(batch), receipt)

    def _batch(self, subscription: Subscription, receipt: Receipt) -> list[Any]:
        line, batch = self._line, list[Any]()
        while subscription.arrived and len(batch) < line.batch:
            arrived = subscription.arrived[0]
            try:
                read = line.read(arrived, functools.partial(self._settle_now, receipt))
            except Unreadable:
                _log.warning("hint dropped that says nothing", queue=line.queue, bytes=len(arrived.body))
                subscription.arrived.popleft()
                subscription.settle(arrived.method.delivery_tag)
                continue
            if line.alone(read) and batch:
                break
            subscription.arrived.popleft()
            receipt.tags.append(arrived.method.delivery_tag)
            batch.append(read)
            if line.alone(read):
                break
        return batch

    def _give_back(self) -> None:
        subscription, self._subscription = self._subscription, None
        if self._returning:
            self._returning = False
            self._resume_at = time.monotonic() + PAUSE_S
        if subscription is not None:
            subscription.give_back()

    def _lose(self, error: BaseException) -> None:
        try:
            self._give_back()  # where the connection still is: in order, before it is closed
        except Exception as worse:
            _log.debug("nothing to give back to", queue=self._line.queue, reason=told(worse))
        self._connection.lost(error)
