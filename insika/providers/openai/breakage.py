"""Reads the exceptions of the SDK and of what lies under it: what each says of the request, in the words of `failures`.

Knows aiohttp because the SDK's transport names its exceptions too roughly: a server that hangs up after it has read the
request is a `ConnectTimeout` there, as if nothing had been sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import aiohttp
import httpx2
import openai

from insika.errors import ProviderError
from insika.providers.openai.failures import Failures
from insika.providers.openai.wording import BrokenOff, Failed, Unreadable

_NOT_CONNECTED: tuple[tuple[type[BaseException], str], ...] = (
    (aiohttp.ClientConnectorDNSError, "its name has no address"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not to be trusted"),
    (aiohttp.ClientSSLError, "it does not speak TLS as it should"),
    (aiohttp.ClientConnectorError, "it takes no connection"),
    (aiohttp.ConnectionTimeoutError, "it takes no connection in time"),
)
"""In all of them not a byte of the request has been sent (docs.aiohttp.org, "Hierarchy of exceptions")."""


def failure_of(error: Exception, failures: Failures, headers: Mapping[str, str] | None) -> ProviderError:
    """`headers`: of the answer that had begun, with lower-case names; None before it had."""
    status = 0 if headers is None else 200
    match error:
        case openai.APIStatusError():
            told = {name.lower(): value for name, value in error.response.headers.items()}
            return failures.refused(error.status_code, error.body, told)
        case openai.APIConnectionError() | httpx2.TransportError() | aiohttp.ClientError():
            return _connection(error, failures, status)
        case openai.APIError():
            return failures.gave_up(error.body, headers or {})
        case Failed():
            return failures.gave_up(error.error, headers or {})
    if headers is not None and (why := _of_the_stream(error)):
        return failures.broke_off(why, status)
    return failures.impossible(f"could not be asked: {type(error).__name__}", status)


def _of_the_stream(error: Exception) -> str:
    match error:
        case BrokenOff():
            return "ended the stream before the answer was whole"
        case Unreadable():
            return f"sent what cannot be read: {error}"
        case ValueError() | RecursionError():
            return "sent an event that is not JSON"
    return ""


def is_only_the_line(error: Exception) -> bool:
    """The connection broke or fell silent, or what it carried was garbled; the vendor has said nothing of a failure."""
    line = (openai.APIConnectionError, httpx2.TransportError, aiohttp.ClientError, TimeoutError, Unreadable, ValueError)
    return isinstance(error, line)


def _connection(error: Exception, failures: Failures, status: int) -> ProviderError:
    causes = list(_causes(error))
    if any(isinstance(cause, httpx2.UnsupportedProtocol) for cause in causes):
        return failures.impossible("has no address that can be asked: its base_url is no http(s) URL", sent=False)
    for kind, why in _NOT_CONNECTED:
        if status == 0 and any(isinstance(cause, kind) for cause in causes):
            return failures.unreachable(why)
    if any(isinstance(cause, aiohttp.ServerTimeoutError) for cause in causes):
        return failures.broke_off("fell silent", status)
    return failures.broke_off("broke the connection off", status)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
