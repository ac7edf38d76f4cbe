"""A client that is ours whatever the URL says, and errors that say what is wrong without quoting anybody."""

from __future__ import annotations

import pytest
from redis import exceptions

from insika.coordination.redis.connection import connect, database_number, described
from insika.errors import InvalidConfiguration

SECRET = "correct-horse"


def test_the_url_says_where_and_who_and_nothing_of_our_limits():
    client = connect(f"rediss://ops:{SECRET}@redis.internal:6380/3?socket_timeout=600&protocol=3&retry_on_timeout=True")
    said = client.connection_pool.connection_kwargs
    assert (said["host"], said["port"], said["username"], said["password"]) == ("redis.internal", 6380, "ops", SECRET)
    assert (said["protocol"], said["socket_timeout"], said["socket_connect_timeout"]) == (2, None, 1.0)
    assert said["retry"].get_retries() == 0
    assert database_number(client) == 3


def test_the_first_number_is_the_one_without_a_name():
    assert database_number(connect("redis://localhost")) == 0
    assert database_number(connect("redis://localhost?db=4")) == 4


@pytest.mark.parametrize("url", [f"redis://:{SECRET}@host:port/0", f"redis://:{SECRET}@host?health_check_interval=x"])
def test_a_url_that_cannot_be_read_is_not_quoted(url):
    with pytest.raises(InvalidConfiguration) as raised:
        connect(url)
    assert SECRET not in f"{raised.value}{raised.value.__cause__}"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "Redis does not answer within 1 s"),
        (exceptions.TimeoutError("Timeout connecting to server"), "Redis does not answer within 1 s"),
        (exceptions.ConnectionError("Error 111 connecting"), "Redis cannot be reached (ConnectionError)"),
        (ConnectionResetError(), "Redis cannot be reached (ConnectionResetError)"),
        (exceptions.AuthenticationError("invalid"), "Redis refuses (AuthenticationError)"),
        (exceptions.BusyLoadingError("is loading"), "Redis refuses (BusyLoadingError)"),
        (exceptions.ResponseError(f"WRONGTYPE of {SECRET}"), "Redis refuses (ResponseError, WRONGTYPE)"),
        (exceptions.ResponseError(f"unknown command '{SECRET}'"), "Redis refuses (ResponseError)"),
        (
            exceptions.InvalidResponse(f"Error: {SECRET}"),
            "Redis answers what cannot be read (InvalidResponse)",
        ),
        (KeyError(SECRET), "Redis answers what cannot be read (KeyError)"),
    ],
)
def test_errors_are_told_in_our_own_words(error, said):
    assert described(error) == said
