"""What keeps a process from working with RabbitMQ, told so that a person can act on it. No URL, no password."""

from __future__ import annotations

from insika.errors import InsikaError


class BrokerAway(InsikaError):
    """Nothing answers there, or not yet. Asking again may help."""

    type = "broker_unreachable"


class BrokerRefuses(InsikaError):
    """RabbitMQ answers and will not do: unknown user, no such virtual host, no permission. Asking again cannot help."""

    type = "broker_refuses"


class QueueDiffers(InsikaError):
    """A queue or exchange exists with other arguments than this version declares; they cannot be changed in place."""

    type = "queue_differs"
