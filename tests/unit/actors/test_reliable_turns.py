"""Turns of agents with a reliability policy, from the job to the answer and the alert, on a store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from actors.reliable_turns import backoff_waits
from insika.agents.reliability import Backoff
from insika.errors import FailureAction, ProviderError, ProviderFatal
from insika.messages import Usage, assistant
from insika.ports import Finished, ModelEvent, ModelRequest, TextDelta
from insika.storage.rows import TurnState
from insika.testing import Script
from outbox.policy import RetryWaits
from tests.actor_world import Process, profile

WEBHOOK = "https://ops.example.com/insika"
BREAKER = {"after": 2, "within": 60, "cooldown": 300}


class Models:
    """Each model by its name: an answer, or a failure. `asked` counts."""

    def __init__(self, says: Mapping[str, str | ProviderError]) -> None:
        self.says = dict(says)
        self.asked: Counter[str] = Counter()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked[request.model] += 1
        said = self.says[request.model]
        if isinstance(said, ProviderError):
            yield TextDelta("Well, I")
            raise said
        yield TextDelta(said)
        yield Finished(assistant(said), Usage(10, 5))


def told(process: Process, type: str) -> list[Mapping[str, Any]]:
    return [event.data for event in process.events.of(type)]


def reliable(**policy: object) -> dict[str, object]:
    return profile(model="offline/first", reliability=policy, alerts={"webhook": WEBHOOK})


async def test_a_model_that_fails_makes_way_for_the_next_and_both_are_booked(place_for) -> None:
    models = Models({"first": ProviderError("busy"), "second": "Done."})
    process = await place_for(Script()).process(reliable(retries=1, fallback=["offline/second"]), model=models)
    accepted = await process.send("hello")
    await process.idle()

    assert await process.answers() == ["Done."]
    assert models.asked == {"first": 2, "second": 1}
    rows = await process.store.real.model_calls(accepted.turn_id)
    assert [(row.model, row.state) for row in rows] == [
        ("offline/first", "estimated"), ("offline/first", "estimated"), ("offline/second", "measured"),
    ]  # fmt: skip
    (ended,) = told(process, "turn_completed")
    assert (ended["model"], ended["model_source"]) == ("offline/second", "fallback")


async def test_the_platforms_models_come_behind_the_agents_own(place_for) -> None:
    models = Models({"first": ProviderError("busy"), "second": ProviderError("busy"), "third": "Done."})
    settings = {"fallback_models": ["offline/third"]}
    process = await place_for(Script()).process(
        reliable(retries=0, fallback=["offline/second"]), model=models, settings=settings
    )
    await process.send("hello")
    await process.idle()
    assert await process.answers() == ["Done."]


async def test_a_model_that_cannot_be_asked_from_here_is_passed_over(place_for) -> None:
    models = Models({"first": ProviderError("busy"), "third": "Done."})
    process = await place_for(Script()).process(
        reliable(retries=0, fallback=["nowhere/second"]), model=models, settings={"fallback_models": ["offline/third"]}
    )
    await process.send("hello")
    await process.idle()
    assert await process.answers() == ["Done."]
    assert models.asked == {"first": 1, "third": 1}


async def test_without_the_policy_there_is_one_attempt_and_no_other_model(place_for) -> None:
    models = Models({"first": ProviderError("busy"), "third": "Done."})
    process = await place_for(Script()).process(
        profile(model="offline/first"), model=models, settings={"fallback_models": ["offline/third"]}
    )
    accepted = await process.send("hello")
    await process.idle()
    assert models.asked == {"first": 1}
    assert (await process.turn(accepted.turn_id)).state is TurnState.FAILED


async def test_a_circuit_that_opens_raises_one_alert_and_the_next_turn_fails_at_once(place_for) -> None:
    models = Models({"first": ProviderError("busy")})
    process = await place_for(Script()).process(reliable(retries=0, circuit_breaker=BREAKER), model=models)
    for _ in range(2):
        await process.send("hello")
        await process.idle()
    accepted = await process.send("hello again")
    await process.idle()

    assert models.asked == {"first": 2}
    turn = await process.turn(accepted.turn_id)
    assert turn.error["type"] == "circuit_open"
    assert 0 < turn.error["retry_after"] <= 300
    opened = told(process, "breaker_open")
    assert [data["model"] for data in opened] == ["offline/first"]
    (alert,) = await process.select("SELECT url, payload FROM outbox WHERE kind = 'alert'")
    assert alert["url"] == WEBHOOK
    payload = json.loads(alert["payload"])
    assert (payload["type"], payload["agent"]) == ("breaker_open", "agent")
    assert payload["data"] == {"model": "offline/first", "retry_after": 300.0}


async def test_after_the_cooldown_a_trial_closes_the_circuit(place_for) -> None:
    models = Models({"first": ProviderError("busy")})
    place = place_for(Script())
    process = await place.process(reliable(retries=0, circuit_breaker=BREAKER), model=models)
    for _ in range(2):
        await process.send("hello")
        await process.idle()
    models.says["first"] = "Back again."
    place.clock.advance(301)
    for _ in range(2):
        await process.send("hello")
        await process.idle()
    assert await process.answers() == ["Back again.", "Back again."]


async def test_fatal_failures_are_told_once_and_open_nothing(place_for) -> None:
    models = Models({"first": ProviderFatal("no such model"), "second": "Done."})
    process = await place_for(Script()).process(
        reliable(retries=2, fallback=["offline/second"], circuit_breaker={"after": 1}), model=models
    )
    for _ in range(2):
        accepted = await process.send("hello")
        await process.idle()
    assert models.asked == {"first": 2}
    assert (await process.turn(accepted.turn_id)).error["type"] == "provider_fatal"


async def test_a_long_wait_fails_the_turn_with_the_wait_where_there_is_no_other_model(place_for) -> None:
    slow = ProviderError("later", action=FailureAction.RATE_LIMITED_LONG, retry_after=120)
    process = await place_for(Script()).process(reliable(retries=2), model=Models({"first": slow}))
    accepted = await process.send("hello")
    await process.idle()
    assert (await process.turn(accepted.turn_id)).error["retry_after"] == 120


@pytest.mark.parametrize("backoff", Backoff)
def test_waits_grow_or_stay_and_are_never_shorter_than_asked_for(backoff: Backoff) -> None:
    waits = RetryWaits(backoff_waits(backoff))
    base = {Backoff.EXPONENTIAL: [0.5, 1, 2, 4, 8, 8], Backoff.CONSTANT: [1, 1, 1, 1, 1, 1]}[backoff]
    for attempt, least in enumerate(base, start=1):
        assert least <= waits.after(attempt, None) <= least + 0.5
    assert waits.after(1, 30.0) == 30.0
