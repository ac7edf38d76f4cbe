"""What each dialect of chat completions wants where it differs from the others. Values; nothing is decided here.

- OpenAI: developers.openai.com/api/docs, API reference chat/create: `max_tokens` is deprecated, and refused by models
  that reason; an assistant's `content` may be null where it calls.
- DeepSeek: api-docs.deepseek.com, "Create Chat Completion" (`max_tokens`, `content` nullable) and guides/thinking_mode:
  an assistant message goes back with its `reasoning_content`.
- OpenRouter: openrouter.ai/docs, api/reference/parameters (`max_tokens`) and use-cases/reasoning-tokens:
  `reasoning_details` go back as they came.
- Compatible: docs.ollama.com/api/openai-compatibility (`max_tokens` alone); docs.vllm.ai, "OpenAI-Compatible Server"
  (both limits). Chat templates print a `content` of null as a word, so that it is an empty text there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from insika.providers.endpoint import Dialect


@dataclass(frozen=True, slots=True)
class Ways:
    """`base_url`: the vendor's own; "" where there is no such thing. `limit`: the field that limits the output.
    `silence`: the content of an assistant message that calls and says nothing. `kept`: the field of an assistant
    message in which reasoning goes back; "" where none does."""

    base_url: str
    limit: str
    silence: str | None = None
    kept: str = ""


REASONING_CONTENT = "reasoning_content"
REASONING_DETAILS = "reasoning_details"

WAYS: Mapping[Dialect, Ways] = {
    Dialect.OPENAI: Ways("https://api.openai.com/v1", "max_completion_tokens"),
    Dialect.DEEPSEEK: Ways("https://api.deepseek.com", "max_tokens", kept=REASONING_CONTENT),
    Dialect.OPENROUTER: Ways("https://openrouter.ai/api/v1", "max_tokens", kept=REASONING_DETAILS),
    Dialect.COMPATIBLE: Ways("", "max_tokens", silence=""),
}
