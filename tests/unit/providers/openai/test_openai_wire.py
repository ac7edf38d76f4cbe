"""What goes over the wire and where it goes: nothing from the environment, no key but the endpoint's, and no SDK in a
process that asks no model."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from insika.clock import ManualClock
from insika.errors import FailureAction, ProviderError
from insika.ports import Finished
from insika.providers.endpoint import Dialect, Endpoint, Kind
from insika.providers.openai import provider as provider_module
from insika.providers.openai.dialects import WAYS
from insika.providers.openai.provider import OpenAIProvider
from insika.providers.script import Say, Script
from tests.unit.providers.openai.chat_cases import Fake, all_of, answer_of, asked, endpoint_of, failure_of, speaking
from tests.vendors import OpenAIVendor, serving
from tests.vendors.troubles import Refuses, Stalls

ROOT = Path(__file__).resolve().parents[4]
HELLO = Script([Say("Hello.")])
OURS = {
    "host",
    "accept",
    "accept-encoding",
    "connection",
    "content-type",
    "content-length",
    "user-agent",
    "x-stainless-retry-count",
    "x-stainless-read-timeout",
}


@pytest.fixture
def loaded_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that the SDK and what lies under it would read."""
    for name, value in {
        "OPENAI_API_KEY": "sk-of-the-environment",
        "OPENAI_ADMIN_KEY": "sk-admin",
        "OPENAI_ORG_ID": "org-secret",
        "OPENAI_PROJECT_ID": "proj-secret",
        "OPENAI_WEBHOOK_SECRET": "whsec_x",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_CUSTOM_HEADERS": "X-Secret: 1\nAuthorization: Bearer sk-custom\nOpenAI-Organization: org-custom",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "all_proxy": "http://127.0.0.1:9",
        "SSL_CERT_FILE": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.mark.usefixtures("loaded_environment")
@pytest.mark.parametrize("fake", list(Fake))
async def test_nothing_of_the_environment_leaks_to_a_vendor(fake: Fake) -> None:
    async with speaking(HELLO, fake) as (vendor, provider):
        assert (await answer_of(provider, asked(fake=fake))).message.content == "Hello."
        assert vendor.requests[0].rules == frozenset(), "the key among them"
        assert set(vendor.requests[0].headers) == OURS
        assert not any("secret" in value or "sk-" in value for value in vendor.requests[0].headers.values())


class Listening(OpenAIVendor):
    """Remembers what was sent as a key."""

    heard: list[str | None]

    def key_of(self, headers):  # type: ignore[no-untyped-def]
        self.heard = [*getattr(self, "heard", []), headers.get("authorization")]
        return super().key_of(headers)


async def heard_of(key: str) -> str | None:
    async with serving(Listening(HELLO, Fake.OLLAMA)) as vendor:
        provider = OpenAIProvider(endpoint_of(vendor, key=key))
        assert (await answer_of(provider, asked(fake=Fake.OLLAMA))).message.content == "Hello."
        await provider.aclose()
        return vendor.heard[-1]


@pytest.mark.usefixtures("loaded_environment")
async def test_an_endpoint_without_a_key_is_sent_none() -> None:
    assert await heard_of("") is None
    assert await heard_of("its-own") == "Bearer its-own"


async def test_an_endpoint_without_a_key_needs_none_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert await heard_of("") is None


async def test_the_body_is_what_the_request_says_to_the_byte() -> None:
    async with speaking(HELLO) as (vendor, provider):
        await answer_of(provider, asked())
        await answer_of(provider, asked())
        assert vendor.requests[0].raw == vendor.requests[1].raw
        assert list(json.loads(vendor.requests[0].raw)) == ["model", "tools", "messages", "stream", "stream_options"]


def test_each_vendor_has_an_address_of_its_own() -> None:
    for dialect in Dialect:
        endpoint = Endpoint("there", Kind.OPENAI, key="k", dialect=dialect)
        if WAYS[dialect].base_url:
            assert OpenAIProvider(endpoint) is not None
            continue
        with pytest.raises(ValueError, match="needs a base_url"):
            OpenAIProvider(endpoint)


# --- where nobody answers ---------------------------------------------------------------------------------------------


def a_closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def failing(base_url: str) -> ProviderError:
    provider = OpenAIProvider(Endpoint("there", Kind.OPENAI, base_url, "k"), ManualClock())
    try:
        failure, events = await failure_of(provider, asked(fake=Fake.VLLM))
    finally:
        await provider.aclose()
    assert events == []
    assert failure.__context__ is None
    return failure


async def test_nothing_was_sent_where_nobody_listens() -> None:
    failure = await failing(f"http://127.0.0.1:{a_closed_port()}/v1")
    assert (failure.action, failure.sent, failure.status) == (FailureAction.RETRYABLE, False, 0)
    assert "takes no connection" in str(failure)


async def test_nothing_was_sent_where_a_name_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object, **__: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", nobody)
    failure = await failing("http://nobody.example/v1")
    assert (failure.action, failure.sent, failure.status) == (FailureAction.RETRYABLE, False, 0)
    assert "has no address" in str(failure)


async def test_nothing_was_sent_where_tls_came_to_nothing() -> None:
    async with serving(OpenAIVendor(HELLO)) as vendor:
        failure = await failing(f"https://127.0.0.1:{vendor.port}/v1")
        assert (failure.action, failure.sent) == (FailureAction.RETRYABLE, False)
        assert vendor.requests == []


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with the openssl command")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_nothing_was_sent_where_a_certificate_is_not_to_be_trusted(self_signed: ssl.SSLContext) -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener, ssl_context=self_signed).start()
    try:
        failure = await failing(f"https://127.0.0.1:{listener.getsockname()[1]}/v1")
    finally:
        await runner.cleanup()
    assert (failure.action, failure.sent) == (FailureAction.RETRYABLE, False)
    assert "certificate" in str(failure)


@pytest.mark.parametrize("base_url", ["ftp://127.0.0.1/v1", "no address at all", "http://[::1/v1"])
async def test_an_address_that_is_none_is_fatal(base_url: str) -> None:
    failure = await failing(base_url)
    assert (failure.action, failure.sent) == (FailureAction.FATAL, False)


async def test_what_is_no_http_is_a_broken_answer() -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    async with server:
        failure = await failing(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert (failure.action, failure.sent) == (FailureAction.RETRYABLE, True)


async def test_a_redirect_is_not_followed() -> None:
    async with serving(OpenAIVendor(HELLO)) as elsewhere, speaking(HELLO) as (vendor, provider):
        vendor.troubles.append(Refuses(307, headers={"location": f"{elsewhere.base_url}/chat/completions"}))
        failure, _ = await failure_of(provider, asked())
        assert (failure.action, failure.status) == (FailureAction.FATAL, 307)
        assert elsewhere.requests == []


async def test_what_cannot_be_written_is_fatal_and_not_sent() -> None:
    async with speaking(HELLO) as (vendor, provider):
        failure, _ = await failure_of(provider, asked(instructions="half of one: \ud83d"))
        assert failure.action is FailureAction.FATAL
        assert vendor.requests == []


# --- one client, and its end ------------------------------------------------------------------------------------------


class Numbering(OpenAIVendor):
    """Remembers from where it was asked."""

    peers: list[object]

    async def take(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.peers = [*getattr(self, "peers", []), request.transport.get_extra_info("peername")]
        return await super().take(request)


async def test_a_connection_is_used_again_once_its_answer_has_been_read() -> None:
    async with serving(Numbering(HELLO)) as vendor:
        provider = OpenAIProvider(endpoint_of(vendor))
        for _ in range(3):
            await answer_of(provider, asked())
        assert len(vendor.peers) == 3
        assert len(set(vendor.peers)) == 1
        vendor.troubles.append(Stalls(2))
        stream = provider.stream(asked())
        await anext(stream)
        await stream.aclose()
        await answer_of(provider, asked())
        assert len(set(vendor.peers)) == 2, "what was left in the middle is not used again"
        await provider.aclose()


async def test_closing_breaks_what_is_under_way_and_leaves_nothing_open() -> None:
    async with speaking() as (vendor, provider):
        vendor.troubles.append(Stalls(3))
        asking = asyncio.create_task(failure_of(provider, asked()))
        await vendor.until(lambda: bool(vendor.requests) and vendor.requests[0].events == 3)
        await provider.aclose()
        failure, _ = await asking
        assert failure.action is FailureAction.RETRYABLE
        await vendor.until(lambda: vendor.requests[0].gone)
        assert isinstance((await all_of(provider, asked()))[-1], Finished), "what is asked later connects anew"


def open_sessions() -> list[object]:
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, aiohttp.ClientSession) and not one.closed]


async def test_closing_leaves_no_session_open() -> None:
    before = len(open_sessions())
    async with speaking(HELLO) as (_, provider):
        await asyncio.gather(*[answer_of(provider, asked()) for _ in range(5)])
        assert len(open_sessions()) == before + 1, "one for all of them"
        await provider.aclose()
        await provider.aclose()
        assert len(open_sessions()) == before


def test_another_loop_has_connections_of_its_own() -> None:
    async def ask(provider: OpenAIProvider | None) -> OpenAIProvider:
        async with serving(OpenAIVendor(HELLO)) as vendor:
            made = provider or OpenAIProvider(endpoint_of(vendor))
            if provider is None:
                await answer_of(made, asked())
            else:
                failure, _ = await failure_of(made, asked())
                assert failure.sent is False, "the first fake is gone"
                await made.aclose()
            return made

    asyncio.run(ask(asyncio.run(ask(None))))


async def test_a_sdk_that_cannot_be_loaded_is_a_fatal_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(endpoint: Endpoint) -> object:
        raise ImportError("no such thing")

    monkeypatch.setattr(provider_module, "_wire_to", broken)
    failure, _ = await failure_of(OpenAIProvider(Endpoint("there", Kind.OPENAI, "http://x", "k")), asked())
    assert (failure.action, failure.sent) == (FailureAction.FATAL, False)
    assert "ImportError" in str(failure)


# --- importing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "module", ["insika.providers.openai.provider", "insika.providers.catalog", "actors.cli.main", "actors.embedded"]
)
def test_who_asks_no_model_loads_no_sdk(module: str) -> None:
    code = f"import sys, {module}; print(sorted(name for name in ('openai', 'httpx2') if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_a_provider_that_was_made_and_never_asked_has_loaded_none() -> None:
    code = (
        "import sys\n"
        "from insika.providers.endpoint import *\n"
        "from insika.providers.openai.provider import OpenAIProvider\n"
        "OpenAIProvider(Endpoint('there', Kind.OPENAI, 'http://127.0.0.1:9', 'k'))\n"
        "print('openai' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr
