"""What the Chat Completions API says: chunks, whole answers and errors, in each dialect.

Sources: developers.openai.com/api/docs, API reference chat/streaming (chunks; calls by index; with
`stream_options.include_usage` a last chunk without choices has the usage, and all others have `usage: null`; `[DONE]`),
guides/error-codes; the dialects' pages as named in `dialects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.vendors.cache import Cached
from tests.vendors.openai.dialects import ACCENTS, Accent, Dialect
from tests.vendors.refusals import Refusal
from tests.vendors.spoken import Spoken, pieces
from tests.vendors.sse import bare, comment

DONE = b"data: [DONE]\n\n"
CREATED = 1764480000
KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("unknown_error", "invalid_request_error"),
    403: ("request_forbidden", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """`ids`: those of the calls. `asked_usage`: the request asked for it."""

    dialect: Dialect
    id: str
    model: str
    said: Spoken
    ids: Sequence[str]
    cached: Cached
    asked_usage: bool

    @property
    def accent(self) -> Accent:
        return ACCENTS[self.dialect]


def finish_reason(said: Spoken) -> str:
    if said.declined:
        return "content_filter"
    if said.cut:
        return "length"
    return "tool_calls" if said.calls else "stop"


def usage(answer: Answer) -> dict[str, Any]:
    """Cached tokens are part of `prompt_tokens`, whoever says so; what each adds is its own."""
    cached, said = answer.cached, answer.said
    if said.charged is not None:
        return dict(said.charged)
    prompt = cached.prompt
    counted: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": said.output_tokens,
        "total_tokens": prompt + said.output_tokens,
    }
    reasoning = {"completion_tokens_details": {"reasoning_tokens": said.thinking_tokens}}
    match answer.dialect:
        case Dialect.OPENAI:
            details = {"cached_tokens": cached.read, "audio_tokens": 0, "cache_write_tokens": 0}
            return {**counted, "prompt_tokens_details": details, **reasoning}
        case Dialect.DEEPSEEK:
            hit = {"prompt_cache_hit_tokens": cached.read, "prompt_cache_miss_tokens": prompt - cached.read}
            return {**counted, "prompt_tokens_details": {"cached_tokens": cached.read}, **hit, **reasoning}
        case Dialect.OPENROUTER:
            details = {"cached_tokens": cached.read, "cache_write_tokens": cached.written, "audio_tokens": 0}
            return {**counted, "prompt_tokens_details": details, **reasoning, "cost": 0.000095, "is_byok": False}
        case Dialect.VLLM:
            return {**counted, "prompt_tokens_details": {"cached_tokens": cached.read} if cached.read else None}
        case Dialect.OLLAMA:
            return counted


def events(answer: Answer) -> list[bytes]:
    accent = answer.accent
    wants_usage = answer.asked_usage or accent.always_usage
    sent = [bare(chunk) for chunk in _chunks(answer, wants_usage)]
    if accent.comment:
        sent[0:0] = [comment(accent.comment)]
        sent[2:2] = [comment(accent.comment)]
    return [*sent, DONE]


def _chunks(answer: Answer, wants_usage: bool) -> Iterator[dict[str, Any]]:
    accent = answer.accent
    openai = answer.dialect is Dialect.OPENAI
    null_usage = {"usage": None} if wants_usage and openai else {}
    first = {"role": "assistant", "content": "", **({"refusal": None} if openai else {})}
    for delta in [first, *_deltas(answer)]:
        yield {**_envelope(answer), "choices": [_choice(delta, None)], **null_usage}
    end = {**_envelope(answer), "choices": [_choice({}, finish_reason(answer.said))], **null_usage}
    if wants_usage and accent.usage_with_finish:
        yield {**end, "usage": usage(answer)}
        return
    yield end
    if wants_usage:
        yield {**_envelope(answer), "choices": [], "usage": usage(answer)}


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    said, accent = answer.said, answer.accent
    if accent.reasoning and not said.hidden:
        for piece in pieces(said.thinking):
            yield {"content": None, accent.reasoning: piece}
    for piece in pieces(said.text):
        yield {"content": piece}
    for index, (call, id) in enumerate(zip(said.calls, answer.ids, strict=True)):
        head = {"index": index, "id": id, "type": "function"}
        if accent.whole_calls:
            yield {"tool_calls": [{**head, "function": {"name": call.name, "arguments": call.raw}}]}
            continue
        yield {"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]}
        for piece in pieces(call.raw):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def whole(answer: Answer) -> dict[str, Any]:
    said = answer.said
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}
            for call, id in zip(said.calls, answer.ids, strict=True)
        ]
    if said.thinking and answer.accent.reasoning and not said.hidden:
        message[answer.accent.reasoning] = said.thinking
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(said)}
    return {**_envelope(answer), "object": "chat.completion", "choices": [choice], "usage": usage(answer)}


def error_body(refusal: Refusal, dialect: Dialect) -> dict[str, Any]:
    if dialect is Dialect.OPENROUTER:
        return {"error": {"message": refusal.message, "code": refusal.status, "metadata": {}}}
    kind, code = KINDS.get(refusal.status, ("server_error" if refusal.status >= 500 else "invalid_request_error", None))
    told = {"message": refusal.message, "type": refusal.kind or kind, "param": refusal.param}
    return {"error": {**told, "code": refusal.code if refusal.code is not None else code}}


def error_chunk(dialect: Dialect, id: str, kind: str | None, message: str) -> bytes:
    """OpenAI's error stands alone; OpenRouter's comes with a choice that ends with `error`."""
    if dialect is not Dialect.OPENROUTER:
        return bare({"error": {"message": message, "type": kind or "server_error", "param": None, "code": None}})
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    shared = {"id": id, "object": "chat.completion.chunk", "created": CREATED, "model": "unknown", "provider": "fake"}
    return bare({**shared, "error": {"code": kind or 502, "message": message}, "choices": [choice]})


def _envelope(answer: Answer) -> dict[str, Any]:
    extra: Mapping[str, Any] = {}
    match answer.dialect:
        case Dialect.OPENAI:
            extra = {"service_tier": "default", "system_fingerprint": "fp_fake", "obfuscation": "aZ3"}
        case Dialect.OPENROUTER:
            extra = {"provider": "fake"}
        case Dialect.OLLAMA | Dialect.DEEPSEEK:
            extra = {"system_fingerprint": "fp_fake"}
    shared = {"id": answer.id, "object": "chat.completion.chunk", "created": CREATED, "model": answer.model}
    return {**shared, **extra}


def _choice(delta: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}
