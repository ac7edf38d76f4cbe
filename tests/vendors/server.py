"""A fake vendor on a port of loopback: its own paths, and beside them `/_fake/...`, by which a test steers it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from typing import TypeVar

from aiohttp import web

from tests.vendors.refusals import Refusal
from tests.vendors.troubles import from_json
from tests.vendors.vendor import Vendor

V = TypeVar("V", bound=Vendor)


@contextlib.asynccontextmanager
async def serving(vendor: V, port: int = 0) -> AsyncIterator[V]:
    """The vendor on a free port of loopback, in this process, until the block ends."""
    runner = web.AppRunner(app_of(vendor), handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        listener = socket.create_server(("127.0.0.1", port))
        vendor.port = listener.getsockname()[1]
        await web.SockSite(runner, listener).start()
        yield vendor
    finally:
        vendor.gate.set()
        await runner.cleanup()


def app_of(vendor: Vendor) -> web.Application:
    async def take_troubles(request: web.Request) -> web.Response:
        vendor.troubles.extend(from_json(data) for data in await request.json())
        return web.json_response({"waiting": len(vendor.troubles)})

    async def open_gate(request: web.Request) -> web.Response:
        vendor.gate.set()
        return web.json_response({})

    async def show_requests(request: web.Request) -> web.Response:
        return web.json_response([seen.as_json() for seen in vendor.requests])

    async def elsewhere(request: web.Request) -> web.Response:
        body, headers = vendor.error(Refusal("path", f"Not found: {request.method} {request.path}", 404), "req_none")
        return web.json_response(dict(body), status=404, headers=dict(headers))

    app = web.Application(client_max_size=64 * 1024 * 1024)
    for path in vendor.paths:
        app.router.add_post(path, vendor.take)
    app.router.add_post("/_fake/troubles", take_troubles)
    app.router.add_post("/_fake/gate", open_gate)
    app.router.add_get("/_fake/requests", show_requests)
    app.router.add_route("*", "/{rest:.*}", elsewhere)
    return app
