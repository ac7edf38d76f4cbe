"""What the Messages API says: a message in events, a message whole, and its errors.

Sources, under platform.claude.com/docs/en: build-with-claude/streaming ("Event types": `message_start` with the input's
usage, blocks one after another, `message_delta` with cumulative usage, `ping` anywhere, `error` in mid-stream),
build-with-claude/thinking ("Streaming thinking": a `signature_delta` last, and nothing else where thinking is not
shown), api/errors (types by status; each error with its `request_id`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.vendors.cache import Cached
from tests.vendors.refusals import Refusal
from tests.vendors.spoken import Spoken, pieces
from tests.vendors.sse import named

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def stop_reason(said: Spoken) -> str:
    if said.declined:
        return "refusal"
    if said.cut:
        return "max_tokens"
    return "tool_use" if said.calls else "end_turn"


def input_usage(cached: Cached) -> dict[str, Any]:
    return {
        "input_tokens": cached.fresh,
        "cache_creation_input_tokens": cached.written,
        "cache_read_input_tokens": cached.read,
    }


def events(id: str, model: str, blocks: list[dict[str, Any]], said: Spoken, cached: Cached) -> list[bytes]:
    return [named(event) for event in _events(id, model, blocks, said, cached)]


def _events(
    id: str, model: str, blocks: list[dict[str, Any]], said: Spoken, cached: Cached
) -> Iterator[dict[str, Any]]:
    usage = {
        **input_usage(cached),
        "cache_creation": {"ephemeral_5m_input_tokens": cached.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
    }
    told = said.charged or {}
    yield {
        "type": "message_start",
        "message": {**_envelope(id, model), "content": [], "usage": told.get("start", usage)},
    }
    for index, block in enumerate(blocks):
        yield from _block(index, block)
        if index == 0:
            yield {"type": "ping"}
    total = {**input_usage(cached), "output_tokens": said.output_tokens, **_thought(said)}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(said), "stop_sequence": None},
        "usage": told.get("end", total),
    }
    yield {"type": "message_stop"}


def _block(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
    for delta in _deltas(block):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
    return block


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            for piece in pieces(block["text"]):
                yield {"type": "text_delta", "text": piece}
        case "thinking":
            for piece in pieces(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pieces(block["raw"]):
                yield {"type": "input_json_delta", "partial_json": piece}


def whole(id: str, model: str, blocks: list[dict[str, Any]], said: Spoken, cached: Cached) -> dict[str, Any]:
    usage = {**input_usage(cached), "output_tokens": said.output_tokens, **_thought(said), "service_tier": "standard"}
    return {
        **_envelope(id, model),
        "content": [_closed(block) for block in blocks],
        "stop_reason": stop_reason(said),
        "usage": (said.charged or {}).get("whole", usage),
    }


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "tool_use":
        return block
    try:
        value = json.loads(block["raw"])
    except ValueError:
        value = {}
    return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": value}


def error_body(refusal: Refusal, request_id: str) -> dict[str, Any]:
    kind = refusal.kind or KINDS.get(refusal.status, "api_error" if refusal.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.message}, "request_id": request_id}


def error_event(kind: str | None, message: str, request_id: str) -> bytes:
    return named(
        {"type": "error", "error": {"type": kind or "overloaded_error", "message": message}, "request_id": request_id}
    )


def _envelope(id: str, model: str) -> dict[str, Any]:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _thought(said: Spoken) -> dict[str, Any]:
    return {"output_tokens_details": {"thinking_tokens": said.thinking_tokens}} if said.thinking else {}
