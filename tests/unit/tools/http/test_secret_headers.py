"""Secrets go out in their headers and come back nowhere."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from insika.tools.http.secrets import SecretHeaders
from insika.tools.tool import ToolError

HEADERS = {"Authorization": "Bearer %{env.TOKEN}", "X-Both": "%{env.TOKEN}:%{env.OTHER}"}


def test_headers_are_filled_from_the_variables() -> None:
    secrets = SecretHeaders(HEADERS, {"TOKEN": "t0ken\n", "OTHER": "0ther"})
    assert secrets.filled() == {"Authorization": "Bearer t0ken", "X-Both": "t0ken:0ther"}
    assert "t0ken" not in repr(secrets)


@pytest.mark.parametrize("given", [{}, {"TOKEN": ""}, {"TOKEN": "  \n"}])
def test_a_variable_that_is_not_set_is_named(given: dict[str, str]) -> None:
    with pytest.raises(ToolError, match=r"nothing was sent: the environment variable TOKEN is not set"):
        SecretHeaders(HEADERS, given).filled()


def test_a_variable_that_no_header_can_carry_is_named_without_its_value() -> None:
    with pytest.raises(ToolError, match="variable TOKEN holds") as error:
        SecretHeaders(HEADERS, {"TOKEN": "s3cret\r\nX: y"}).filled()
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("secret", ["t0ken", 'a"b\\c', "p&q=r s/t", "<ä'ö>", "x\ty"])
def test_a_secret_is_hidden_however_it_is_written_down(secret: str) -> None:
    hidden = SecretHeaders({"X-K": "%{env.K}"}, {"K": secret}).hidden
    for text in (
        secret,
        json.dumps({"echo": secret}),
        json.dumps({"echo": secret}, ensure_ascii=False),
        "k=" + quote(secret, safe=""),
        secret.encode().decode("latin-1"),
    ):
        assert secret not in hidden(text)
        assert "***" in hidden(text)
        assert json.dumps(secret)[1:-1] not in hidden(text)


def test_a_secret_within_another_does_not_leave_its_rest() -> None:
    hidden = SecretHeaders(HEADERS, {"TOKEN": "abc", "OTHER": "xabcx"}).hidden
    assert hidden("xabcx abc") == "*** ***"
    assert SecretHeaders({}, {"TOKEN": "abc"}).hidden("abc") == "abc"
