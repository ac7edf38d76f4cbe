"""Every trouble a fake can make, as it arrives at a client that speaks plain HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from insika.providers.script import Cut, Fail, Say, Script
from tests.unit.vendors.scripts_for_vendors import SCRIPT
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, Vendor, serving
from tests.vendors.steps import Decline, Make
from tests.vendors.troubles import (
    MALFORMED,
    Breaks,
    Cuts,
    Ending,
    Garbles,
    Refuses,
    Resets,
    Stalls,
    Trouble,
    Waits,
    anthropic_resets,
    from_json,
    openai_resets,
    rate_limited,
    retry_after_values,
    to_json,
)

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
ASKS = {"role": "user", "content": "Hi"}


def a_request(vendor: Vendor) -> tuple[str, dict[str, str], dict[str, Any]]:
    key = vendor.key
    if isinstance(vendor, AnthropicVendor):
        body = {"model": "claude-haiku-4-5", "max_tokens": 100, "stream": True, "messages": [ASKS]}
        headers = {"x-api-key": key, "anthropic-version": "2026-10-21"}
        return f"{vendor.base_url}/v1/messages", headers, body
    body = {"model": "gpt-4o", "stream": True, "stream_options": {"include_usage": True}, "messages": [ASKS]}
    return f"{vendor.base_url}/chat/completions", {"authorization": f"Bearer {key}"}, body


@asynccontextmanager
async def asked(vendor: Vendor, **fields: object) -> AsyncIterator[aiohttp.ClientResponse]:
    url, headers, body = a_request(vendor)
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as client,
        client.post(url, headers=headers, json={**body, **fields}) as response,
    ):
        yield response


async def events_of(response: aiohttp.ClientResponse) -> tuple[list[str], Exception | None]:
    """The events that came whole, and how it ended."""
    got, ended = await bytes_of(response)
    return got.decode(errors="replace").split("\n\n")[:-1], ended


async def bytes_of(response: aiohttp.ClientResponse) -> tuple[bytes, Exception | None]:
    got = b""
    ended: Exception | None = None
    try:
        async for chunk in response.content.iter_any():
            got += chunk
    except (aiohttp.ClientError, ConnectionError) as error:
        ended = error
    return got, ended


@pytest.fixture(params=["anthropic", *Dialect])
async def vendor(request: pytest.FixtureRequest) -> AsyncIterator[Vendor]:
    fake = AnthropicVendor(SCRIPT) if request.param == "anthropic" else OpenAIVendor(SCRIPT, Dialect(request.param))
    async with serving(fake):
        yield fake


async def whole_stream(vendor: Vendor) -> list[str]:
    async with asked(vendor) as response:
        events, ended = await events_of(response)
    assert ended is None
    return events


async def test_a_stream_can_be_cut_after_every_event_and_in_each_way(vendor: Vendor) -> None:
    whole = await whole_stream(vendor)
    for ending in Ending:
        for after in range(len(whole) + 1):
            vendor.troubles.append(Cuts(after, ending=ending))
            async with asked(vendor) as response:
                events, ended = await events_of(response)
            assert [undated(event) for event in events] == [undated(event) for event in whole[:after]]
            assert (ended is None) == (ending is Ending.DONE)
            assert not vendor.requests[-1].finished


def undated(event: str) -> str:
    """Without the ids that differ from request to request."""
    return "".join(piece for piece in event.split('"') if not piece.startswith(("msg_", "chatcmpl-")))


async def test_a_stream_can_be_cut_in_the_middle_of_an_event(vendor: Vendor) -> None:
    vendor.troubles.append(Cuts(2, bytes=9, ending=Ending.CLOSE))
    async with asked(vendor) as response:
        got, ended = await bytes_of(response)
    assert isinstance(ended, aiohttp.ClientPayloadError)
    assert got.count(b"\n\n") == 2
    assert len(got.rpartition(b"\n\n")[2]) == 9


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
async def test_an_event_can_be_malformed(vendor: Vendor, raw: str) -> None:
    vendor.troubles.append(Garbles(1, raw))
    async with asked(vendor) as response:
        events, ended = await events_of(response)
    assert ended is None
    assert events[1] == raw.removesuffix("\n\n")


async def test_an_error_comes_in_mid_stream(vendor: Vendor) -> None:
    vendor.troubles.append(Breaks(2, message="too many cooks"))
    async with asked(vendor) as response:
        events, ended = await events_of(response)
    assert ended is None
    assert len(events) == 3
    error = json.loads(events[-1].partition("data: ")[2])["error"]
    assert error["message"] == "too many cooks"
    if isinstance(vendor, AnthropicVendor):
        assert events[-1].startswith("event: error\n")
        assert error["type"] == "overloaded_error"


async def test_a_connection_is_reset_before_the_first_byte(vendor: Vendor) -> None:
    vendor.troubles.append(Resets())
    with pytest.raises(aiohttp.ClientError):
        async with asked(vendor):
            pass
    assert [seen.status for seen in vendor.requests] == [None], "one request, and no second"


@pytest.mark.parametrize("headers_first", [False, True])
async def test_the_first_byte_waits_for_the_gate(vendor: Vendor, headers_first: bool) -> None:
    vendor.troubles.append(Waits(headers_first=headers_first))

    async def ask() -> list[str]:
        async with asked(vendor) as response:
            return (await events_of(response))[0]

    asking = asyncio.create_task(ask())
    await vendor.until(lambda: bool(vendor.requests) and vendor.requests[0].trouble is not None)
    assert vendor.requests[0].events == 0
    vendor.gate.set()
    assert len(await asking) == vendor.requests[0].events > 0


@pytest.mark.parametrize("pings", [False, True])
async def test_a_stream_that_never_ends_lasts_until_the_client_goes(vendor: Vendor, pings: bool) -> None:
    vendor.troubles.append(Stalls(1, pings=pings))
    async with asked(vendor) as response:
        got = b""
        while got.count(b"\n\n") < (4 if pings else 1):
            got += await response.content.readany()
    await vendor.until(lambda: vendor.requests[0].gone)
    assert not vendor.requests[0].finished


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529])
async def test_refusals_have_the_vendors_own_shape(vendor: Vendor, status: int) -> None:
    vendor.troubles.append(Refuses(status, "no"))
    async with asked(vendor) as response:
        body = await response.json()
    assert response.status == status
    assert body["error"]["message"] == "no"
    if isinstance(vendor, AnthropicVendor):
        assert body["type"] == "error"
        assert body["request_id"] == response.headers["request-id"]
    elif isinstance(vendor, OpenAIVendor) and vendor.dialect is Dialect.OPENROUTER:
        assert body["error"]["code"] == status
    else:
        assert set(body["error"]) == {"message", "type", "param", "code"}


async def test_a_proxy_answers_with_a_page() -> None:
    async with serving(OpenAIVendor(SCRIPT)) as vendor:
        vendor.troubles.append(Refuses(502, body="<html>Bad Gateway</html>"))
        async with asked(vendor) as response:
            assert response.status == 502
            assert response.content_type == "text/html"


@pytest.mark.parametrize(("kind", "value"), retry_after_values(NOW).items(), ids=retry_after_values(NOW))
async def test_retry_after_comes_in_every_kind(kind: str, value: str | None) -> None:
    async with serving(AnthropicVendor(SCRIPT)) as vendor:
        vendor.troubles.append(rate_limited(value))
        async with asked(vendor) as response:
            assert response.status == 429
            assert response.headers.get("retry-after") == value
            assert (await response.json())["error"]["type"] == "rate_limit_error"


async def test_the_vendors_send_their_own_reset_headers() -> None:
    async with serving(AnthropicVendor(SCRIPT)) as vendor:
        vendor.troubles.append(Refuses(429, headers=anthropic_resets(NOW)))
        async with asked(vendor) as response:
            assert response.headers["anthropic-ratelimit-input-tokens-reset"] == "2026-11-30T08:00:00Z"
    async with serving(OpenAIVendor(SCRIPT)) as openai:
        openai.troubles.append(
            Refuses(429, kind="insufficient_quota", code="insufficient_quota", headers=openai_resets())
        )
        async with asked(openai) as response:
            assert response.headers["x-ratelimit-reset-tokens"] == "6m0s"
            assert (await response.json())["error"]["code"] == "insufficient_quota"


async def test_a_script_can_make_trouble_too() -> None:
    script = Script(
        [lambda scene: {"fail": Fail("down", retry_after=3), "fatal": Fail("no", fatal=True)}.get(scene.text, CUT)]
    )
    async with serving(AnthropicVendor(script)) as vendor:
        for text, status in (("fail", 503), ("fatal", 400)):
            async with asked(vendor, messages=[{"role": "user", "content": text}]) as response:
                assert response.status == status
                assert response.headers.get("retry-after") == ("3" if status == 503 else None)
        async with asked(vendor) as response:
            events, ended = await events_of(response)
        assert ended is not None
        assert sum('"text_delta"' in event for event in events) == 2


CUT = Cut(Say("a text of several pieces"), after_chunks=2)


async def test_a_script_can_decline_and_wrap_any_trouble() -> None:
    script = Script(
        [lambda scene: Decline("I would rather") if scene.text == "decline" else Make(Breaks(0))]  # type: ignore[arg-type,return-value]
    )
    for fake, word in ((AnthropicVendor(script), "refusal"), (OpenAIVendor(script), "content_filter")):
        async with serving(fake) as vendor:
            async with asked(vendor, messages=[{"role": "user", "content": "decline"}]) as response:
                assert word in "".join((await events_of(response))[0])
            async with asked(vendor) as response:
                assert len((await events_of(response))[0]) == 1


async def test_troubles_can_be_chosen_by_request() -> None:
    async with serving(AnthropicVendor(SCRIPT)) as vendor:
        vendor.choose = lambda seen: Refuses(529) if seen.number == 1 else None
        statuses = []
        for _ in range(3):
            async with asked(vendor) as response:
                statuses.append(response.status)
        assert statuses == [200, 529, 200]


async def test_another_path_is_not_found() -> None:
    async with serving(AnthropicVendor(SCRIPT)) as vendor, aiohttp.ClientSession() as client:
        response = await client.post(f"{vendor.base_url}/v1/complete", json={})
        assert response.status == 404
        assert (await response.json())["error"]["type"] == "not_found_error"


ALL_TROUBLES: list[Trouble] = [
    Refuses(429, headers={"retry-after": "7"}),
    Resets(),
    Waits(1.5, headers_first=True),
    Cuts(3, bytes=2, ending=Ending.CLOSE),
    Stalls(2, pings=True),
    Garbles(1, "data: {}\n\n"),
    Breaks(4, kind="api_error"),
]


@pytest.mark.parametrize("trouble", ALL_TROUBLES, ids=lambda trouble: type(trouble).__name__)
def test_a_trouble_can_be_sent_to_another_process(trouble: Trouble) -> None:
    assert from_json(json.loads(json.dumps(to_json(trouble)))) == trouble


async def test_a_fake_runs_in_a_process_of_its_own() -> None:
    place = "tests.unit.vendors.scripts_for_vendors:SCRIPT"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.vendors", "anthropic", "--script", place, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        told = json.loads(await process.stdout.readline())
        body = {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": [ASKS]}
        headers = {"x-api-key": told["key"], "anthropic-version": "2026-10-21"}
        async with aiohttp.ClientSession() as client:
            await client.post(f"{told['control']}/troubles", json=[to_json(Refuses(529))])
            statuses = []
            for _ in range(2):
                async with client.post(f"{told['base_url']}/v1/messages", json=body, headers=headers) as response:
                    statuses.append(response.status)
            assert statuses == [529, 200]
            async with client.get(f"{told['control']}/requests") as response:
                seen = await response.json()
        assert [(one["number"], one["status"], one["rules"]) for one in seen] == [(0, 529, []), (1, 200, [])]
        assert told["key"] not in json.dumps(seen)
    finally:
        os.kill(process.pid, signal.SIGTERM)
    assert await process.wait() == 0
