"""What a request has cost, as its vendor counts. Pure.

`prompt_tokens` hold what was read from and written to a cache, and `completion_tokens` what was reasoned: the house's
four numbers are disjoint, and so the former are taken out and the latter left in.

Sources: developers.openai.com/api/docs, API reference chat/object (`usage`; `cached_tokens`, `cache_write_tokens`);
api-docs.deepseek.com, "Create Chat Completion" (`prompt_tokens` = `prompt_cache_hit_tokens` +
`prompt_cache_miss_tokens`); openrouter.ai/docs/use-cases/usage-accounting; docs.vllm.ai (the details come only with
`--enable-prompt-tokens-details`). Grok counts what was reasoned apart from `completion_tokens` (docs.cloud.google.com,
"Reasoning for Grok models"): where the three add up to `total_tokens`, it is added.
"""

from __future__ import annotations

from collections.abc import Mapping

from insika.messages import Usage


def usage_of(counted: object) -> Usage | None:
    """None for what is no usage: null, another shape, or nothing but zeros, for no prompt is free of tokens."""
    if not isinstance(counted, Mapping):
        return None
    prompt, completion = _tokens(counted, "prompt_tokens"), _tokens(counted, "completion_tokens")
    if prompt + completion == 0:
        return None
    details = _details(counted, "prompt_tokens_details")
    read = min(_tokens(details, "cached_tokens") or _tokens(counted, "prompt_cache_hit_tokens"), prompt)
    written = min(_tokens(details, "cache_write_tokens"), prompt - read)
    reasoned = _tokens(_details(counted, "completion_tokens_details"), "reasoning_tokens")
    apart = prompt + completion + reasoned == _tokens(counted, "total_tokens")
    output = completion + reasoned if apart else completion
    return Usage(input=prompt - read - written, output=output, cache_read=read, cache_write=written)


def _details(counted: Mapping[str, object], name: str) -> Mapping[str, object]:
    details = counted.get(name)
    return details if isinstance(details, Mapping) else {}


def _tokens(counted: Mapping[str, object], name: str) -> int:
    value = counted.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
