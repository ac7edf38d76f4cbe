"""Why a message was not published, for whoever wanted it published. Each says whether it may have arrived after all."""

from __future__ import annotations

from insika.errors import InsikaError


class NotPublished(InsikaError):
    """The broker has not confirmed a message.

    `may_have_arrived`: it was written to a connection and its confirmation never came, so nobody knows. Publishing it
    again under the same id is then right, and another id is wrong. `message_id` is the message's, where it had one.
    """

    type = "not_published"

    def __init__(self, message: str, *, message_id: str | None = None, may_have_arrived: bool = False) -> None:
        super().__init__(message)
        self.message_id = message_id
        self.may_have_arrived = may_have_arrived


class NotRouted(NotPublished):
    """No queue takes what was published there. It is not kept anywhere."""

    type = "not_routed"


class Refused(NotPublished):
    """The broker said no: by a negative confirmation, or by closing the channel over this one message."""

    type = "refused_by_broker"


class Unreachable(NotPublished):
    """The broker could not be reached, took nothing, or did not confirm, until the time was up."""

    type = "broker_unreachable"


class Closed(NotPublished):
    """The publisher was closed before the broker confirmed."""

    type = "publisher_closed"


class TooLarge(NotPublished):
    """More than this publisher, or the broker, takes in one message."""

    type = "message_too_large"


class TooManyWaiting(NotPublished):
    """As many messages as may wait for the broker are waiting already."""

    type = "too_many_waiting"
