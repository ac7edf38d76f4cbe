"""Hints between the parts of one process: a session has work, a delivery is due.

Losing or repeating one must not matter: the store's due times are the truth, and the sweeper asks for them.
"""

from __future__ import annotations

from typing import Protocol


class Wakes(Protocol):
    def session(self, session_id: int) -> None: ...

    def delivery(self) -> None: ...


class Signals(Protocol):
    """Something urgent lies in the mailbox of a session that may be running anywhere: its owner should look now."""

    def publish(self, session_id: int) -> None: ...


class NoSignals:
    """Where nobody listens: owners hear of it by their next renewal."""

    def publish(self, session_id: int) -> None:
        return None


class NoWakes:
    """For a process that only writes: whoever runs the sessions will find them by their due times."""

    def session(self, session_id: int) -> None:
        return None

    def delivery(self) -> None:
        return None
