"""HTTP tools as they run: one request each over real connections, and the truth about what became of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from insika.messages import ToolCall
from insika.settings import load_settings
from insika.tools.egress import EgressGuard
from insika.tools.http.making import http_tool
from insika.tools.http.sending import Sender
from insika.tools.invoke import OutcomeKind, ToolOutcome, refuse_call, run_tool
from insika.tools.threads import ToolThreads
from insika.tools.tool import Tool, ToolContext
from insika.turn import sentences
from tests.receivers import (
    LyingReceiver,
    answers,
    answers_without_end,
    babbles,
    closes_after_reading,
    closes_before_reading,
    never_answers,
    resets_after_reading,
)

OPEN = EgressGuard(allow_http=True, allow_private=True)
CONTEXT = ToolContext("acme", "ann", "shop", "turn-1", "call-1")
LONG_S, SHORT_S = 20.0, 0.3
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
SHOP_TOKEN = "t0ken-of-the-shop"


@dataclass
class Service:
    """Writes every request down, and answers with what it got."""

    port: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.text()
        self.seen.append(
            {
                "method": request.method,
                "target": request.raw_path,
                "headers": dict(request.headers),
                "body": json.loads(body) if body else None,
            }
        )
        return web.json_response(self.seen[-1])


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


def tool_of(
    request: dict[str, Any],
    *,
    guard: EgressGuard = OPEN,
    variables: dict[str, str] | None = None,
    resolver: Any = None,
    **described: Any,
) -> Tool:
    described = {"name": "order", "description": "d", "parameters": PARAMETERS, "request": request, **described}
    description = load_settings({"http_tools": [described]}, "x").http_tools[0]
    sender = Sender(guard, resolver=resolver) if resolver is not None else Sender(guard)
    return http_tool(description, "http_tools.0 of the settings", sender, variables or {})


async def run(tool: Tool, timeout_s: float = LONG_S, **arguments: Any) -> ToolOutcome:
    call = ToolCall("call-1", tool.name, arguments or {"id": "1234"})
    return await run_tool(tool, call, CONTEXT, timeout_s, ToolThreads())


def failed(reason: str) -> ToolOutcome:
    return ToolOutcome(OutcomeKind.ERROR, sentences.tool_failed("order", reason), is_error=True)


UNKNOWN = ToolOutcome(OutcomeKind.CUT, sentences.UNKNOWN_OUTCOME, is_error=True)


async def test_the_request_is_what_was_described_and_the_result_is_what_came_back(service: Service) -> None:
    tool = tool_of(
        {
            "method": "PUT",
            "url": service.url + "/orders/%{arguments.id}?v=1",
            "query": {"who": "%{context.session}", "q": "%{arguments.q}"},
            "headers": {
                "Idempotency-Key": "%{context.idempotency_key}",
                "X-Turn": "%{context.turn_id}/%{context.call_id}",
            },
            "body": {"id": "%{arguments.id}", "by": "%{context.agent} of %{context.tenant}"},
        },
        parameters={"type": "object", "properties": {"id": {"type": "string"}, "q": {}}, "required": ["id"]},
        response={"extract": "$.method"},
    )
    assert await run(tool, id="a/b ?ä#", q="x&y=z") == ToolOutcome(OutcomeKind.DONE, "PUT")
    (seen,) = service.seen
    assert seen["target"] == "/orders/a%2Fb%20%3F%C3%A4%23?v=1&who=ann&q=x%26y%3Dz"
    assert seen["body"] == {"id": "a/b ?ä#", "by": "shop of acme"}
    headers = seen["headers"]
    assert headers["Idempotency-Key"] == CONTEXT.idempotency_key
    assert headers["X-Turn"] == "turn-1/call-1"
    assert headers["Content-Type"] == "application/json"
    assert headers["Accept-Encoding"] == "identity"
    assert headers["Connection"] == "close"
    assert headers["User-Agent"] == f"insika/{version('insika')}"


async def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(service: Service) -> None:
    tool = tool_of({"method": "POST", "url": service.url + "/%{arguments.id}"})
    for arguments, why in (
        ({"id": 7}, "id: must be a string"),
        ({"id": "1", "x": 1}, "x: there is no such argument (there are: id)"),
        ({"id": ".."}, "id: must not lead to another path: it has . or .. as a part"),
        ({"x": "s3cret"}, "id: is required and was not given; x: there is no such argument (there are: id)"),
    ):
        refused = refuse_call(tool, ToolCall("c", "order", arguments))
        assert refused == await run(tool, **arguments)
        assert refused.content == sentences.invalid_arguments("order", why)
    assert service.seen == []


async def test_a_turn_may_end_with_the_words_of_the_settings(service: Service) -> None:
    tool = tool_of(
        {"url": service.url + "/o/%{arguments.id}"},
        halt_when={"path": "$.method", "equals": "GET", "say": "You asked at %{result.target}."},
    )
    assert await run(tool) == ToolOutcome(OutcomeKind.DONE, "You asked at /o/1234.", halts=True)


# --- secrets


SECRET = {"secret_headers": {"Authorization": "Bearer %{env.SHOP_TOKEN}"}}


async def test_a_secret_reaches_the_service_and_nobody_else(service: Service) -> None:
    tool = tool_of({"url": service.url}, variables={"SHOP_TOKEN": SHOP_TOKEN}, **SECRET)
    outcome = await run(tool)
    assert service.seen[0]["headers"]["Authorization"] == f"Bearer {SHOP_TOKEN}"
    assert '"Authorization":"Bearer ***"' in outcome.content
    assert SHOP_TOKEN not in repr((tool, outcome))
    assert SHOP_TOKEN not in str(tool.invoke.__self__.__dict__)  # type: ignore[attr-defined]


async def test_a_secret_that_is_not_set_is_a_clear_error_and_nothing_is_sent(service: Service) -> None:
    outcome = await run(tool_of({"method": "POST", "url": service.url}, **SECRET))
    assert outcome == failed("nothing was sent: the environment variable SHOP_TOKEN is not set where this tool runs")
    assert service.seen == []


async def test_an_error_page_that_repeats_the_secret_does_not_show_it() -> None:
    body = b"denied for Bearer " + SHOP_TOKEN.encode()
    async with LyingReceiver([answers(403, "Content-Type: text/plain", body=body)]) as receiver:
        outcome = await run(tool_of({"url": receiver.url}, variables={"SHOP_TOKEN": SHOP_TOKEN}, **SECRET))
    assert outcome == failed("it was answered with 403: denied for Bearer ***")


async def test_a_redirect_takes_the_secret_nowhere() -> None:
    async with (
        LyingReceiver([answers(200)]) as elsewhere,
        LyingReceiver([answers(307, f"Location: {elsewhere.url}")]) as receiver,
    ):
        outcome = await run(tool_of({"url": receiver.url}, variables={"SHOP_TOKEN": SHOP_TOKEN}, **SECRET))
    assert outcome == failed("it was answered with 307, a redirect, and redirects are not followed")
    assert elsewhere.seen == []


# --- limits


async def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    endless = answers_without_end(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + b"x" * 65536 + b"\r\n",
    )
    async with LyingReceiver([endless]) as receiver:
        outcome = await run(tool_of({"url": receiver.url}, response={"max_bytes": 1000}))
    assert outcome == failed("it was answered with 200 and with more than the 1000 bytes that may be read")


@pytest.mark.parametrize("size", [1000, 1001])
async def test_the_limit_is_the_last_length_that_is_read(size: int) -> None:
    async with LyingReceiver([answers(200, "Content-Type: text/plain", body=b"x" * size)]) as receiver:
        outcome = await run(tool_of({"url": receiver.url}, response={"max_bytes": 1000}))
    assert (outcome.kind is OutcomeKind.DONE) is (size == 1000)


async def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    packed = answers(200, "Content-Type: text/plain", "Content-Encoding: gzip", body=bomb)
    async with LyingReceiver([packed]) as receiver:
        outcome = await run(tool_of({"url": receiver.url}))
    assert outcome == failed("it was answered with 200, in an encoding that was not asked for and is not read")


async def test_no_answer_in_time_is_unknown_only_for_what_changes_the_world() -> None:
    async with LyingReceiver([never_answers]) as receiver:
        harmless = await run(tool_of({"url": receiver.url}), timeout_s=SHORT_S)
        assert harmless.content == sentences.tool_timed_out("order", SHORT_S)
        assert await run(tool_of({"method": "POST", "url": receiver.url, "timeout": SHORT_S})) == UNKNOWN
    assert len(receiver.seen) == 2


async def test_a_body_that_never_comes_is_cut_at_the_time_limit() -> None:
    async def only_a_head(connection: Any) -> None:
        await connection.read_request()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n")
        await connection.until_the_other_side_goes()

    async with LyingReceiver([only_a_head]) as receiver:
        assert await run(tool_of({"method": "POST", "url": receiver.url}), timeout_s=SHORT_S) == UNKNOWN


# --- what is certain and what is not


METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


@pytest.mark.parametrize("drops", [closes_after_reading, resets_after_reading, closes_before_reading])
async def test_exactly_one_request_is_sent_whatever_the_method(drops: Any) -> None:
    for method in METHODS:
        async with LyingReceiver([drops]) as receiver:
            outcome = await run(tool_of({"method": method, "url": receiver.url}))
        assert len(receiver.seen) == 1, method
        lost = sentences.tool_failed("order", "the connection was lost before an answer came")
        harmless = ToolOutcome(OutcomeKind.CUT, lost, is_error=True)
        assert outcome == (harmless if method in ("GET", "HEAD") else UNKNOWN), method


@pytest.mark.parametrize("babble", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 200"])
async def test_an_answer_that_is_no_http_leaves_it_unknown(babble: bytes) -> None:
    async with LyingReceiver([babbles(babble)]) as receiver:
        assert await run(tool_of({"method": "POST", "url": receiver.url})) == UNKNOWN


async def test_an_answer_that_breaks_off_was_an_answer() -> None:
    half = babbles(b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nhalf")
    async with LyingReceiver([half]) as receiver:
        outcome = await run(tool_of({"method": "POST", "url": receiver.url}))
    assert outcome == failed("it was answered with 201, but the answer broke off")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_refused_connection_is_certain_also_for_what_changes_the_world() -> None:
    outcome = await run(tool_of({"method": "POST", "url": f"http://127.0.0.1:{free_port()}/"}))
    assert outcome == failed("nothing was sent: no connection could be made")


class Resolver(AbstractResolver):
    """Gives these answers in turn, and hangs at the end of them."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> Any:
        if not self.answers:
            await asyncio.Event().wait()
        return [
            {"hostname": host, "host": a, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
            for a in self.answers.pop(0)
        ]

    async def close(self) -> None:
        return None


async def test_a_connection_that_takes_most_of_the_time_is_certainly_not_made() -> None:
    request = {"method": "POST", "url": "http://shop.example/", "timeout": SHORT_S}
    assert await run(tool_of(request, resolver=Resolver)) == failed("nothing was sent: no connection in time")


async def test_a_name_that_changes_its_mind_is_judged_each_time(service: Service) -> None:
    resolver = Resolver(["127.0.0.1"], ["169.254.169.254"])
    tool = tool_of({"url": f"http://shop.example:{service.port}/"}, resolver=lambda: resolver)
    assert (await run(tool)).kind is OutcomeKind.DONE
    refused = await run(tool)
    assert refused.kind is OutcomeKind.ERROR
    assert (
        "nothing was sent: the egress guard refused the url: shop.example leads to 169.254.169.254" in refused.content
    )
    assert len(service.seen) == 1


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "169.254.169.254"],
)
async def test_the_guard_is_at_the_door_of_every_tool(service: Service, host: str) -> None:
    tool = tool_of({"method": "DELETE", "url": f"http://{host}:{service.port}/"}, guard=EgressGuard(allow_http=True))
    outcome = await run(tool)
    assert outcome.kind is OutcomeKind.ERROR
    assert "nothing was sent: the egress guard refused the url" in outcome.content
    assert service.seen == []


async def test_http_has_to_be_allowed(service: Service) -> None:
    outcome = await run(tool_of({"url": service.url}, guard=EgressGuard(allow_private=True)))
    assert "INSIKA_EGRESS_ALLOW_HTTP" in outcome.content
    assert service.seen == []


async def test_many_tools_at_once_do_not_wait_for_each_other() -> None:
    gathered = asyncio.Barrier(60)

    async def answers_all_at_once(connection: Any) -> None:
        await connection.read_request()
        await gathered.wait()
        await connection.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with LyingReceiver([answers_all_at_once]) as receiver:
        tool = tool_of({"method": "POST", "url": receiver.url})
        outcomes = await asyncio.gather(*(run(tool) for _ in range(60)))
    assert {outcome.content for outcome in outcomes} == {sentences.answered_without_a_body(204)}
