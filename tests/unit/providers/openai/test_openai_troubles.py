"""Everything that can go wrong between a vendor and us, over real HTTP: one `ProviderError`, of the right action."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from insika.clock import ManualClock
from insika.errors import FailureAction, ProviderFatal
from insika.ports import Finished, Stop, TextDelta, UsageSoFar
from insika.providers.openai import provider as provider_module
from insika.providers.openai.provider import OpenAIProvider
from insika.providers.script import Call, Say, Script
from insika.reliability.classify import MAX_WAIT_S
from tests.unit.providers.openai.chat_cases import (
    ORDER,
    Fake,
    all_of,
    answer_of,
    asked,
    endpoint_of,
    failure_of,
    said,
    speaking,
)
from tests.vendors.steps import Think
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
    openai_resets,
    rate_limited,
    retry_after_values,
)

each = pytest.mark.parametrize("fake", list(Fake))
A = FailureAction
SPOKEN = Script([Think("They want it.", Call("order_lookup", {"order": "A-17"}, text="Let me look."))])  # type: ignore[list-item]


@each
@pytest.mark.parametrize(
    ("status", "action"),
    [
        *[(status, A.FATAL) for status in (307, 400, 401, 402, 403, 404, 413, 422)],
        *[(status, A.RETRYABLE) for status in (408, 409, 500, 502, 503, 504, 529)],
        (429, A.RATE_LIMITED_SHORT),
    ],
)
async def test_every_status_has_its_action(fake: Fake, status: int, action: FailureAction) -> None:
    async with speaking(fake=fake) as (vendor, provider):
        vendor.troubles.append(Refuses(status, f"it says {ORDER}", headers={"location": vendor.base_url}))
        failure, events = await failure_of(provider, asked(fake=fake))
        assert (failure.action, failure.status, failure.sent, events) == (action, status, True, [])
        assert isinstance(failure, ProviderFatal) == (action is A.FATAL)
        assert "req_" in str(failure)
        assert len(vendor.requests) == 1
        for never in (vendor.key, "order?", "Be kind", "authorization"):
            assert never not in str(failure)
        assert failure.__context__ is failure.__cause__ is None, "nor does it drag along what has them"


WAITS = {
    "seconds": 7.0,
    "fraction": 0.5,
    "zero": 0.0,
    "just short": 60.0,
    "just long": 61.0,
    "very long": 9999.0,
    "beyond all bounds": MAX_WAIT_S,
    "date": 30.0,
    "date long ahead": 3 * 3600.0,
    "date gone by": 0.0,
    "negative": 0.0,
    "not a number": None,
    "infinite": None,
    "rubbish": None,
    "empty": None,
    "absent": None,
}


@pytest.mark.parametrize("kind", WAITS)
@pytest.mark.parametrize("status", [429, 503])
async def test_every_kind_of_retry_after_is_read(kind: str, status: int) -> None:
    """Fault 40, the adapter's part."""
    wait = WAITS[kind]
    value = retry_after_values(ManualClock().now())[kind]
    async with speaking() as (vendor, provider):
        headers = {"retry-after": value} if value is not None else {}
        vendor.troubles.append(Refuses(status, headers={**headers, **openai_resets()}))
        failure, _ = await failure_of(provider, asked())
        assert failure.retry_after == wait
        short = A.RATE_LIMITED_SHORT if status == 429 else A.RETRYABLE
        assert failure.action is (A.RATE_LIMITED_LONG if wait is not None and wait > 60 else short)


async def test_a_date_is_counted_from_the_clock_it_was_given() -> None:
    clock = ManualClock()
    value = retry_after_values(clock.now() + timedelta(minutes=5))["date"]
    async with speaking() as (vendor, _):
        provider = OpenAIProvider(endpoint_of(vendor), clock)
        for wait in (330.0, 230.0):
            vendor.troubles.append(rate_limited(value))
            assert (await failure_of(provider, asked()))[0].retry_after == wait
            clock.advance(100)
        await provider.aclose()


async def test_milliseconds_are_the_finer_word() -> None:
    async with speaking() as (vendor, provider):
        vendor.troubles.append(rate_limited("7", retry_after_ms="6200"))
        assert (await failure_of(provider, asked()))[0].retry_after == 6.2


async def test_an_account_without_money_is_fatal_though_it_is_called_a_rate_limit() -> None:
    async with speaking() as (vendor, provider):
        quota = "insufficient_quota"
        vendor.troubles.append(Refuses(429, "You exceeded your current quota", kind=quota, code=quota))
        failure, _ = await failure_of(provider, asked())
        assert (failure.action, failure.type) == (A.FATAL, "provider_fatal")
        assert "insufficient_quota" in str(failure)


