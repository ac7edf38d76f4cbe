"""How an actor says that a message was not dealt with."""

from __future__ import annotations


class HandBack(Exception):
    """Raised by an actor of a queue of jobs: what it was given goes back to its place in the queue, with all that
    follows, before anything else of that queue is handed out. Its text is a reason for the log, and quotes nothing.

    `dealt`: places in what it was given that do not go back, because they are dealt with."""

    def __init__(self, reason: str, *, dealt: frozenset[int] = frozenset()) -> None:
        super().__init__(reason)
        self.dealt = dealt
