"""The shop's models at vendors: the strict fakes over real HTTP, who think before they speak; and the verdict on what
they were asked, which they alone have seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from insika.messages import Usage
from insika.providers.catalog import ModelCatalog
from insika.providers.hosted import HostedProviders
from insika.providers.scene import Scene
from insika.providers.script import Fail, Script
from tests.faults.shop import KEY, KEY_VARIABLE, Asked, next_step
from tests.faults.verdict import Evidence, Row
from tests.vendors import AnthropicVendor, Dialect, OpenAIVendor, Seen, Vendor, serving
from tests.vendors.steps import Think
from tests.vendors.troubles import Refuses

ANTHROPIC, DEEPSEEK, OPENAI = "anthropic", "deepseek", "openai"
HOSTED = (ANTHROPIC, DEEPSEEK)
"""Both wire formats, each with reasoning that must go back while its turn runs."""
MODELS: Mapping[str, str] = {ANTHROPIC: "claude-sonnet-4-5", DEEPSEEK: "deepseek-reasoner", OPENAI: "gpt-4o-mini"}


def thoughtful_step(scene: Scene) -> Any:
    step = next_step(scene)
    return step if isinstance(step, Fail) else Think(f"What to do at step {scene.step} of {scene.text!r}?", step)  # type: ignore[arg-type]


def vendor_named(name: str, script: Script | None = None) -> Vendor:
    """One of `MODELS`, who takes the shop's key."""
    script = script or Script(afterwards=thoughtful_step)
    return (
        AnthropicVendor(script, keys=(KEY,)) if name == ANTHROPIC else OpenAIVendor(script, Dialect(name), keys=(KEY,))
    )


def provider_of(name: str, vendor: Vendor) -> Mapping[str, Any]:
    """The vendor, while it is served, as settings name it."""
    spoken = {"kind": "anthropic"} if name == ANTHROPIC else {"kind": "openai", "dialect": name}
    return {"name": name, **spoken, "base_url": vendor.base_url, "key_variable": KEY_VARIABLE}


def asked_at(name: str, vendor: Vendor) -> Asked:
    thinks = {"thinking": "low"} if name != OPENAI else {}
    return Asked(f"{name}/{MODELS[name]}", [provider_of(name, vendor)], thinks)


def judge_requests(vendor: Vendor, evidence: Evidence) -> None:
    """Raise AssertionError for the first thing that a vendor might complain of. Nothing of what was asked was refused,
    but where the script wanted it; each request was made once, by us; what is booked as measured is what the vendor
    has charged; and while a turn runs, its reasoning goes along."""
    nothing_was_refused(vendor)
    assert len(vendor.requests) <= len(evidence.requests), "somebody asks without the shop's knowledge"
    measured = Counter(usage_of(row) for row in evidence.model_calls if row["state"] == "measured")
    charged = Counter(seen.usage for seen in vendor.requests if seen.status == 200)
    assert measured - charged == Counter(), "booked as measured, and never charged"
    assert [seen.number for seen in vendor.requests if not all(reasoning_of_its_turn(seen))] == []


def nothing_was_refused(vendor: Vendor) -> None:
    assert [(seen.number, seen.refusals) for seen in vendor.requests if seen.refusals] == []
    wanted = [seen for seen in vendor.requests if isinstance(seen.trouble, Refuses)]
    assert {seen.status for seen in vendor.requests if seen not in wanted} <= {200, None}


def usage_of(row: Row) -> Usage:
    return Usage(row["input"], row["output"], row["cache_read"], row["cache_write"])


def reasoning_of_its_turn(seen: Seen) -> Iterator[str]:
    """What goes back of the message whose results stand last in this request: nothing where a person spoke last, nor
    where the model is not to think, as behind a turn that failed within a batch."""
    messages: Sequence[Mapping[str, Any]] = seen.body["messages"]
    thinks = "thinking" in seen.body or seen.model == MODELS[DEEPSEEK]
    if not (thinks and _results_stand_last(messages[-1])):
        return
    announced = next(message for message in reversed(messages) if message["role"] == "assistant")
    if "tool_calls" in announced:
        if "reasoning_content" in announced:
            yield announced["reasoning_content"].strip()
    else:
        first = announced["content"][0]
        yield first.get("thinking", "") and first.get("signature", "")


def _results_stand_last(last: Mapping[str, Any]) -> bool:
    if last["role"] == "tool":
        return True
    content = last["content"]
    return not isinstance(content, str) and all(block["type"] == "tool_result" for block in content)


def event_with(name: str, script: Script, seen: Seen, mark: str, nth: int = 0) -> int:
    """Which of the events that answer this request is the nth to hold `mark`."""
    twin = vendor_named(name, script)
    events = twin.speak(seen, twin._ask(seen)).events
    return [at for at, event in enumerate(events) if mark.encode() in event][nth]


class Trade:
    """Several vendors with one script, and a process's catalog and settings that lead to them. Every one is named as in
    `MODELS`; its agents ask models by the references that `reference` gives."""

    def __init__(self, vendors: Mapping[str, Vendor], script: Script) -> None:
        self.vendors = vendors
        self.script = script
        self.models = ModelCatalog({}, HostedProviders({KEY_VARIABLE: KEY}))
        self.settings = {"providers": [provider_of(name, vendor) for name, vendor in vendors.items()]}

    def reference(self, name: str) -> str:
        return f"{name}/{MODELS[name]}"

    def seen(self, name: str) -> Sequence[Seen]:
        return self.vendors[name].requests

    def nothing_was_refused(self) -> None:
        for vendor in self.vendors.values():
            nothing_was_refused(vendor)


@asynccontextmanager
async def trading(script: Script, *names: str) -> AsyncIterator[Trade]:
    async with AsyncExitStack() as open_for_trade:
        vendors = {
            name: await open_for_trade.enter_async_context(serving(vendor_named(name, script))) for name in names
        }
        trade = Trade(vendors, script)
        open_for_trade.push_async_callback(trade.models.aclose)
        yield trade
