"""The adapter over real HTTP: one request for each question, nothing out of the environment, and no word in any log."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import pytest
from aiohttp import web

from insika.choices import Thinking
from insika.clock import ManualClock
from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.messages import tool_result, user
from insika.ports import Finished, Stop, TextDelta, ToolSpec, UsageSoFar
from insika.providers.anthropic import provider as provider_module
from insika.providers.anthropic import sdk
from insika.providers.anthropic.provider import AnthropicProvider
from insika.providers.endpoint import Endpoint, Kind
from insika.providers.script import Say, Script
from tests.unit.providers.anthropic.anthropic_talk import a_request, answered, judged
from tests.unit.providers.anthropic.anthropic_world import HELLO, ORDER, World, a_world, shown, thought
from tests.vendors import AnthropicVendor, serving
from tests.vendors.anthropic.vendor import KEY
from tests.vendors.recordings import recordings
from tests.vendors.spoken import spoken
from tests.vendors.steps import Charge
from tests.vendors.troubles import Refuses

ROOT = Path(__file__).parents[4]
LEAKS = {
    "ANTHROPIC_API_KEY": "sk-ant-leaked",
    "ANTHROPIC_AUTH_TOKEN": "leaked",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    "ANTHROPIC_CUSTOM_HEADERS": "x-leaked: yes\nauthorization: Bearer leaked\nanthropic-beta: leaked",
    "ANTHROPIC_PROFILE": "leaked",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY": "leaked",
    "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "ALL_PROXY": "http://127.0.0.1:1",
}


async def test_a_whole_turn_with_a_call() -> None:
    async with a_world() as world:
        request = a_request(user("Where is my order?"), thinking=Thinking.LOW)
        events = await world.heard(request)
        said = events[-1]
        assert isinstance(said, Finished)
        assert (shown(events), thought(events)) == ("Let me look.", "They want their order.")
        assert (said.message.content, said.stop, said.measured) == ("Let me look.", Stop.CALLS, True)
        assert isinstance(events[0], UsageSoFar)
        assert events[0].usage.output == 1
        assert said.usage == world.vendor.requests[0].usage
        answer = await world.finished(answered(request, said))
        assert answer.message.content == "It left today. 😀"
        assert answer.stop is Stop.END
        assert answer.usage.cache_read > 0
        assert [seen.refusals for seen in world.vendor.requests] == [(), ()]
        assert all(seen.streamed for seen in world.vendor.requests)


async def test_a_call_that_the_output_limit_fell_into_is_cut_off() -> None:
    async with a_world() as world:
        said = await world.finished(a_request(user("a long one")))
        assert said.stop is Stop.LENGTH
        (call,) = said.message.tool_calls
        assert call.cut_off
        assert not call.arguments
        assert call.malformed is None
        following = a_request(user("a long one"), said.message, tool_result(call.id, "not run", is_error=True))
        await world.heard(following)
        assert world.vendor.requests[-1].refusals == ()


@pytest.mark.parametrize("recording", [one for one in recordings() if one.vendor == "anthropic" and one.streamed])
async def test_recorded_usage_arrives(recording: Any) -> None:
    script = Script([Charge(Say("Hello."), recording.usage)])  # type: ignore[list-item]
    async with a_world(script) as world:
        assert (await world.finished()).usage == recording.expected


async def test_each_question_is_one_request_over_the_same_connection() -> None:
    callers = set()

    async def look(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        callers.add(request.transport.get_extra_info("peername"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in AnthropicVendor(Script([])).speak(judged(HELLO), spoken(Say("Yes."))).events:
            await response.write(event)
        for _ in range(20):
            await asyncio.sleep(0)  # the message is whole over there before the body is at its end
        await response.write_eof()
        return response

    async with a_server(look) as base_url:
        provider = AnthropicProvider(Endpoint("mine", Kind.ANTHROPIC, base_url, "k"))
        for _ in range(3):
            assert shown([event async for event in provider.stream(HELLO)]) == "Yes."
        await provider.aclose()
    assert len(callers) == 1


async def test_many_are_asked_at_once() -> None:
    async with a_world() as world:
        texts = await asyncio.gather(*[world.heard(a_request(user(f"Hi {n}"))) for n in range(150)])
        assert {shown(events) for events in texts} == {"Hello there."}
        assert len(world.vendor.requests) == 150


# --- what does not come from the environment ---


async def test_nothing_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LEAKS.items():
        monkeypatch.setenv(name, value)
    async with a_world() as world:
        assert (await world.finished()).message.content == "Hello there."
        seen = world.vendor.requests[0]
        assert seen.refusals == ()
        assert "leaked" not in str(seen.headers)
        assert "anthropic-beta" not in seen.headers
        assert seen.headers["user-agent"].startswith("AsyncAnthropic/Python")


async def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LEAKS.items():
        monkeypatch.setenv(name, value)
    sent: list[dict[str, str]] = []

    async def look(request: web.Request) -> web.Response:
        sent.append({name.lower(): value for name, value in request.headers.items()})
        return web.json_response({}, status=400)

    async with a_server(look) as base_url:
        provider = AnthropicProvider(Endpoint("mine", Kind.ANTHROPIC, base_url))
        with pytest.raises(ProviderFatal):
            await World(AnthropicVendor(Script([])), provider).heard()
        await provider.aclose()
    assert not sent[0].keys() & {"authorization", "x-api-key"}


def test_without_a_base_url_the_vendors_own_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    made = sdk.Connection(Endpoint("anthropic", Kind.ANTHROPIC, key="k"))
    assert str(made._client.base_url) == "https://api.anthropic.com"
    assert made._client.max_retries == 0
    assert isinstance(made._client._client, anthropic.DefaultAioHttpClient)  # type: ignore[arg-type]


async def test_no_word_of_anybody_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_world() as world:
        await world.heard(a_request(user("my secret order")))
        world.vendor.troubles.append(Refuses(400, "my secret"))
        await world.failed(ORDER)
        world.vendor.troubles.append(Refuses(429, "my secret"))
        await world.failed(ORDER)
        assert "secret" not in caplog.text
        assert world.vendor.key not in caplog.text
        assert [record for record in caplog.records if record.name.startswith(("anthropic", "httpx"))] == []


def test_the_vendors_own_log_level_writes_no_word_either() -> None:
    """The SDK reads it when it is imported, and at its lowest it writes whole requests."""
    code = """
