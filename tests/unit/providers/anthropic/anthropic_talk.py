"""The adapter and the strict fake face to face, without HTTP: what is sent is judged, and what is said is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from insika.messages import Message, ToolCall, assistant, tool_result, user
from insika.ports import Finished, ModelRequest, ToolSpec
from insika.providers.anthropic.request import WireRequest, wire_request
from insika.providers.anthropic.stream import Reading, read_event
from insika.providers.script import Say, Script
from tests.vendors import AnthropicVendor, Seen
from tests.vendors.spoken import spoken

LOOKUP = ToolSpec("order_lookup", "Finds an order.", {"type": "object", "properties": {"order": {"type": "string"}}})
REFUND = ToolSpec("refund", "Pays back.", {"type": "object", "properties": {}})
NOBODY = Script([], afterwards=Say("Yes."))


def a_request(*messages: Message, model: str = "claude-haiku-4-5", **fields: Any) -> ModelRequest:
    """One with two tools and instructions, unless `fields` say otherwise."""
    given = {"instructions": "Be kind.", "tools": (LOOKUP, REFUND), "provider": "anthropic", **fields}
    return ModelRequest(model=model, messages=messages, **given)


def body_of(asked: WireRequest) -> dict[str, Any]:
    """As it goes over the wire."""
    body: dict[str, Any] = json.loads(json.dumps({**asked.parameters, "stream": True}))
    return body


def judged(request: ModelRequest, vendor: AnthropicVendor | None = None) -> Seen:
    """The request as the strict fake sees it, with all that is wrong with it."""
    vendor = vendor or AnthropicVendor(NOBODY)
    asked = wire_request(request)
    headers = {"content-type": "application/json", "anthropic-version": "2026-10-21"}
    if asked.betas:
        headers["anthropic-beta"] = ",".join(asked.betas)
    raw = json.dumps(body_of(asked), ensure_ascii=False).encode()
    seen = Seen(len(vendor.requests), "POST", "/v1/messages", headers, raw)
    vendor.requests.append(seen)
    seen.refusals = tuple(vendor.judge(seen, vendor.key))
    return seen


def taken(request: ModelRequest, vendor: AnthropicVendor | None = None) -> dict[str, Any]:
    """The body of a request that breaks no rule."""
    seen = judged(request, vendor)
    assert seen.refusals == ()
    return dict(seen.body)


def heard(request: ModelRequest, step: object, vendor: AnthropicVendor) -> tuple[Seen, Finished]:
    """What comes of a request that is answered with `step`."""
    seen = judged(request, vendor)
    assert seen.refusals == (), [refusal.message for refusal in seen.refusals]
    reply = vendor.speak(seen, spoken(step))
    seen.usage = reply.usage
    reading = Reading(request.reference, wire_request(request))
    for raw in reply.events:
        name, _, data = raw.decode().removesuffix("\n\n").partition("\n")
        list(reading.take(read_event(name.removeprefix("event: "), data.removeprefix("data: "))))
    assert reading.done
    return seen, reading.finished()


def answered(request: ModelRequest, said: Finished, *more: Message) -> ModelRequest:
    """The next request of the same turn: what was said, the results of its calls, and what else came."""
    results = [tool_result(call.id, "found") for call in said.message.tool_calls]
    return replace(request, messages=(*request.messages, said.message, *results, *more))


def a_batch(*ids: str, text: str = "", name: str = "order_lookup") -> list[Message]:
    """Calls and their results."""
    calls = [ToolCall(id, name, {"order": id}) for id in ids]
    return [assistant(text, *calls), *[tool_result(id, f"of {id}") for id in ids]]


def texts(content: Sequence[dict[str, Any]]) -> list[str]:
    return [block["text"] for block in content if block["type"] == "text"]


__all__ = ["a_batch", "a_request", "answered", "body_of", "heard", "judged", "taken", "texts", "user"]
