"""What dramatiq does around each message here: the whole list, in order, with the reason for each.

What is not in it is left out on purpose. Retries loses a message when it cannot publish the delayed copy, and AgeLimit
drops old ones: what is due again is a row of the store. TimeLimit raises into a thread that may be in the middle of
anything. Pipelines, Callbacks and Results follow options in a message, and no message here may choose anything.
ShutdownNotifications raises into threads too; actors here end by themselves. Prometheus is the process's own affair.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import structlog
from dramatiq import Middleware
from dramatiq.broker import Broker, MessageProxy
from dramatiq.middleware import SkipMessage

from actors.broker.consumer import TakenMessage
from actors.broker.handing_back import HandBack

_log = structlog.get_logger("insika.broker")


class SkipWhatWentBack(Middleware):
    """A message that was waiting for a thread when its connection was lost comes again: it is not begun here."""

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if isinstance(message, TakenMessage) and message.receipt.stale:
            raise SkipMessage


class KeepWhatFailed(Middleware):
    """dramatiq settles a message whose actor raised. On a queue of jobs that would lose it: it is given back."""

    def __init__(self, queues: Collection[str]) -> None:
        self._queues = frozenset(queues)

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if exception is not None and isinstance(message, TakenMessage) and message.queue_name in self._queues:
            message.receipt.given_back = True
            if isinstance(exception, HandBack):
                message.receipt.dealt = exception.dealt


class LogFailures(Middleware):
    """One line for each failure, with nothing of the message in it."""

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if isinstance(exception, HandBack):
            _log.warning("message given back", queue=message.queue_name, reason=str(exception))
        elif exception is not None:
            _log.error("actor failed", queue=message.queue_name, actor=message.actor_name, exc_info=exception)


def middleware(jobs: Collection[str]) -> list[Middleware]:
    """`jobs`: the queues whose messages must not be lost. dramatiq runs what is done before a message in this order,
    and what is done after it in the opposite one."""
    return [
        SkipWhatWentBack(),  # first, so that nothing is done for a message that is no longer ours
        KeepWhatFailed(jobs),  # after the log line is out: what it marks is given back as soon as dramatiq is through
        LogFailures(),
    ]