import asyncio
from insika.messages import user
from insika.ports import ModelRequest
from insika.providers.anthropic.provider import AnthropicProvider
from insika.providers.endpoint import Endpoint, Kind

async def ask():
    provider = AnthropicProvider(Endpoint("a", Kind.ANTHROPIC, "http://127.0.0.1:1", "my-secret"))
    try:
        async for _ in provider.stream(ModelRequest("claude-opus-5", "my secret", [user("my secret")])):
            pass
    except Exception as error:
        print(error)
    await provider.aclose()

asyncio.run(ask())
"""
    command, environment = [sys.executable, "-c", code], {**os.environ, "ANTHROPIC_LOG": "debug"}
    run = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    assert "could not be reached" in run.stdout
    assert "secret" not in run.stdout + run.stderr


def test_importing_the_adapter_imports_no_sdk() -> None:
    code = (
        "import sys, insika, insika.providers.catalog, insika.providers.anthropic.provider as p;"
        "p.AnthropicProvider(p.Endpoint('a', 'anthropic'));"
        "sys.exit(any(name.partition('.')[0] in ('anthropic', 'httpx2', 'aiohttp') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


# --- where nothing can be reached ---


@asynccontextmanager
async def a_server(look: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/messages", look)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await runner.cleanup()


async def failure_at(base_url: str) -> ProviderError:
    provider = AnthropicProvider(Endpoint("mine", Kind.ANTHROPIC, base_url, "k"), ManualClock())
    try:
        return (await World(AnthropicVendor(Script([])), provider).failed())[1]
    finally:
        await provider.aclose()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def test_a_port_that_nobody_listens_on_has_heard_nothing() -> None:
    error = await failure_at(f"http://127.0.0.1:{free_port()}")
    assert (error.action, error.sent, error.status) == (FailureAction.RETRYABLE, False, 0)
    assert "nobody took the connection" in error.message


async def test_a_name_that_nobody_has_has_heard_nothing() -> None:
    error = await failure_at("http://nobody.invalid")
    assert (error.action, error.sent) == (FailureAction.RETRYABLE, False)
    assert "name could not be resolved" in error.message


async def test_a_server_without_tls_has_heard_nothing() -> None:
    async with serving(AnthropicVendor(Script([]))) as vendor:
        error = await failure_at(vendor.base_url.replace("http:", "https:"))
    assert (error.action, error.sent) == (FailureAction.RETRYABLE, False)
    assert vendor.requests == []


async def test_a_connection_that_takes_too_long_has_carried_nothing() -> None:
    cause = aiohttp.ConnectionTimeoutError("Connection timeout to host")
    error = sdk.failure(chained(anthropic.APITimeoutError(request=None), cause), "it", ManualClock().now())  # type: ignore[arg-type]
    assert (error.sent, error.action) == (False, FailureAction.RETRYABLE)


async def test_a_certificate_that_is_not_trusted_is_told() -> None:
    key = aiohttp.client_reqrep.ConnectionKey("h", 443, True, True, None, None, None)
    cause = aiohttp.ClientConnectorCertificateError(key, ssl.CertificateError("self-signed"))
    error = sdk.failure(chained(anthropic.APIConnectionError(request=None), cause), "it", ManualClock().now())  # type: ignore[arg-type]
    assert error.sent is False
    assert "not trusted" in error.message


async def test_silence_after_the_request_has_left_may_have_been_heard() -> None:
    error = sdk.failure(anthropic.APITimeoutError(request=None), "it", ManualClock().now())  # type: ignore[arg-type]
    assert (error.sent, error.action) == (True, FailureAction.RETRYABLE)


def chained(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


# --- surprises ---


@pytest.mark.parametrize("at", ["wire_request", "read_event", "Reading"])
async def test_what_nobody_has_thought_of_is_fatal_and_not_repeated(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*args: object) -> None:
        raise KeyError("my secret")

    monkeypatch.setattr(provider_module, at, break_down)
    async with a_world() as world:
        _, error = await world.failed()
        assert isinstance(error, ProviderFatal)
        assert "KeyError" in error.message
        assert "secret" not in error.message


async def test_a_request_that_cannot_be_written_is_fatal() -> None:
    broken = ToolSpec("refund", "x", {"type": "object", "properties": {"x": object()}})
    async with a_world() as world:
        await world.heard()  # what is no JSON becomes null on the way
        assert (await world.finished(a_request(user("Hi"), tools=(broken,)))).message.content
    provider = AnthropicProvider(Endpoint("mine", Kind.ANTHROPIC, "http://127.0.0.1:1", "kéy\n"))
    with pytest.raises(ProviderError) as caught:
        await World(AnthropicVendor(Script([])), provider).heard()
    assert "kéy" not in str(caught.value)
    await provider.aclose()


# --- opening and closing ---


async def test_it_can_be_closed_at_any_time_and_used_again() -> None:
    async with a_world() as world:
        await world.provider.aclose()
        await world.heard()
        await world.provider.aclose()
        await world.provider.aclose()
        assert (await world.finished()).message.content == "Hello there."


def test_each_loop_has_connections_of_its_own() -> None:
    port = free_port()
    provider = AnthropicProvider(Endpoint("anthropic", Kind.ANTHROPIC, f"http://127.0.0.1:{port}", KEY))

    async def once(*, close: bool) -> str:
        async with serving(AnthropicVendor(Script([], afterwards=Say("Yes."))), port) as vendor:
            text = shown(await World(vendor, provider).heard(HELLO))
            if close:
                await provider.aclose()
            return text

    assert [asyncio.run(once(close=close)) for close in (True, False, True)] == ["Yes."] * 3


async def test_what_leaves_first_is_not_told_what_comes_later() -> None:
    """Whoever stops listening at the first piece has closed the stream properly."""
    async with a_world() as world:
        stream = world.provider.stream(HELLO)
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
