"""Where the broker is. The URL holds a password: nothing here shows more of it than host, port and virtual host."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import pika

from insika.errors import InvalidConfiguration

HEARTBEAT_S = 10
CONNECT_S = 5.0
"""Seconds for one TCP connection; there may be several addresses behind one name."""
OPEN_S = 10.0
"""Seconds for one connection with all that AMQP asks for on top."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """`name` is host, port and virtual host, for people. `parameters` are pika's; they are not to be changed."""

    name: str
    parameters: pika.connection.Parameters = field(repr=False)


def broker_address(url: str, *, connection_name: str, where: str = "the address of RabbitMQ") -> BrokerAddress:
    """What an `amqp://` or `amqps://` URL says, as pika reads it; what its query does not set is set here.

    `connection_name` is what the broker lists the connection under. Raises InvalidConfiguration, without the URL.
    """
    try:
        parts = urlsplit(url)
        asked = parse_qs(parts.query)
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname or (parts.username and parts.password is None):
            raise ValueError
        parameters = pika.URLParameters(url)
    except (ValueError, TypeError, OSError, SyntaxError):
        # pika's own messages quote parts of the URL.
        problem = "must be a URL like amqp://user:password@host:5672/vhost, with %2F for the virtual host /"
        query = "; what stands behind its ? must be a parameter of pika's URLParameters" if "?" in url else ""
        raise InvalidConfiguration(where, [("url", problem + query)]) from None
    for name, value in (("heartbeat", HEARTBEAT_S), ("socket_timeout", CONNECT_S), ("stack_timeout", OPEN_S)):
        if name not in asked:
            setattr(parameters, name, value)
    parameters.client_properties = {**(parameters.client_properties or {}), "connection_name": connection_name}
    vhost = parameters.virtual_host
    return BrokerAddress(f"{parameters.host}:{parameters.port}/{'' if vhost == '/' else vhost}", parameters)