@pytest.mark.parametrize(("status", "action"), [(502, A.RETRYABLE), (403, A.FATAL)])
async def test_a_page_of_a_proxy_is_not_shown(status: int, action: FailureAction) -> None:
    async with speaking() as (vendor, provider):
        vendor.troubles.append(Refuses(status, body="<html>Bad <b>Gateway</b></html>"))
        failure, _ = await failure_of(provider, asked())
        assert (failure.action, failure.status) == (action, status)
        assert "html" not in str(failure)


# --- streams that break -----------------------------------------------------------------------------------------------


async def whole(fake: Fake) -> tuple[int, int, Finished]:
    """How many events a stream has, which is the first after which the answer is whole, and the answer."""
    async with speaking(SPOKEN, fake) as (vendor, provider):
        answer = await answer_of(provider, asked(fake=fake))
        count = vendor.requests[0].events
    alone = 1 if fake is Fake.DEEPSEEK else 2  # usage in a chunk of its own
    return count, count - alone, answer


@each
@pytest.mark.parametrize("ending", list(Ending))
@pytest.mark.parametrize("part", [0, 9], ids=["between events", "within one"])
async def test_a_stream_may_be_cut_anywhere(fake: Fake, ending: Ending, part: int) -> None:
    """Fault 39, the adapter's part: nothing but deltas comes of it, and an answer only if it was whole."""
    count, whole_after, answer = await whole(fake)
    async with speaking(SPOKEN, fake) as (vendor, provider):
        for after in range(count):
            vendor.troubles.append(Cuts(after, part, ending))
            if after < whole_after:
                failure, events = await failure_of(provider, asked(fake=fake))
                assert (failure.action, failure.sent) == (A.RETRYABLE, True)
                assert failure.__context__ is None
                assert not any(isinstance(event, Finished) for event in events)
                continue
            events = await all_of(provider, asked(fake=fake))
            found = events[-1]
            assert isinstance(found, Finished)
            assert found.message.tool_calls[0].arguments == answer.message.tool_calls[0].arguments
            assert found.measured == any(isinstance(event, UsageSoFar) for event in events)
        assert len(vendor.requests) == count, "one request each"


@each
async def test_an_answer_without_its_usage_is_an_estimate(fake: Fake) -> None:
    count, whole_after, answer = await whole(fake)
    if fake is Fake.DEEPSEEK:
        return  # its usage comes with the finish reason
    async with speaking(SPOKEN, fake) as (vendor, provider):
        vendor.troubles.append(Cuts(count - 2, ending=Ending.RESET))
        found = await answer_of(provider, asked(fake=fake))
        assert (found.measured, found.stop) == (False, Stop.CALLS)
        assert found.usage.output > 0
        assert found.usage.input > 0
        assert whole_after == count - 2
        assert found.message.content == answer.message.content


@each
async def test_an_error_may_come_after_any_event(fake: Fake) -> None:
    count, _, _ = await whole(fake)
    async with speaking(SPOKEN, fake) as (vendor, provider):
        for after in range(count - 1):
            vendor.troubles.append(Breaks(after, message="the server is overloaded"))
            failure, events = await failure_of(provider, asked(fake=fake))
            assert failure.action is A.RETRYABLE
            assert not any(isinstance(event, Finished) for event in events)
            assert "overloaded" in str(failure)


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("server_error", A.RETRYABLE),
        ("rate_limit_exceeded", A.RATE_LIMITED_SHORT),
        ("insufficient_quota", A.FATAL),
        ("context_length_exceeded", A.FATAL),
        ("weather_error", A.FATAL),
    ],
)
@pytest.mark.parametrize("fake", [Fake.OPENAI, Fake.OPENROUTER])
async def test_an_error_in_mid_stream_has_its_own_action(fake: Fake, kind: str, action: FailureAction) -> None:
    async with speaking(SPOKEN, fake) as (vendor, provider):
        vendor.troubles.append(Breaks(4, kind=kind))
        failure, _ = await failure_of(provider, asked(fake=fake))
        assert failure.action is action
        assert kind in str(failure)


HARMLESS = {"an empty object", "an unknown event", "a comment"}


@each
@pytest.mark.parametrize("kind", MALFORMED)
async def test_an_event_may_be_malformed(fake: Fake, kind: str) -> None:
    count, whole_after, _ = await whole(fake)
    async with speaking(SPOKEN, fake) as (vendor, provider):
        for at in range(count):
            vendor.troubles.append(Garbles(at, MALFORMED[kind]))
            lost_the_end = at == whole_after - 1
            if at >= whole_after or (kind in HARMLESS and not lost_the_end):
                assert isinstance((await all_of(provider, asked(fake=fake)))[-1], Finished)
                continue
            failure, events = await failure_of(provider, asked(fake=fake))
            assert (failure.action, failure.sent) == (A.RETRYABLE, True)
            assert not any(isinstance(event, Finished) for event in events)
        assert len(vendor.requests) == count


