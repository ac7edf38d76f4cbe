from __future__ import annotations

import pytest

from insika.errors import InvalidConfiguration
from insika.producer.address import broker_address


@pytest.mark.parametrize(
    ("url", "name", "vhost"),
    [
        ("amqp://u:p@host", "host:5672/", "/"),
        ("amqp://u:p@host/", "host:5672/", "/"),
        ("amqp://u:p@host:1234/%2F", "host:1234/", "/"),
        ("amqp://u:p@host/shop", "host:5672/shop", "shop"),
        ("amqps://u:p@host/a%2Fb", "host:5671/a/b", "a/b"),
    ],
)
def test_a_url_says_where(url, name, vhost):
    address = broker_address(url, connection_name="test")
    assert (address.name, address.parameters.virtual_host) == (name, vhost)


def test_what_the_url_does_not_set_is_set_here():
    plain = broker_address("amqp://u:p@host/", connection_name="shop front").parameters
    assert (plain.heartbeat, plain.socket_timeout, plain.stack_timeout) == (10, 5.0, 10.0)
    assert plain.client_properties == {"connection_name": "shop front"}
    asked = broker_address("amqp://u:p@host/?heartbeat=3&stack_timeout=7", connection_name="x").parameters
    assert (asked.heartbeat, asked.socket_timeout, asked.stack_timeout) == (3, 5.0, 7.0)


def test_credentials_are_taken_as_they_are_meant():
    credentials = broker_address("amqp://us%40r:p%2Fw@host/", connection_name="x").parameters.credentials
    assert (credentials.username, credentials.password) == ("us@r", "p/w")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:5672",
        "http://u:hidden@host/",
        "amqp://",
        "amqp://u:hidden@/",
        "amqp://u:hidden@host:port/",
        "amqp://hidden@host/",
        "amqp://u:hidden@host/?heartbeat=soon",
        "amqp://u:hidden@host/?colour=blue",
        "amqp://u:hidden@host/?tcp_options={",
        "amqp://[::1/",
    ],
)
def test_what_is_no_address_is_refused_without_its_password(url):
    with pytest.raises(InvalidConfiguration) as caught:
        broker_address(url, connection_name="x")
    assert "amqp://user:password@host:5672/vhost" in caught.value.message
    assert "hidden" not in f"{caught.value.message}{caught.value.__cause__}{caught.value.problems}"


def test_an_address_shows_no_password():
    assert "hidden" not in repr(broker_address("amqp://u:hidden@host/", connection_name="x"))
