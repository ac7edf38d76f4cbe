"""Whether a queue is being read, as one process decides it from any of its threads.

A closed gate is no closed connection: heartbeats go on, and what this process had fetched goes back to the queue, in
order, for others to take.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Gate:
    """Closing and opening return at once, from whatever thread; the reader of the queue follows within milliseconds.
    What was handed out before it follows is still dealt with.

        gate = Gate()
        consuming = Consuming.of_wakes(amqp_url, queue_type, wake, gate, threads=8)
        runtime = Runtime(world, keeper, slots, room=gate.set)
    """

    def __init__(self, *, is_open: bool = True) -> None:
        self._is_open = is_open
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[], None], ...] = ()

    @property
    def is_open(self) -> bool:
        return self._is_open

    def open(self) -> None:
        self.set(True)

    def close(self) -> None:
        self.set(False)

    def set(self, is_open: bool) -> None:
        with self._lock:
            changed, self._is_open = self._is_open != is_open, is_open
            listeners = self._listeners
        if changed:
            for told in listeners:
                told()

    def listen(self, told: Callable[[], None]) -> None:
        """Have `told` called after each change, on the thread that made it. It must not block or raise."""
        with self._lock:
            self._listeners = (*self._listeners, told)
