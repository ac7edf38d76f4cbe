"""`insika receive` as a process of its own: what it takes, what it prints, and what it answers when it is told to."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from outbox.signing import body_of, signature_headers
from tests.command_line import SIGTERM, Folder, Running, folder
from tests.outbox_doubles import OTHER_SECRET, SECRET

ANSWER: dict[str, object] = {
    "type": "answer",
    "session": "ana",
    "recipient": "ana",
    "content": "It is on\nits way. \x1b[31m",
}


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Folder]:
    with folder(tmp_path) as made:
        yield made


def start(command: Folder, *arguments: str) -> tuple[Running, str]:
    running = command.start("receive", "--port", "0", *arguments)
    return running, running.until(r"Listening on (http://127\.0\.0\.1:\d+/)")[1]


def post(
    url: str, *, secret: str = SECRET, delivery_id: str = "d1", attempt: int = 1, payload: dict[str, object] = ANSWER
) -> tuple[int, str | None]:
    body = body_of(payload)
    headers = signature_headers([secret], delivery_id=delivery_id, at=datetime.now(UTC), body=body)
    request = urllib.request.Request(url, body, {**headers, "insika-attempt": str(attempt)})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, None
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Retry-After")


def test_secrets_may_come_from_the_environment_several_at_once(command: Folder):
    command.environment["INSIKA_RECEIVE_SECRETS"] = f"{SECRET} {OTHER_SECRET}"
    running, url = start(command)
    assert [post(url, secret=secret)[0] for secret in (SECRET, OTHER_SECRET)] == [200, 200]
    assert post(url, secret="whsec_" + "A" * 32)[0] == 401
    running.until("received 2 times")
    running.until("refused: ")
    assert "(verifying)" in running.printed
    assert "whsec_" not in running.printed


def test_a_secret_of_the_environment_that_is_none_is_bad_usage_and_not_shown(command: Folder):
    command.environment["INSIKA_RECEIVE_SECRETS"] = f"{SECRET} hush-hush"
    refused = command.insika("receive", "--port", "0")
    assert refused.code == 2
    assert "INSIKA_RECEIVE_SECRETS" in refused.err
    assert "hush-hush" not in refused.err


def test_each_delivery_is_one_line_and_steers_no_terminal(command: Folder):
    running, url = start(command, "--secret", SECRET)
    post(url)
    line = running.until(r"(?m)^d1.*$")[0]
    assert line == "d1  answer for ana: It is on its way. \u241b[31m"
    assert running.signal(SIGTERM) == 0


def test_an_alert_says_of_whom_and_what(command: Folder):
    running, url = start(command, "--secret", SECRET)
    data = {"window": "daily", "level": "cap", "spent": 51, "cap": 50}
    post(url, payload={"type": "budget_warning", "data": data, "meta": {}, "agent": "frugal"})
    line = running.until(r"(?m)^d1.*$")[0]
    assert line == "d1  budget_warning for frugal: daily budget, level cap: 51 of 50 tokens spent"


def test_retries_can_be_tried_out(command: Folder):
    running, url = start(command, "--status", "503", "--times", "2", "--retry-after", "1", "--json")
    assert [post(url, attempt=n) for n in (1, 2, 3)] == [(503, "1"), (503, "1"), (200, None)]
    running.until('"attempt": 3')
    lines = [json.loads(line) for line in running.printed.splitlines() if line.startswith("{")]
    assert [(it["attempt"], it["answered"], it["count"]) for it in lines] == [(1, 503, 0), (2, 503, 0), (3, 200, 1)]


@pytest.mark.parametrize("status", ["199", "600", "soon"])
def test_a_status_that_is_no_answer_is_bad_usage(command: Folder, status: str):
    assert command.insika("receive", "--port", "0", "--status", status).code == 2
