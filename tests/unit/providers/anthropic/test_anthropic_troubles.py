"""Everything that can go wrong between the vendor and us, over real HTTP, and what may be done about it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from insika.choices import Thinking
from insika.clock import ManualClock
from insika.errors import FailureAction, ProviderFatal
from insika.messages import user
from insika.ports import Finished, ModelRequest, UsageSoFar
from insika.reliability.classify import MAX_WAIT_S
from tests.unit.providers.anthropic.anthropic_talk import a_request
from tests.unit.providers.anthropic.anthropic_world import HELLO, ORDER, a_world, shown, thought
from tests.vendors.troubles import (
    MALFORMED,
    Breaks,
    Cuts,
    Ending,
    Garbles,
    Refuses,
    Resets,
    Stalls,
    Waits,
    rate_limited,
    retry_after_values,
)

THINKING_ORDER = replace(ORDER, thinking=Thinking.LOW)
NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
SECRET = "my mother's maiden name"
RETRYABLE, SHORT, LONG, FATAL = FailureAction
HARMLESS = ("an unknown event", "an empty data line", "a comment")
"""What is let pass. Whether what stood in its place was of weight shows by what comes then."""


@pytest.mark.parametrize(
    ("status", "action", "kind"),
    [
        (400, FATAL, "invalid_request_error"),
        (401, FATAL, "authentication_error"),
        (402, FATAL, "billing_error"),
        (403, FATAL, "permission_error"),
        (404, FATAL, "not_found_error"),
        (408, RETRYABLE, ""),
        (409, RETRYABLE, "conflict_error"),
        (413, FATAL, "request_too_large"),
        (418, FATAL, ""),
        (422, FATAL, ""),
        (429, SHORT, "rate_limit_error"),
        (500, RETRYABLE, "api_error"),
        (501, FATAL, ""),
        (502, RETRYABLE, ""),
        (503, RETRYABLE, ""),
        (504, RETRYABLE, "timeout_error"),
        (529, RETRYABLE, "overloaded_error"),
        (307, FATAL, ""),
    ],
)
async def test_each_status_says_what_may_be_done(status: int, action: FailureAction, kind: str) -> None:
    async with a_world() as world:
        headers = {"location": f"{world.vendor.base_url}/v1/messages"} if status < 400 else {}
        world.vendor.troubles.append(Refuses(status, f"no, because {SECRET}", headers=headers))
        found, error = await world.failed()
        assert found == []
        assert (error.action, error.status, error.sent) == (action, status, True)
        assert isinstance(error, ProviderFatal) == (action is FATAL)
        assert str(status) in error.message
        assert kind in error.message
        assert "request req_" in error.message
        assert SECRET not in repr(error)
        assert len(world.vendor.requests) == 1, "one request, and no second"


async def test_a_proxys_page_is_read_by_its_status() -> None:
    async with a_world() as world:
        world.vendor.troubles.append(Refuses(502, body=f"<html>Bad Gateway {SECRET}</html>"))
        _, error = await world.failed()
        assert (error.action, error.status) == (RETRYABLE, 502)
        assert SECRET not in error.message


async def test_the_place_that_the_vendor_names_is_named() -> None:
    async with a_world() as world:
        message = f"messages.4.content.0: Invalid `signature`, and {SECRET}"
        world.vendor.troubles.append(Refuses(400, message))
        _, error = await world.failed()
        assert "at messages.4.content.0 (" in error.message
        assert SECRET not in error.message


async def test_a_months_spend_that_is_used_up_is_no_rate_limit() -> None:
    async with a_world() as world:
        world.vendor.troubles.append(Refuses(429, kind="enforced_spend_limit_reached"))
        assert (await world.failed())[1].action is FATAL


WAITS = {
    "seconds": 7,
    "fraction": 0.5,
    "zero": 0,
    "just short": 60,
    "just long": 61,
    "very long": 9999,
    "beyond all bounds": MAX_WAIT_S,
    "date": 30,
    "date long ahead": 3 * 3600,
    "date gone by": 0,
    "negative": 0,
}


@pytest.mark.parametrize(("kind", "value"), retry_after_values(NOW).items(), ids=retry_after_values(NOW))
@pytest.mark.parametrize("status", [429, 529])
async def test_retry_after_of_every_kind(status: int, kind: str, value: str | None) -> None:
    async with a_world(clock=ManualClock(NOW)) as world:
        refusal = rate_limited(value)
        world.vendor.troubles.append(Refuses(status, refusal.message, headers=refusal.headers))
        _, error = await world.failed()
        assert error.retry_after == WAITS.get(kind)
        short = SHORT if status == 429 else RETRYABLE
        assert error.action is (LONG if (error.retry_after or 0) > 60 else short)
        assert len(world.vendor.requests) == 1, "the SDK waits for nothing and asks once"


@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize("request_", [HELLO, THINKING_ORDER], ids=["a text", "thinking and a call"])
async def test_a_stream_that_is_cut_anywhere_in_any_way_is_no_answer(request_: ModelRequest, ending: Ending) -> None:
    async with a_world() as world:
        whole = await world.heard(request_)
        for after in range(world.vendor.requests[0].events):
            for part in (0, 9):
                world.vendor.troubles.append(Cuts(after, bytes=part, ending=ending))
                found, error = await world.failed(request_)
                assert shown(whole).startswith(shown(found))
                assert thought(whole).startswith(thought(found))
                assert (error.action, error.status, error.sent) == (RETRYABLE, 0, True)
                told = [event for event in found if isinstance(event, UsageSoFar)]
                assert bool(told) or after == 0 or ending is not Ending.DONE
        again = await world.heard(request_)
        assert isinstance(again[-1], Finished)
        assert again[-1].message == whole[-1].message  # type: ignore[union-attr]
        assert {seen.method for seen in world.vendor.requests} == {"POST"}
        assert len(world.vendor.requests) == 2 + 2 * world.vendor.requests[0].events


async def test_a_stream_that_is_cut_behind_its_last_event_is_whole() -> None:
    async with a_world() as world:
        await world.heard()
        count = world.vendor.requests[0].events
        for ending in Ending:
            world.vendor.troubles.append(Cuts(count, ending=ending))
            assert (await world.finished()).message.content == "Hello there."


@pytest.mark.parametrize("name", [name for name in MALFORMED if name not in HARMLESS])
async def test_a_stream_with_a_malformed_event_is_no_answer(name: str) -> None:
    async with a_world() as world:
        await world.heard()
        for at in range(world.vendor.requests[0].events):
            world.vendor.troubles.append(Garbles(at, MALFORMED[name]))
            assert (await world.failed())[1].action is RETRYABLE


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_is_let_pass_breaks_only_a_stream_that_lacks_an_event_of_weight(name: str) -> None:
    async with a_world() as world:
        await world.heard()
        of_no_weight = [2, 3, 5]  # two pieces of text and a ping, of the events of this answer
        for at in range(world.vendor.requests[0].events):
            world.vendor.troubles.append(Garbles(at, MALFORMED[name]))
            if at in of_no_weight:
                assert (await world.finished()).measured
            else:
                assert (await world.failed())[1].action is RETRYABLE


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("overloaded_error", RETRYABLE),
        ("api_error", RETRYABLE),
        ("timeout_error", RETRYABLE),
        ("rate_limit_error", SHORT),
        ("invalid_request_error", FATAL),
        ("billing_error", FATAL),
        ("a_new_error", FATAL),
    ],
)
async def test_an_error_in_mid_stream_says_what_may_be_done(kind: str, action: FailureAction) -> None:
    async with a_world() as world:
        for after in range(4):
            world.vendor.troubles.append(Breaks(after, kind=kind, message=SECRET))
            _, error = await world.failed()
            assert (error.action, error.status) == (action, 0)
            assert kind in error.message
            assert "request req_" in error.message
            assert SECRET not in error.message


async def test_a_connection_that_is_reset_before_the_answer_may_have_been_heard() -> None:
    async with a_world() as world:
        world.vendor.troubles.append(Resets())
        _, error = await world.failed()
        assert (error.action, error.sent) == (RETRYABLE, True)
        assert len(world.vendor.requests) == 1


@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_slow_first_byte_is_waited_for(headers_first: bool) -> None:
    async with a_world() as world:
        world.vendor.troubles.append(Waits(headers_first=headers_first))
        asking = asyncio.create_task(world.finished())
        await world.vendor.until(lambda: bool(world.vendor.requests) and world.vendor.requests[0].trouble is not None)
        assert not asking.done()
        world.vendor.gate.set()
        assert (await asking).message.content == "Hello there."


@pytest.mark.parametrize("pings", [False, True])
async def test_closing_the_stream_closes_the_connection(pings: bool) -> None:
    async with a_world() as world:
        world.vendor.troubles.append(Stalls(3, pings=pings))
        stream = world.provider.stream(ORDER)
        async for _ in stream:
            break
        await stream.aclose()
        await world.vendor.until(lambda: world.vendor.requests[0].gone)


@pytest.mark.parametrize("trouble", [Waits(), Waits(headers_first=True), Stalls(0), Stalls(4, pings=True)])
async def test_cancelling_who_listens_closes_the_connection(trouble: Waits | Stalls) -> None:
    async with a_world() as world:
        world.vendor.troubles.append(trouble)
        asking = asyncio.create_task(world.heard())
        await world.vendor.until(lambda: bool(world.vendor.requests) and world.vendor.requests[0].trouble is not None)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await world.vendor.until(lambda: world.vendor.requests[0].gone)


async def test_a_stream_whose_end_does_not_come_is_whole_all_the_same() -> None:
    async with a_world() as world:
        await world.heard()
        world.vendor.troubles.append(Stalls(world.vendor.requests[0].events))
        async for event in world.provider.stream(a_request(user("Hi"))):
            if isinstance(event, Finished):
                break
        assert isinstance(event, Finished)


@pytest.mark.parametrize("shred", [1, 3, 100])
async def test_bytes_may_come_in_any_pieces(shred: int) -> None:
    async with a_world() as world:
        world.vendor.shred = shred
        said = await world.finished(ORDER)
        assert said.message.tool_calls[0].arguments == {"order": "A-17", "why": 'he said "now"\n😀'}
