"""Who is told that an answer was not delivered: the operators of its agent, by an alert written with that outcome.

An alert that cannot be delivered itself raises none: the store sees to that, whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from insika.clock import Clock
from insika.limits.alerts import About, new_alert
from insika.storage.operations import NewAlert
from outbox.event import settled_event
from outbox.message import Subject
from outbox.states import Decision, Failed, Uncertain

WebhookOf = Callable[[str], str | None]
"""Where the operators of this agent want to be told, as things stand now; None: nowhere."""


class DeliveryAlerts:
    """Asked before an outcome is written. `attempts` is part of the key: what an operator sends again and fails again
    is told again."""

    def __init__(self, webhook_of: WebhookOf, clock: Clock) -> None:
        self._webhook_of = webhook_of
        self._clock = clock

    def __call__(self, delivery: Subject, decision: Decision, /) -> Sequence[NewAlert]:
        if not isinstance(decision, Failed | Uncertain):
            return ()
        event = settled_event(delivery, decision, self._clock.now())
        if event is None or event.agent is None:
            return ()
        webhook = self._webhook_of(event.agent)
        if webhook is None:
            return ()
        about = About(event.agent, event.at, event.tenant or "", event.turn_id, event.session)
        key = f"delivery/{delivery.id}/{delivery.attempts}"
        return (new_alert(key, str(event.type), event.data, about, webhook),)
