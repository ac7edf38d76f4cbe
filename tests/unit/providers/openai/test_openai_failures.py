"""What a failure of a vendor comes to: its action, and what its message says and never says."""

from __future__ import annotations

from typing import Any

import pytest

from insika.clock import ManualClock
from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.messages import user
from insika.providers.endpoint import Endpoint, Kind
from insika.providers.openai.failures import Failures
from tests.unit.providers.openai.chat_cases import asked

KEY = "the-secret-key"
PROMPT = "My name is Anna Schmidt and I am in Lyon"
FAILURES = Failures(Endpoint("there", Kind.OPENAI, "https://there.example/v1", KEY), asked(user(PROMPT)), ManualClock())
A = FailureAction


def openai_error(message: str = "no", **more: Any) -> dict[str, Any]:
    return {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}


def refused(status: int, error: object = None, **headers: str) -> ProviderError:
    return FAILURES.refused(status, error, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("status", "error", "action"),
    [
        (400, openai_error(), A.FATAL),
        (400, openai_error(code="context_length_exceeded"), A.FATAL),
        (401, openai_error(code="invalid_api_key"), A.FATAL),
        (402, {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}, A.FATAL),
        (402, {"message": "no credits", "code": 402}, A.FATAL),
        (403, openai_error(code="unsupported_country_region_territory"), A.FATAL),
        (404, openai_error(code="model_not_found"), A.FATAL),
        (413, "<html>too large</html>", A.FATAL),
        (422, {"detail": "unprocessable"}, A.FATAL),
        (307, None, A.FATAL),
        (418, None, A.FATAL),
        (408, None, A.RETRYABLE),
        (409, None, A.RETRYABLE),
        (500, openai_error(type="server_error"), A.RETRYABLE),
        (502, "<html>Bad Gateway</html>", A.RETRYABLE),
        (503, {"message": "overloaded", "code": 503}, A.RETRYABLE),
        (504, None, A.RETRYABLE),
        (520, None, A.RETRYABLE),
        (429, openai_error(type="requests", code="rate_limit_exceeded"), A.RATE_LIMITED_SHORT),
        (429, openai_error(type="tokens", code="rate_limit_exceeded"), A.RATE_LIMITED_SHORT),
        (429, {"message": "slow down", "code": 429}, A.RATE_LIMITED_SHORT),
        (429, openai_error(type="insufficient_quota", code="insufficient_quota"), A.FATAL),
        (429, openai_error(type="billing_not_active", code="billing_not_active"), A.FATAL),
    ],
)
def test_an_answer_that_refuses_is_read_by_status_and_kind(status: int, error: object, action: FailureAction) -> None:
    failure = refused(status, error)
    assert (failure.action, failure.status, failure.sent) == (action, status, True)
    assert isinstance(failure, ProviderFatal) == (action is A.FATAL)
    assert failure.type == ("provider_fatal" if action is A.FATAL else "provider_unavailable")


@pytest.mark.parametrize(
    ("error", "action", "status"),
    [
        ({"message": "no", "type": "server_error"}, A.RETRYABLE, 200),
        ({"message": "no", "code": "server_error"}, A.RETRYABLE, 200),
        ({"message": "no", "code": 502}, A.RETRYABLE, 502),
        ({"message": "no", "code": "503"}, A.RETRYABLE, 503),
        ({"message": "no", "code": 429}, A.RATE_LIMITED_SHORT, 429),
        ({"message": "no", "code": 402}, A.FATAL, 402),
        ({"message": "no", "code": 400, "type": "BadRequestError"}, A.FATAL, 400),
        ({"message": "no", "type": "InternalServerError", "code": 500}, A.RETRYABLE, 500),
        ({"message": "no", "type": "tokens", "code": "rate_limit_exceeded"}, A.RATE_LIMITED_SHORT, 200),
        ({"message": "no", "type": "insufficient_quota"}, A.FATAL, 200),
        ({"message": "no", "code": "context_length_exceeded"}, A.FATAL, 200),
        ({"message": "no", "type": "weather"}, A.FATAL, 200),
        ({"message": "no", "code": 7}, A.FATAL, 200),
        ({"message": "no", "code": True}, A.FATAL, 200),
        ("a text", A.FATAL, 200),
        (None, A.FATAL, 200),
    ],
)
def test_an_error_in_mid_stream_is_read_by_its_kind_and_code(error: object, action: FailureAction, status: int) -> None:
    failure = FAILURES.gave_up(error, {})
    assert (failure.action, failure.status) == (action, status)


def test_a_wait_is_read_in_milliseconds_first() -> None:
    assert refused(429, retry_after="7").retry_after == 7.0
    assert refused(429, retry_after="7", retry_after_ms="6500").retry_after == 6.5
    assert refused(503, retry_after="3").retry_after == 3.0
    long = refused(429, retry_after="61")
    assert (long.action, long.retry_after) == (A.RATE_LIMITED_LONG, 61.0)


def test_the_time_until_a_limit_is_back_to_its_full_size_is_no_wait() -> None:
    failure = refused(429, x_ratelimit_reset_tokens="6m0s", x_ratelimit_reset_requests="120ms")
    assert (failure.action, failure.retry_after) == (A.RATE_LIMITED_SHORT, None)


def test_openrouter_says_how_long_money_is_in_flight() -> None:
    assert refused(402, {"message": "busy", "code": 402}, retry_after="5").action is A.RATE_LIMITED_SHORT


def test_a_message_says_who_what_and_under_which_id() -> None:
    error = openai_error("The model `gpt-9` does not exist", code="model_not_found")
    assert str(refused(404, error, x_request_id="req_7")) == (
        "there (https://there.example/v1) answered 404 (model_not_found, invalid_request_error): "
        "The model `gpt-9` does not exist [request req_7]"
    )
    assert str(refused(500)) == "there (https://there.example/v1) answered 500"
    raw = {"message": "Provider returned error", "code": 502, "metadata": {"raw": "upstream is down"}}
    assert str(FAILURES.gave_up(raw, {"x-generation-id": "gen-1"})) == (
        "there (https://there.example/v1) gave up in mid-stream: Provider returned error: upstream is down "
        "[request gen-1]"
    )


@pytest.mark.parametrize("where", ["message", "type", "code", "param", "raw", "text", "detail", "id"])
@pytest.mark.parametrize("secret", [KEY, f"Bearer {KEY}", PROMPT, "Anna", "Schmidt, Lyon", "<b>Anna</b>"])
def test_neither_key_nor_prompt_stands_in_a_message_wherever_a_vendor_puts_it(where: str, secret: str) -> None:
    error: Any = openai_error()
    if where == "raw":
        error["metadata"] = {"raw": secret, "headers": {"authorization": secret}}
    elif where == "text":
        error = secret
    elif where != "id":
        error[where] = secret
    headers = {"x_request_id": secret} if where == "id" else {}
    for failure in (
        refused(400, error, **headers),
        FAILURES.gave_up(error, {"x-request-id": secret} if headers else {}),
    ):
        told = str(failure.as_dict())
        assert KEY not in told
        assert not any(name in told for name in ("Anna", "Schmidt", "Lyon"))


@pytest.mark.parametrize("error", [None, [], 7, {}, {"message": None}, {"message": ["x"]}, {"code": {}}, {"type": 3}])
def test_an_error_of_no_shape_is_still_one(error: object) -> None:
    assert str(refused(500, error)) == "there (https://there.example/v1) answered 500"
