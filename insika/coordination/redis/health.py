"""Whether Redis does what it is asked, by what each line to it last met with. Told once when it fails, once when it
is well again.

Well again means: no line has failed since its last success, and that for as long as any request that was on its way
when Redis came back may still fail. Otherwise one outage would be told as many.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from datetime import datetime

import structlog

from insika.clock import Clock
from insika.coordination.listeners import Listeners
from insika.coordination.port import Health, HealthListener

SETTLED_S = 3.5
"""Longer than any request may be on its way (`stored.WAIT_S` and `connection.ANSWER_S`)."""


class RedisHealth:
    """`failed` and `worked` are for the lines, on the loop's thread; `settled_s`: how long it must have been well."""

    def __init__(self, clock: Clock, settled_s: float = SETTLED_S) -> None:
        self._clock = clock
        self._settled_s = settled_s
        self._failing: dict[str, str] = {}
        self._settling: asyncio.TimerHandle | None = None
        self._listeners = Listeners[Health]("health")
        self._log = structlog.get_logger("insika.coordination")
        self.degraded = False
        self.since: datetime | None = None
        self.reason = ""

    def listen(self, listener: HealthListener) -> AbstractContextManager[None]:
        return self._listeners.listen(listener)

    def failed(self, line: str, reason: str) -> None:
        self._failing[line] = reason
        self._stop_settling()
        self.reason = "; ".join(dict.fromkeys(self._failing.values()))
        if not self.degraded:
            self._log.warning("coordination_degraded", line=line, reason=reason)
            self._change(degraded=True)

    def worked(self, line: str) -> None:
        if self._failing.pop(line, None) is None or self._failing:
            return
        self._settling = asyncio.get_running_loop().call_later(self._settled_s, self._recovered)

    def close(self) -> None:
        """Tells nobody anything any more."""
        self._stop_settling()

    def _recovered(self) -> None:
        self._settling = None
        self._log.info("coordination_recovered", degraded_at=self.since.isoformat() if self.since else None)
        self.reason = ""
        self._change(degraded=False)

    def _change(self, *, degraded: bool) -> None:
        self.degraded, self.since = degraded, self._clock.now()
        self._listeners.tell(self)

    def _stop_settling(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
