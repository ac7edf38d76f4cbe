"""The dramatiq actors of the ingress process: each blocks its thread until the loop has an answer, and no longer.

One thread runs them, so that one batch of jobs is decided after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from actors.broker.handing_back import HandBack
from actors.broker.intake import Intake
from actors.broker.messages import Delivery

T = TypeVar("T")

BOUND_S = 60.0
"""Longer than the store is asked for one job; a loop that has not answered by then is not going to."""


class TurnActors:
    """`loop` runs `intake`. Their methods are called on dramatiq's threads, and raise HandBack."""

    def __init__(self, intake: Intake, loop: asyncio.AbstractEventLoop, *, bound_s: float = BOUND_S) -> None:
        self._intake = intake
        self._loop = loop
        self._bound_s = bound_s

    def accept_turn(self, deliveries: Sequence[Delivery]) -> None:
        """A suspect comes by itself."""
        delivery = deliveries[0]
        if not delivery.is_suspect:
            dealt = self._on_loop(self._intake.take_all(deliveries))
            if len(dealt) < len(deliveries):
                raise HandBack("the store does not answer", dealt=dealt)
            return
        number = self._on_loop(self._intake.keep_suspect(delivery))
        if not delivery.settle_now():
            raise HandBack("the broker did not say that it knows")
        # Whatever this does to the process, the message will not come again.
        self._on_loop(self._intake.try_suspect(delivery, number), bounded=False)

    def keep_dead(self, delivery: Delivery) -> None:
        self._on_loop(self._intake.keep_dead(delivery))

    def _on_loop(self, work: Coroutine[Any, Any, T], *, bounded: bool = True) -> T:
        try:
            answer = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise HandBack("this process is ending") from None
        try:
            return answer.result(self._bound_s if bounded else None)
        except TimeoutError:
            answer.cancel()
            self._tell_outage()
            raise HandBack(f"nothing was decided within {self._bound_s:g} s") from None
        except CancelledError:
            raise HandBack("this process is ending") from None

    def _tell_outage(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._intake.outage.began)
        except RuntimeError:
            pass  # the loop has ended, and with it all reading