async def test_bytes_that_are_no_text_are_malformed() -> None:
    async with speaking() as (vendor, provider):
        vendor.troubles.append(
            Garbles(1, 'data: {"choices": "\udcff"}\n\n'.encode("utf-8", "surrogateescape").decode("latin-1"))
        )
        failure, _ = await failure_of(provider, asked())
        assert failure.action is A.RETRYABLE


@each
async def test_a_connection_that_is_reset_before_the_first_byte_may_have_been_heard(fake: Fake) -> None:
    async with speaking(fake=fake) as (vendor, provider):
        vendor.troubles.append(Resets())
        failure, events = await failure_of(provider, asked(fake=fake))
        assert (failure.action, failure.status, failure.sent, events) == (A.RETRYABLE, 0, True, [])
        assert "broke the connection off" in str(failure)
        assert len(vendor.requests) == 1


@pytest.mark.parametrize("headers_first", [False, True])
async def test_a_slow_first_byte_is_waited_for(headers_first: bool) -> None:
    async with speaking(Script([Say("Hello.")])) as (vendor, provider):
        vendor.troubles.append(Waits(headers_first=headers_first))
        asking = asyncio.create_task(answer_of(provider, asked()))
        await vendor.until(lambda: bool(vendor.requests) and vendor.requests[0].trouble is not None)
        vendor.gate.set()
        assert (await asking).message.content == "Hello."


@each
@pytest.mark.parametrize("pings", [False, True])
async def test_closing_the_stream_closes_the_connection(fake: Fake, pings: bool) -> None:
    async with speaking(SPOKEN, fake) as (vendor, provider):
        vendor.troubles.append(Stalls(5, pings=pings))
        stream = provider.stream(asked(fake=fake))
        await anext(stream)
        await stream.aclose()
        await vendor.until(lambda: vendor.requests[0].gone)
        assert not vendor.requests[0].finished


@pytest.mark.parametrize("trouble", [Stalls(3), Stalls(3, pings=True), Waits(), Waits(headers_first=True)])
async def test_cancelling_whoever_waits_closes_the_connection(trouble: Stalls | Waits) -> None:
    async with speaking(SPOKEN) as (vendor, provider):
        vendor.troubles.append(trouble)
        asking = asyncio.create_task(all_of(provider, asked()))
        await vendor.until(lambda: bool(vendor.requests) and vendor.requests[0].trouble is not None)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await vendor.until(lambda: vendor.requests[0].gone)
        assert (await answer_of(provider, asked())).stop is Stop.CALLS, "and the next one is asked as ever"


@pytest.mark.parametrize("pings", [False, True])
async def test_the_end_of_a_whole_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch, pings: bool) -> None:
    monkeypatch.setattr(provider_module, "LAST_WORD_S", 0.02)
    count, whole_after, _ = await whole(Fake.OPENAI)
    async with speaking(SPOKEN) as (vendor, provider):
        for after in range(whole_after, count):
            vendor.troubles.append(Stalls(after, pings=pings))
            found = await answer_of(provider, asked())
            assert found.measured == (after > whole_after)
        await vendor.until(lambda: all(seen.gone for seen in vendor.requests))


async def test_a_server_that_answers_with_no_stream_is_none_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    async with speaking(Script([Say("Hello.")])) as (vendor, provider):
        read = vendor.judge

        def without_stream(seen: object, key: str | None) -> object:
            found = read(seen, key)  # type: ignore[arg-type]
            seen.body = {**seen.body, "stream": False}  # type: ignore[attr-defined]
            return found

        monkeypatch.setattr(vendor, "judge", without_stream)
        failure, _ = await failure_of(provider, asked())
        assert (failure.type, failure.status) == ("provider_fatal", 200)
        assert "base_url" in str(failure)


async def test_what_came_before_a_failure_is_deltas_alone() -> None:
    async with speaking(Script([Say("Hello there, how are you?")])) as (vendor, provider):
        vendor.troubles.append(Cuts(3))
        _, events = await failure_of(provider, asked())
        assert {type(event) for event in events} == {TextDelta}
        assert said(events) == "Hello there, h"[: len(said(events))]


def test_the_waits_are_those_of_the_fakes() -> None:
    assert set(WAITS) == set(retry_after_values(ManualClock().now()))
