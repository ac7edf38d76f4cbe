"""How an actor says that a message was not dealt with."""

from __future__ import annotations


class HandBack(Exception):
    """Raised by an actor of a queue of jobs: the message goes back to its place in the queue, with all that follow it,
    before anything else of that queue is handed out. Its text is a reason for the log, and quotes nothing."""
