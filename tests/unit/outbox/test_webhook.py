"""What can be known of one request, over real connections."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from importlib.metadata import version

import pytest
from aiohttp.abc import AbstractResolver

from insika.clock import ManualClock
from insika.tools.egress import EgressGuard
from outbox.states import Answered, Forbidden, NotSent, Unknown
from outbox.webhook import Attempt, Webhook
from tests.receivers import (
    LyingReceiver,
    answers,
    answers_without_end,
    babbles,
    closes_after_reading,
    closes_before_reading,
    never_answers,
    resets_after_reading,
    resets_before_reading,
)

OPEN = EgressGuard(allow_http=True, allow_private=True)
LONG_S, SHORT_S = 20.0, 0.3


async def post(url, *, guard=OPEN, timeout_s=LONG_S, attempt=None, body=b'{"a":1}', headers=None, **options):
    attempt = attempt or Attempt(may_start=lambda: True)
    async with Webhook(guard, ManualClock(), **options) as webhook:
        return await webhook.post(url, headers or {}, body, timeout_s=timeout_s, attempt=attempt)


async def post_to(*behaviours, timeout_s=LONG_S, **options):
    async with LyingReceiver(list(behaviours)) as receiver:
        result = await post(receiver.url, timeout_s=timeout_s, **options)
    return result, receiver


@pytest.mark.parametrize("status", [200, 204, 302, 404, 410, 429, 500, 502, 503, 504, 999])
async def test_the_status_is_what_is_known(status):
    result, receiver = await post_to(answers(status))
    assert result == Answered(status)
    assert len(receiver.seen) == 1


async def test_the_request_is_what_was_given():
    _, receiver = await post_to(answers(200), headers={"webhook-id": "d1", "content-type": "application/json"})
    (seen,) = receiver.seen
    assert seen.head.startswith("POST /hook HTTP/1.1\r\n")
    assert (seen.header("webhook-id"), seen.header("content-type")) == ("d1", "application/json")
    assert seen.header("content-length") == "7"
    assert seen.header("user-agent") == f"insika/{version('insika')}"
    assert seen.body == b'{"a":1}'


@pytest.mark.parametrize(
    ("header", "wanted_s"),
    [("7", 7.0), ("Tue, 01 Jan 2030 00:01:00 GMT", 60.0), ("soon", None), ("-5", None), ("", None)],
)
async def test_retry_after_is_read(header, wanted_s):
    result, _ = await post_to(answers(503, f"Retry-After: {header}"))
    assert result == Answered(503, wanted_s)


@pytest.mark.parametrize(
    "behaviour",
    [
        resets_after_reading,
        closes_after_reading,
        closes_before_reading,
        resets_before_reading,
        babbles(b"SSH-2.0-OpenSSH_9.2\r\n"),
        babbles(b"HTTP/1.1 200"),
        babbles(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n"),
        babbles(b"HTTP/1.1 abc OK\r\n\r\n"),
        babbles(b"HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\n"),
        babbles(b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
async def test_a_connection_that_ends_without_a_status_leaves_it_unknown_and_is_not_tried_again(behaviour):
    result, receiver = await post_to(behaviour)
    assert isinstance(result, Unknown)
    assert len(receiver.seen) == 1


async def test_no_answer_in_time_is_unknown():
    result, receiver = await post_to(never_answers, timeout_s=SHORT_S)
    assert result == Unknown("no answer in time")
    assert receiver.seen[0].body == b'{"a":1}'


async def test_a_body_that_never_ends_does_not_hold_up_what_is_known():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    result, _ = await post_to(answers_without_end(head, b"10000\r\n" + b"x" * 65536 + b"\r\n"))
    assert result == Answered(200)


async def test_a_body_that_never_comes_does_not_either():
    async def only_a_head(connection):
        await connection.read_request()
        await connection.send(b"HTTP/1.1 503 No\r\nContent-Length: 5\r\nRetry-After: 9\r\n\r\n")
        await connection.until_the_other_side_goes()

    result, _ = await post_to(only_a_head, timeout_s=SHORT_S)
    assert result == Answered(503, 9.0)


async def test_a_body_that_breaks_off_does_not_change_the_status():
    result, _ = await post_to(babbles(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhalf"))
    assert result == Answered(200)


async def test_early_hints_are_not_the_answer():
    result, _ = await post_to(babbles(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"))
    assert result == Answered(204)


async def test_a_body_that_claims_to_be_compressed_is_not_unpacked():
    result, _ = await post_to(answers(200, "Content-Encoding: gzip", body=b"not gzip"))
    assert result == Answered(200)


async def test_every_request_has_a_connection_of_its_own():
    async with (
        LyingReceiver([answers(200, "Connection: keep-alive")]) as receiver,
        Webhook(OPEN, ManualClock()) as webhook,
    ):
        for _ in range(3):
            attempt = Attempt(may_start=lambda: True)
            await webhook.post(receiver.url, {}, b"{}", timeout_s=LONG_S, attempt=attempt)
    assert len(receiver.seen) == 3
    assert {seen.header("connection") for seen in receiver.seen} == {"close"}


async def test_many_requests_do_not_wait_for_each_other():
    gathered = asyncio.Barrier(150)

    async def answers_all_at_once(connection):
        await connection.read_request()
        await gathered.wait()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with LyingReceiver([answers_all_at_once]) as receiver, Webhook(OPEN, ManualClock()) as webhook:
        results = await asyncio.gather(
            *(
                webhook.post(receiver.url, {}, b"{}", timeout_s=LONG_S, attempt=Attempt(may_start=lambda: True))
                for _ in range(150)
            )
        )
    assert set(results) == {Answered(200)}


async def test_cookies_are_not_kept():
    async with LyingReceiver([answers(200, "Set-Cookie: a=b")]) as receiver, Webhook(OPEN, ManualClock()) as webhook:
        for _ in range(2):
            await webhook.post(receiver.url, {}, b"{}", timeout_s=LONG_S, attempt=Attempt(may_start=lambda: True))
    assert [seen.header("cookie") for seen in receiver.seen] == [None, None]


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch):
    async with LyingReceiver([answers(200)]) as proxy, LyingReceiver([answers(201)]) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert await post(receiver.url) == Answered(201)
    assert proxy.seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status):
    async with (
        LyingReceiver([answers(200)]) as elsewhere,
        LyingReceiver([answers(status, f"Location: {elsewhere.url}")]) as receiver,
    ):
        assert await post(receiver.url) == Answered(status)
    assert elsewhere.seen == []


# --- certainly not sent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_nobody_listening_is_not_sent():
    assert await post(f"http://127.0.0.1:{free_port()}/") == NotSent("no connection could be made")


async def test_a_receiver_that_speaks_no_tls_is_not_sent():
    async def speaks_plainly(connection):
        connection.seen.body = await connection.reader.read(1)
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with LyingReceiver([speaks_plainly]) as receiver:
        result = await post(f"https://127.0.0.1:{receiver.port}/")
    assert result == NotSent("no TLS connection could be made")
    assert receiver.seen[0].body == b"\x16"  # the first byte of a TLS handshake, and not of a request


@pytest.fixture
def self_signed(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with the openssl command")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    return tls


async def test_a_certificate_that_nobody_vouches_for_is_not_sent(self_signed):
    async with LyingReceiver([answers(200)], tls=self_signed) as receiver:
        result = await post(f"https://127.0.0.1:{receiver.port}/")
    assert result == NotSent("no TLS connection could be made")
    assert [seen.head for seen in receiver.seen] in ([], [""])


class Resolver(AbstractResolver):
    def __init__(self, answer):
        self.answer = answer

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        return await self.answer(host, port)

    async def close(self):
        return None


async def test_a_name_that_does_not_resolve_is_not_sent():
    async def nobody(host, port):
        raise OSError(None, "no such host")

    result = await post("http://nobody.example/", resolver=lambda: Resolver(nobody))
    assert result == NotSent("the host's name could not be resolved")


async def test_a_connection_that_takes_too_long_is_not_sent():
    async def hangs(host, port):
        await asyncio.Event().wait()

    result = await post("http://slow.example/", resolver=lambda: Resolver(hangs), connect_s=0.05)
    assert result == NotSent("no connection in time")


async def test_the_whole_time_used_up_by_connecting_is_not_sent_either():
    async def hangs(host, port):
        await asyncio.Event().wait()

    result = await post("http://slow.example/", resolver=lambda: Resolver(hangs), timeout_s=0.05)
    assert isinstance(result, NotSent)


async def test_a_request_that_may_not_start_any_more_sends_no_byte():
    async with LyingReceiver([never_answers]) as receiver:
        result = await post(receiver.url, attempt=Attempt(may_start=lambda: False))
        assert isinstance(result, NotSent)
    assert [seen.head for seen in receiver.seen] == [""]


async def test_the_question_whether_it_may_start_is_asked_when_the_connection_stands():
    connected = []

    async def notes(connection):
        connected.append(True)
        await answers(200)(connection)

    async with LyingReceiver([notes]) as receiver:

        async def slow(host, port):
            asked.append("resolving")
            return [
                {"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
            ]

        asked: list[str] = []
        attempt = Attempt(may_start=lambda: asked.append("may start?") is None)
        await post(f"http://slow.example:{receiver.port}/", resolver=lambda: Resolver(slow), attempt=attempt)
    assert asked == ["resolving", "may start?"]


async def test_a_request_that_is_cut_short_tells_what_may_have_happened():
    async with LyingReceiver([never_answers]) as receiver, Webhook(OPEN, ManualClock()) as webhook:
        opened = asyncio.Event()
        attempt = Attempt(may_start=lambda: opened.set() is None)
        sending = asyncio.create_task(webhook.post(receiver.url, {}, b"{}", timeout_s=LONG_S, attempt=attempt))
        assert attempt.known("cut") == NotSent("cut")
        await opened.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert attempt.known("cut") == Unknown("cut")


# --- forbidden


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"])
async def test_a_private_receiver_is_forbidden_in_every_spelling_and_gets_no_connection(host):
    async with LyingReceiver([answers(200)]) as receiver:
        result = await post(f"http://{host}:{receiver.port}/", guard=EgressGuard(allow_http=True))
    assert isinstance(result, Forbidden)
    assert receiver.seen == []


async def test_plain_http_is_forbidden_by_default():
    async with LyingReceiver([answers(200)]) as receiver:
        assert isinstance(await post(receiver.url, guard=EgressGuard(allow_private=True)), Forbidden)
    assert receiver.seen == []


async def test_no_reason_repeats_the_url_or_what_the_receiver_wrote():
    results = [
        (await post_to(babbles(b"top-secret answer")))[0],
        (await post_to(resets_after_reading))[0],
        await post(f"http://127.0.0.1:{free_port()}/top-secret"),
        await post("http://user:top-secret@127.0.0.1/"),
        await post("http://127.1/top-secret"),
    ]
    assert not any("top-secret" in str(result) for result in results)
