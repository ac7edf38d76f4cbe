"""Who speaks the Chat Completions API, and how each departs from it.

Sources:
- DeepSeek: api-docs.deepseek.com, "Create Chat Completion" (`reasoning_content`, `max_tokens`,
  `prompt_cache_hit_tokens` + `prompt_cache_miss_tokens` = `prompt_tokens`), guides/thinking_mode (`reasoning_content`
  goes back on turns with tool calls, else 400: NousResearch/hermes-agent 15353), quick_start/rate_limit
  (`: keep-alive` comments); no `developer` role (earendil-works/pi 1048).
- OpenRouter: openrouter.ai/docs/api/reference/streaming (`: OPENROUTER PROCESSING`, errors in mid-stream as a chunk
  with `finish_reason: error`), use-cases/usage-accounting (usage always comes, `cache_write_tokens`), errors
  (`error.code` is the status).
- vLLM: docs.vllm.ai, "OpenAI-Compatible Server"; ids of 46 characters (vllm-project/vllm 22966); a system message may
  only stand first in most chat templates; arguments in the history must be JSON.
- Ollama: docs.ollama.com/api/openai-compatibility (supported fields; the key is ignored). Fields it does not list are
  ignored by it: here they are refused, because a limit that is ignored is no limit.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Dialect(enum.StrEnum):
    OPENAI = "openai"
    DEEPSEEK = "deepseek"
    OPENROUTER = "openrouter"
    VLLM = "vllm"
    OLLAMA = "ollama"


@dataclass(frozen=True, slots=True)
class Accent:
    """`path`: under which requests are taken. `base`: what stands in `base_url`. `roles`: that a message may have.
    `limits`: the fields that limit the output. `fields`: what is taken beyond the common ones. `reasoning`: the field
    of a delta in which thinking is shown; "" when it is not. `comment`: a keep-alive that comes in a stream, "" for
    none. `id_head`, `id_length`: how the ids of calls look. `always_usage`: it comes whether asked for or not.
    `usage_with_finish`: it comes in the chunk that ends the message, not in one of its own. `whole_calls`: a call comes
    in one piece."""

    path: str
    base: str
    roles: frozenset[str]
    limits: frozenset[str]
    fields: frozenset[str] = frozenset()
    reasoning: str = ""
    comment: str = ""
    id_head: str = "call_"
    id_length: int = 29
    always_usage: bool = False
    usage_with_finish: bool = False
    whole_calls: bool = False
    cache_step: int = 1
    cache_minimum: int = 0
    needs_key: bool = True


_PLAIN = frozenset({"system", "user", "assistant", "tool"})

ACCENTS = {
    Dialect.OPENAI: Accent(
        "/v1/chat/completions",
        "/v1",
        _PLAIN | {"developer"},
        frozenset({"max_tokens", "max_completion_tokens"}),
        frozenset(
            [
                "metadata",
                "store",
                "service_tier",
                "prompt_cache_key",
                "prompt_cache_options",
                "prompt_cache_retention",
                "safety_identifier",
                "user",
                "verbosity",
                "modalities",
                "prediction",
                "moderation",
                "audio",
                "web_search_options",
                "function_call",
                "functions",
            ]
        ),
        cache_step=128,
        cache_minimum=1024,
    ),
    Dialect.DEEPSEEK: Accent(
        "/chat/completions",
        "",
        _PLAIN,
        frozenset({"max_tokens"}),
        frozenset({"thinking", "user_id"}),
        reasoning="reasoning_content",
        comment="keep-alive",
        id_head="call_00_",
        id_length=32,
        usage_with_finish=True,
        cache_step=64,
    ),
    Dialect.OPENROUTER: Accent(
        "/api/v1/chat/completions",
        "/api/v1",
        _PLAIN | {"developer"},
        frozenset({"max_tokens", "max_completion_tokens"}),
        frozenset(
            [
                "reasoning",
                "provider",
                "models",
                "route",
                "transforms",
                "usage",
                "user",
                "top_k",
                "min_p",
                "include_reasoning",
                "plugins",
            ]
        ),
        reasoning="reasoning",
        comment="OPENROUTER PROCESSING",
        always_usage=True,
        cache_minimum=1024,
    ),
    Dialect.VLLM: Accent(
        "/v1/chat/completions",
        "/v1",
        _PLAIN | {"developer"},
        frozenset({"max_tokens", "max_completion_tokens"}),
        frozenset(
            [
                "chat_template_kwargs",
                "top_k",
                "min_p",
                "include_reasoning",
                "guided_json",
                "priority",
                "cache_salt",
                "user",
            ]
        ),
        reasoning="reasoning",
        id_head="chatcmpl-tool-",
        id_length=46,
        cache_step=16,
        needs_key=False,
    ),
    Dialect.OLLAMA: Accent(
        "/v1/chat/completions",
        "/v1",
        _PLAIN,
        frozenset({"max_tokens"}),
        frozenset({"reasoning"}),
        reasoning="reasoning",
        id_length=13,
        whole_calls=True,
        needs_key=False,
    ),
}
