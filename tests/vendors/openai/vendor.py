"""The fake of the Chat Completions API: judges a request by all its rules, and answers by script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from insika.messages import Usage
from insika.ports import ModelRequest
from tests.vendors.cache import AutomaticCache
from tests.vendors.openai import models, wire
from tests.vendors.openai.dialects import ACCENTS, Dialect
from tests.vendors.openai.message_rules import message_problems
from tests.vendors.openai.option_rules import body_problem, header_problems, option_problems
from tests.vendors.openai.reading import as_house, prompt_of
from tests.vendors.refusals import Refusal
from tests.vendors.seen import Seen
from tests.vendors.spoken import Spoken, made_id
from tests.vendors.sse import comment
from tests.vendors.troubles import Breaks
from tests.vendors.vendor import Reply, Scripts, Vendor

KEY = "sk-fake"


class OpenAIVendor(Vendor):
    """OpenAI itself, or another that speaks its API. Only OpenAI's models are known by name; the others take any."""

    def __init__(
        self,
        scripts: Scripts,
        dialect: Dialect = Dialect.OPENAI,
        *,
        keys: Sequence[str] = (KEY,),
        cache_minimum: int | None = None,
    ) -> None:
        super().__init__(scripts, keys=keys, cache_minimum=cache_minimum)
        self.dialect = dialect
        self._accent = ACCENTS[dialect]
        self._cache = AutomaticCache()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._accent.base}"

    @property
    def paths(self) -> Sequence[str]:
        return (self._accent.path,)

    @property
    def keep_alive(self) -> bytes:
        return comment(self._accent.comment or "keep-alive")

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return key if scheme.lower() == "bearer" else None

    def judge(self, seen: Seen, key: str | None) -> Sequence[Refusal]:
        found = list(header_problems(seen.headers, key, self.keys, self.dialect))
        if problem := body_problem(seen.raw):
            return [*found, problem]
        seen.body = json.loads(seen.raw)
        seen.pieces = prompt_of(seen.body)
        model = models.find(seen.model) if self.dialect is Dialect.OPENAI else None
        if self.dialect is Dialect.OPENAI and model is None:
            text = f"The model `{seen.model}` does not exist or you do not have access to it."
            return [*found, Refusal("model", text, 404, code="model_not_found")]
        found += option_problems(seen.body, model, self.dialect)
        found += message_problems(seen.body, self.dialect, thinks=self._deepseek_thinks(seen.body))
        return found

    def _deepseek_thinks(self, body: Mapping[str, Any]) -> bool:
        """By the model's name, or because it was asked to (api-docs.deepseek.com/guides/thinking_mode)."""
        if self.dialect is not Dialect.DEEPSEEK:
            return False
        asked = body.get("thinking")
        kind = asked.get("type") if isinstance(asked, Mapping) else None
        if kind is not None:
            return bool(kind == "enabled")
        name = str(body.get("model"))
        return name == "deepseek-reasoner" or name.startswith("deepseek-v4")

    def as_house(self, body: Mapping[str, Any]) -> ModelRequest:
        return as_house(body)

    def speak(self, seen: Seen, said: Spoken) -> Reply:
        if not self._reasons(seen.body):
            said = replace(said, thinking="", hidden=False)
        minimum = self._accent.cache_minimum if self.cache_minimum is None else self.cache_minimum
        step = self._accent.cache_step if self.cache_minimum is None else 1
        cached = self._cache.look(seen.model, seen.pieces, minimum, step)
        options = seen.body.get("stream_options")
        asked = isinstance(options, Mapping) and options.get("include_usage") is True
        head, length = self._accent.id_head, self._accent.id_length
        seed = seen.prefix_hash()
        ids = [call.id or _id(head, length, seed, index) for index, call in enumerate(said.calls)]
        id = f"chatcmpl-{made_id([seen.number, len(seen.pieces)], 0)}"
        answer = wire.Answer(self.dialect, id, seen.model, said, ids, cached, asked)
        events = wire.events(answer)
        texts = [at for at, event in enumerate(events) if b'"delta": {"content": "' in event]
        usage = Usage(cached.fresh, said.output_tokens, cached.read, cached.written)
        return Reply(events, texts, wire.whole(answer), usage)

    def _reasons(self, body: Mapping[str, Any]) -> bool:
        if self.dialect is Dialect.OPENAI:
            model = models.find(body.get("model"))
            assert model is not None
            return model.reasons and (body.get("reasoning_effort") or model.default) != "none"
        if self.dialect is Dialect.DEEPSEEK:
            return self._deepseek_thinks(body)
        reasoning = body.get("reasoning")
        return body.get("reasoning_effort") != "none" and not (
            isinstance(reasoning, Mapping) and (reasoning.get("enabled") is False or reasoning.get("effort") == "none")
        )

    def error(self, refusal: Refusal, request_id: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        return wire.error_body(refusal, self.dialect), {}

    def broken(self, trouble: Breaks, request_id: str) -> bytes:
        return wire.error_chunk(self.dialect, request_id, trouble.kind, trouble.message)


def _id(head: str, length: int, seed: str, index: int) -> str:
    return (head + made_id(seed, index) + made_id(seed, -1 - index))[:length]
