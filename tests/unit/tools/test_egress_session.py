"""A request goes out once, straight to where it was judged, and what comes back is not unpacked."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from importlib.metadata import version

import aiohttp
import pytest

from insika.tools.egress import EgressDenied, EgressGuard
from insika.tools.egress_session import guarded_session, reason_of
from tests.receivers import (
    LyingReceiver,
    answers,
    closes_after_reading,
    closes_before_reading,
    resets_after_reading,
    resets_before_reading,
)

OPEN = EgressGuard(allow_http=True, allow_private=True)
METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]


@dataclass
class Counted:
    opened: int = 0

    def open_gate(self) -> None:
        self.opened += 1


async def ask(url, method="GET", gate=None, guard=OPEN, **options):
    resolver = aiohttp.DefaultResolver()
    try:
        async with (
            guarded_session(guard, resolver) as session,
            session.request(method, url, allow_redirects=False, trace_request_ctx=gate or Counted(), **options) as got,
        ):
            return got.status, await got.read()
    finally:
        await resolver.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "drops", [closes_after_reading, resets_after_reading, closes_before_reading, resets_before_reading]
)
async def test_a_lost_connection_is_not_made_again_whatever_the_method(method, drops):
    gate = Counted()
    async with LyingReceiver([drops]) as receiver:
        with pytest.raises(aiohttp.ClientConnectionError) as lost:
            await ask(receiver.url, method, gate, data=b"{}")
    assert (len(receiver.seen), gate.opened) == (1, 1)
    assert reason_of(lost.value) == "the connection was lost before an answer came"


async def test_a_session_without_that_care_would_send_them_twice():
    """What the rule is for. If this fails, aiohttp has changed, and the care may go."""
    async with (
        LyingReceiver([closes_after_reading]) as receiver,
        aiohttp.ClientSession() as session,
    ):
        for method in METHODS:
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.request(method, receiver.url)
        sent = [seen.head.split(" ")[0] for seen in receiver.seen]
    assert {method: sent.count(method) for method in METHODS} == {
        **dict.fromkeys(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"], 2),
        **dict.fromkeys(["POST", "PATCH"], 1),
    }


async def test_nothing_is_sent_where_the_gate_stays_shut():
    class Shut(Exception):
        pass

    class Door:
        def open_gate(self) -> None:
            raise Shut

    async with LyingReceiver([answers(200)]) as receiver:
        with pytest.raises(Shut):
            await ask(receiver.url, "PUT", Door(), data=b"{}")
    assert [seen.head for seen in receiver.seen] in ([], [""])


async def test_what_comes_compressed_is_not_unpacked():
    bomb = zlib.compress(b"\0" * 10_000_000)
    async with LyingReceiver([answers(200, "Content-Encoding: deflate", body=bomb)]) as receiver:
        assert await ask(receiver.url) == (200, bomb)


async def test_no_cookie_comes_back_and_no_redirect_is_followed():
    async with LyingReceiver([answers(302, "Location: /elsewhere", "Set-Cookie: a=b")]) as receiver:
        assert (await ask(receiver.url))[0] == 302
        assert (await ask(receiver.url))[0] == 302
    assert [seen.header("cookie") for seen in receiver.seen] == [None, None]


async def test_neither_a_proxy_nor_a_password_of_the_environment_is_used(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    async with LyingReceiver([answers(200)]) as proxy, LyingReceiver([answers(201)]) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await ask(receiver.url))[0] == 201
    assert proxy.seen == []
    assert receiver.seen[0].header("authorization") is None
    assert receiver.seen[0].header("user-agent") == f"insika/{version('insika')}"


async def test_the_guard_is_asked():
    async with LyingReceiver([answers(200)]) as receiver:
        with pytest.raises(EgressDenied):
            await ask(receiver.url, guard=EgressGuard(allow_http=True))
    assert receiver.seen == []
