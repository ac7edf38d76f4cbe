"""The address that was checked is the address that is connected to."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from insika.tools.egress import EgressDenied, EgressGuard
from insika.tools.egress_connector import GuardedResolver, guarded_connector

OPEN = EgressGuard(allow_http=True, allow_private=True)


class ChangingResolver(AbstractResolver):
    """Gives another answer at each call, as a hostile name server does; the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            {"hostname": host, "host": a, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
            for a in addresses
        ]

    async def close(self):
        return None


@dataclass
class Listening:
    port: int
    hits: list[str]


@pytest.fixture
async def server():
    hits: list[str] = []

    async def hit(request):
        hits.append(request.path)
        location = request.query.get("to")
        return web.Response(status=302, headers={"Location": location}) if location else web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", hit)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield Listening(runner.addresses[0][1], hits)
    await runner.cleanup()


async def get(guard, resolver, url, **options):
    async with (
        aiohttp.ClientSession(connector=guarded_connector(guard, resolver)) as session,
        session.get(url, **options) as response,
    ):
        return response.status


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(server):
    resolver = ChangingResolver(["127.0.0.1"], ["169.254.169.254"])
    assert await get(OPEN, resolver, f"http://hooks.example:{server.port}/a") == 200
    assert resolver.asked == 1
    assert server.hits == ["/a"]


async def test_the_second_request_is_judged_by_its_own_answer(server):
    resolver = ChangingResolver(["127.0.0.1"], ["169.254.169.254"])
    async with aiohttp.ClientSession(connector=guarded_connector(OPEN, resolver)) as session:
        async with session.get(f"http://hooks.example:{server.port}/a"):
            pass
        with pytest.raises(EgressDenied):
            await session.get(f"http://hooks.example:{server.port}/b")
    assert server.hits == ["/a"]


async def test_a_private_address_among_public_ones_denies_the_name(server):
    resolver = ChangingResolver(["93.184.216.34", "127.0.0.1"])
    with pytest.raises(EgressDenied, match="127"):
        await get(EgressGuard(allow_http=True), resolver, f"http://hooks.example:{server.port}/")
    assert server.hits == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]"])
async def test_an_address_in_the_url_is_judged_although_no_resolver_is_asked(server, host):
    resolver = ChangingResolver(["93.184.216.34"])
    with pytest.raises(EgressDenied):
        await get(EgressGuard(allow_http=True), resolver, f"http://{host}:{server.port}/")
    assert (resolver.asked, server.hits) == (0, [])


async def test_even_a_redirect_that_someone_follows_cannot_leave_the_guard(server):
    guard = EgressGuard(allow_http=True, allow_private=True)
    with pytest.raises(EgressDenied):
        await get(guard, ChangingResolver(["127.0.0.1"]), f"http://a.example:{server.port}/?to=http://169.254.169.254/")
    assert len(server.hits) == 1


async def test_the_resolver_gives_back_canonical_addresses():
    resolver = GuardedResolver(OPEN, ChangingResolver(["0:0:0:0:0:0:0:1"]))
    assert [found["host"] for found in await resolver.resolve("h", 80)] == ["::1"]
