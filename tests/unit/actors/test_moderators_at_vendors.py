"""A moderator asked over HTTP, at fakes of both vendors that take nothing that the real ones would not."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest

import actors.moderation
from insika.messages import Usage
from insika.providers.catalog import ModelCatalog
from insika.providers.hosted import HostedProviders
from insika.testing import Rule, Say, Script, ScriptedModel
from tests.actor_world import profile
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, serving
from tests.vendors.troubles import Cuts, Refuses

KEY, KEY_VARIABLE = "sk-of-the-judge", "JUDGE_KEY"
JUDGMENTS = Script(rules=[Rule([Say("refuse")], when="sly")], afterwards=Say("allow"))
ANSWERS = Script(afterwards=Say("Short."))
VENDORS = {
    "anthropic": (lambda: AnthropicVendor(JUDGMENTS, keys=(KEY,)), "claude-sonnet-4-5", {"kind": "anthropic"}),
    "openai": (
        lambda: OpenAIVendor(JUDGMENTS, Dialect("openai"), keys=(KEY,)),
        "gpt-4o-mini",
        {"kind": "openai", "dialect": "openai"},
    ),
}


@pytest.fixture(autouse=True)
def patience(monkeypatch) -> None:
    """A machine under load may take longer for the first word than people should wait for one."""
    monkeypatch.setattr(actors.moderation, "LIMIT_S", 120.0)


@asynccontextmanager
async def judged_by(name: str, place):
    made, model, spoken = VENDORS[name]
    async with serving(made()) as vendor:
        talker = ScriptedModel(ANSWERS)
        models = ModelCatalog({"offline": talker}, HostedProviders({KEY_VARIABLE: KEY}))
        provider = {"name": "judge", **spoken, "base_url": vendor.base_url, "key_variable": KEY_VARIABLE}
        moderated = profile(guardrails={"moderator": f"judge/{model}"})
        process = await place.process(moderated, model=talker, models=models, settings={"providers": [provider]})
        yield process, vendor
        await process.die()
        await models.aclose()


async def booked(process, turn_id) -> list[tuple[str, Usage]]:
    return [
        (row.state, row.usage) for row in await process.store.real.model_calls(turn_id) if row.purpose == "moderate"
    ]


@pytest.mark.parametrize("name", VENDORS)
async def test_it_judges_and_what_it_costs_is_booked_as_the_vendor_says(place_for, name):
    async with judged_by(name, place_for(ANSWERS)) as (process, vendor):
        kind, sly = await process.send("hello"), await process.send("sly", "t")
        await process.idle()
        assert await process.answers() == ["Short."]
        assert (await process.turn(sly.turn_id)).outcome == "refused"
        assert [seen.refusals for seen in vendor.requests] == [(), ()]
        rows = [*await booked(process, kind.turn_id), *await booked(process, sly.turn_id)]
        assert sorted(map(repr, rows)) == sorted(repr(("measured", seen.usage)) for seen in vendor.requests)
        assert process.events.of("guardrail_flagged") == []
        for seen in vendor.requests:
            assert "tools" not in seen.body
            said = seen.body["messages"][-1]["content"]
            text = said if isinstance(said, str) else said[0]["text"]
            assert list(json.loads(text)) == ["1"]


@pytest.mark.parametrize("trouble", [Refuses(503), Refuses(401), Cuts(1)], ids=["overloaded", "no key", "cut"])
@pytest.mark.parametrize("name", VENDORS)
async def test_one_in_trouble_lets_everything_pass_and_is_asked_once(place_for, name, trouble):
    async with judged_by(name, place_for(ANSWERS)) as (process, vendor):
        vendor.troubles.append(trouble)
        sent = await process.send("sly")
        await process.idle()
        assert await process.answers() == ["Short."]
        assert [event.data["reason"] for event in process.events.of("guardrail_flagged")] == ["moderator_failed"]
        assert len(vendor.requests) == 1
        ((state, _),) = await booked(process, sent.turn_id)
        assert state == "estimated"
