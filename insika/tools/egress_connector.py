"""Connections that cannot go round the egress guard.

The name is resolved once, its addresses are judged, and the sockets are made for exactly those. Each socket is judged
again as it is made, because aiohttp asks no resolver about a host that is an address already. There is no cache, no
proxy and no connection kept for later: what was true for one request is not taken for true for the next.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from aiohttp import AddrInfoType, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from insika.policy.decision import Deny
from insika.tools.egress import Allow, EgressDenied, EgressGuard


class GuardedResolver(AbstractResolver):
    """Answers with the addresses of `inner`, all of which the guard has allowed. Raises EgressDenied otherwise."""

    def __init__(self, guard: EgressGuard, inner: AbstractResolver) -> None:
        self._guard = guard
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        addresses = _allowed(self._guard, host, [result["host"] for result in found])
        return [{**result, "host": address} for result, address in zip(found, addresses, strict=True)]

    async def close(self) -> None:
        await self._inner.close()


def guarded_connector(guard: EgressGuard, resolver: AbstractResolver) -> TCPConnector:
    """A connector for one `aiohttp.ClientSession`, which owns it; whoever made the resolver closes it. Each request
    has a connection of its own and never waits for another's. Must be made on the running loop."""

    def checked_socket(info: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = info
        _allowed(guard, "the url", [str(address[0])])
        return socket.socket(family=family, type=kind, proto=protocol)

    return TCPConnector(
        resolver=GuardedResolver(guard, resolver),
        use_dns_cache=False,
        force_close=True,
        limit=0,
        socket_factory=checked_socket,
    )


def _allowed(guard: EgressGuard, host: str, addresses: Sequence[str]) -> tuple[str, ...]:
    match guard.check_addresses(host, addresses):
        case Allow(allowed):
            return allowed
        case Deny(reason):
            raise EgressDenied(reason, field="url")
