from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import pytest

from insika.errors import CircuitOpen, FailureAction, LeaseLost, ProviderError, ProviderFatal
from insika.messages import NO_USAGE, Usage, assistant, user
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta, ThinkingDelta, UsageSoFar
from insika.reliability.attempts import Decision, FailedAttempt, GiveUp
from insika.turn.log import Superseded
from insika.turn.side_request import Heard, SideRequest

QUESTION = ModelRequest("mini", "Sort this.", (user("hello"),), provider="openai")
COST = Usage(input=10, output=2)
WHOLE = Finished(assistant("order"), COST)


class Policy:
    """Keeps what it is told. `asks`: the model that it names instead of the one that was meant."""

    def __init__(self, asks: str = QUESTION.reference, timeout_s: float = 60.0) -> None:
        self.asks, self.timeout_s = asks, timeout_s
        self.told: list[str] = []

    async def before(self, model: str, failed: Sequence[FailedAttempt]) -> str:
        self.told.append("before")
        if not self.asks:
            raise CircuitOpen("all of them are open")
        return self.asks

    async def after(self, failed: Sequence[FailedAttempt], left_s: float) -> Decision:
        assert left_s > 0
        self.told.append("after")
        return GiveUp(failed[-1].error)

    async def succeeded(self) -> None:
        self.told.append("succeeded")

    async def left(self) -> None:
        self.told.append("left")


class Vendor:
    """Gives these events; an exception is raised, and a function awaited, where it stands."""

    def __init__(self, *events: ModelEvent | Exception | Callable[[], object]) -> None:
        self.events = events
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked += 1
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            if callable(event):
                await event()  # type: ignore[misc]
            else:
                yield event


def side(vendor: Vendor, policy: Policy | None = None) -> SideRequest:
    return SideRequest(vendor, policy or Policy(), lambda: None)


async def test_the_whole_answer_is_heard_and_nothing_before_it() -> None:
    policy = Policy()
    request = side(Vendor(ThinkingDelta("hm"), TextDelta("order"), WHOLE), policy)
    assert await request.ask(QUESTION, 100) == Heard("order", COST, measured=True)
    assert policy.told == ["before", "succeeded"]
    assert (request.asking, request.owed) == (False, COST)


@pytest.mark.parametrize("error", [ProviderError("busy"), ProviderFatal("no"), ProviderError("later", status=429)])
async def test_a_failure_is_heard_and_costs_what_was_sent_and_said(error) -> None:
    policy = Policy()
    heard = await side(Vendor(TextDelta("x" * 40), error), policy).ask(QUESTION, 100)
    assert (heard.error, heard.text, heard.measured) == (error, "", False)
    assert heard.usage.output == 10
    assert heard.usage.input > 0
    assert policy.told == ["before", "after"]


async def test_what_was_told_on_the_way_is_booked() -> None:
    heard = await side(Vendor(UsageSoFar(Usage(input=500)), TextDelta("abcd"), ProviderError("cut"))).ask(QUESTION, 9)
    assert heard.usage == Usage(input=500, output=1)


async def test_what_was_not_sent_costs_nothing() -> None:
    heard = await side(Vendor(ProviderError("no way", sent=False))).ask(QUESTION, 100)
    assert heard.usage == NO_USAGE


async def test_a_provider_that_breaks_or_ends_too_early_is_a_failure() -> None:
    broke = await side(Vendor(RuntimeError("oops"))).ask(QUESTION, 100)
    assert broke.error is not None
    assert broke.error.action is FailureAction.FATAL
    early = await side(Vendor(TextDelta("or"))).ask(QUESTION, 100)
    assert early.error is not None
    assert early.text == ""


@pytest.mark.parametrize("asks", ["", "openai/other"])
async def test_a_model_with_an_open_circuit_is_not_asked_and_no_other_in_its_place(asks) -> None:
    policy, vendor = Policy(asks), Vendor(WHOLE)
    heard = await side(vendor, policy).ask(QUESTION, 100)
    assert isinstance(heard.error, CircuitOpen)
    assert (vendor.asked, heard.usage) == (0, NO_USAGE)
    assert policy.told == (["before", "left"] if asks else ["before"])


async def test_without_time_nobody_is_asked() -> None:
    policy, vendor = Policy(), Vendor(WHOLE)
    heard = await side(vendor, policy).ask(QUESTION, 0)
    assert heard.error is not None
    assert (vendor.asked, policy.told) == (0, [])


@pytest.mark.parametrize(("policy_s", "left_s"), [(0.01, 100.0), (60.0, 0.01)])
async def test_it_takes_no_longer_than_the_turn_and_the_policy_allow(policy_s, left_s) -> None:
    policy = Policy(timeout_s=policy_s)
    heard = await side(Vendor(asyncio.Event().wait), policy).ask(QUESTION, left_s)
    assert heard.error is not None
    assert heard.error.action is FailureAction.RETRYABLE
    assert policy.told == ["before", "after"]


async def test_a_cut_abandons_it_and_leaves_what_it_owes() -> None:
    talks, policy = asyncio.Event(), Policy()

    async def hold() -> None:
        talks.set()
        await asyncio.Event().wait()

    request = side(Vendor(TextDelta("abcd"), hold), policy)
    asking = asyncio.create_task(request.ask(QUESTION, 100))
    await talks.wait()
    assert request.asking
    request.cut()
    with pytest.raises(Superseded):
        await asking
    assert request.owed.output == 1
    assert policy.told == ["before", "left"]


async def test_without_a_request_under_way_a_cut_does_nothing() -> None:
    request = side(Vendor(WHOLE))
    request.cut()
    assert (await request.ask(QUESTION, 100)).error is None
    request.cut()


async def test_a_lost_lease_starts_nothing() -> None:
    def lost() -> None:
        raise LeaseLost("gone")

    policy, vendor = Policy(), Vendor(WHOLE)
    request = SideRequest(vendor, policy, lost)
    with pytest.raises(LeaseLost):
        await request.ask(QUESTION, 100)
    assert (vendor.asked, request.owed, policy.told) == (0, NO_USAGE, ["before", "left"])
