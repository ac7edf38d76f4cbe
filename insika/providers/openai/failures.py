"""What a failure of a vendor comes to: its action, and words that an operator can use. Pure.

Only the status, the vendor's own kind and code, its request id and what `vendor_words` lets through stand in a message:
never a key, a header or the prompt. `x-ratelimit-reset-*` is not read: it tells when a limit is back to its full size
(developers.openai.com/api/docs/guides/rate-limits), which is long after the next request would be taken.

Sources: developers.openai.com/api/docs/guides/error-codes; api-docs.deepseek.com/quick_start/error_codes;
openrouter.ai/docs/api/errors (`error.code` is the status, also in mid-stream; `metadata.raw` is what its own vendor
said); `{"object": "error"}` of vLLM (block/goose PR 8031); `detail` of servers that are built on FastAPI.
"""

from __future__ import annotations

from collections.abc import Mapping

from insika.clock import Clock
from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.ports import ModelRequest
from insika.providers.endpoint import Endpoint
from insika.providers.vendor_words import VendorWords
from insika.reliability.classify import action_of, retry_after_s

_REQUEST_IDS = ("x-request-id", "x-generation-id", "x-ds-trace-id")


class Failures:
    """Makes the errors of one request."""

    def __init__(self, endpoint: Endpoint, request: ModelRequest, clock: Clock) -> None:
        self._endpoint = endpoint
        self._request = request
        self._clock = clock

    def refused(self, status: int, error: object, headers: Mapping[str, str]) -> ProviderError:
        """The HTTP answer was `status`. `error`: its error object, or what else its body was. `headers` have lower-case
        names."""
        return self._told(status, error, headers, f"answered {status}")

    def gave_up(self, error: object, headers: Mapping[str, str]) -> ProviderError:
        """The stream had begun, and brought `error`."""
        return self._told(_status_in(error) or 200, error, headers, "gave up in mid-stream")

    def broke_off(self, why: str, status: int = 0) -> ProviderError:
        """What came is not a whole answer, and nobody said why. `status`: 0 when nothing had come."""
        return _error(FailureAction.RETRYABLE, f"{self._endpoint.shown} {why}", status=status)

    def unreachable(self, why: str) -> ProviderError:
        """No connection came about."""
        text = f"{self._endpoint.shown} could not be reached: {why}"
        return _error(FailureAction.RETRYABLE, text, sent=False)

    def impossible(self, why: str, status: int = 0, *, sent: bool = True) -> ProviderError:
        """Trying again cannot help."""
        return _error(FailureAction.FATAL, f"{self._endpoint.shown} {why}", status=status, sent=sent)

    def _told(self, status: int, error: object, headers: Mapping[str, str], what: str) -> ProviderError:
        kinds = _kinds(error)
        wait = retry_after_s(headers, self._clock.now())
        action = action_of(status, frozenset(kind.lower() for kind in kinds), wait)
        vendors = VendorWords(self._request, self._endpoint.key)
        named = [kind for kind in kinds if vendors.word(kind)]
        words = vendors.shown(_words(error))
        request_id = next((id for name in _REQUEST_IDS if (id := vendors.word(headers.get(name, "")))), "")
        text = f"{self._endpoint.shown} {what}"
        text += f" ({', '.join(named)})" if named else ""
        text += f": {words}" if words else ""
        text += f" [request {request_id}]" if request_id else ""
        return _error(action, text, status=status, retry_after=wait)


def _error(
    action: FailureAction, text: str, *, status: int = 0, retry_after: float | None = None, sent: bool = True
) -> ProviderError:
    kind = ProviderFatal if action is FailureAction.FATAL else ProviderError
    return kind(text, action=action, status=status, retry_after=retry_after, sent=sent)


def _kinds(error: object) -> list[str]:
    """The vendor's own words for what kind of error it is, each once."""
    if not isinstance(error, Mapping):
        return []
    given = [error.get("code"), error.get("type")]
    return list(dict.fromkeys(kind for kind in given if isinstance(kind, str)))


def _status_in(error: object) -> int:
    """0 where the error object names none."""
    code = error.get("code") if isinstance(error, Mapping) else None
    number = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
    return number if isinstance(number, int) and 400 <= number < 600 else 0


def _words(error: object) -> str:
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) and not error.lstrip().startswith("<") else ""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    said = [error.get("message"), error.get("detail"), raw]
    return ": ".join(part for part in said if isinstance(part, str) and part)
